// This part of the package reads jobs from a snapshot of the database: one with its record, pages of a list, and which
// ids are known.
//
// It sees what was committed last, and needs neither the writer nor what it keeps in memory.

package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"math"
	"strconv"

	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

const (
	// maxSeeks bounds the lanes that are read for one page, and the reads of names of topics and lanes.
	maxSeeks = 1000
	// maxNames is the number of names of lanes read at once.
	maxNames = 500
)

// A jobList is one page of jobs that is being read.
type jobList struct {
	filter  store.Filter
	log     *logs.Limited
	now     clock.Instant
	tie     int64 // of filter.After
	page    store.Page
	last    *table.Row             // looked at last, behind page.Reached; nil: nothing was since then
	read    int                    // rows
	seeks   int                    // see maxSeeks
	running map[int64]table.Mark   // leased jobs in the snapshot, by number
	byLane  map[int64][]table.Mark // the same, by lane
}

// newJobList returns a list of the jobs that a filter selects, with states at now. Jobs that cannot be decoded are
// logged and left out. It fails with store.ErrCursor.
func newJobList(filter store.Filter, now clock.Instant, log *logs.Limited) (*jobList, error) {
	filter.Limit = min(max(filter.Limit, 1), store.MaxListLimit)
	filter.ScanLimit = min(cmp.Or(max(filter.ScanLimit, 0), store.MaxScanLimit), store.MaxScanLimit)
	l := &jobList{filter: filter, log: log, now: now, page: store.Page{Reached: filter.After}}
	if filter.After.Tie != "" {
		var err error
		if l.tie, err = strconv.ParseInt(filter.After.Tie, 10, 64); err != nil {
			return nil, store.ErrCursor
		}
	}
	return l, nil
}

// Run reads the page from a snapshot.
func (l *jobList) Run(ctx context.Context, c *db.Conn) (store.Page, error) {
	done, err := l.unfinished(ctx, c)
	if err == nil && !done {
		err = l.ended(ctx, c)
	}
	if err != nil {
		return store.Page{}, err
	}
	if l.last != nil {
		l.page.Reached = store.PositionOf(&l.last.Job, tie(l.last))
	}
	return l.page, nil
}

// tie returns the tie of a row's position.
func tie(r *table.Row) string { return strconv.FormatInt(r.N, 10) }

// stop ends the page before the end of the list.
func (l *jobList) stop() (done bool) {
	l.page.More = true
	return true
}

// isFull reports whether the page has as many jobs as it may have.
func (l *jobList) isFull() bool { return len(l.page.Jobs) == l.filter.Limit }

// look looks at the next row of the list, and takes it if it matches. done: the page ends before it.
func (l *jobList) look(r *table.Row) (done bool) {
	if l.isFull() {
		return l.stop()
	}
	l.page.Scanned++
	l.last = r
	if !r.State.Ended() {
		r.State = table.WaitingState(clock.Millis(r.DueAt), l.now.Millis)
		if _, leased := l.running[r.N]; leased {
			r.State = job.Running
		}
	}
	if !l.filter.MatchesProgress(&r.Job) {
		return false
	}
	if err := r.Decode(); err != nil {
		l.log.Error("job unreadable, leaving it out of a list", "job", r.ID, "err", err)
		return false
	}
	if l.filter.MatchesSpec(&r.Job) {
		l.page.Jobs, l.page.Ties = append(l.page.Jobs, r.Job), append(l.page.Ties, tie(r))
	}
	return false
}

// enter moves to the beginning of a topic or a lane.
func (l *jobList) enter(p store.Position) { l.page.Reached, l.last = p, nil }

// unfinished lists unfinished jobs, a lane after the other. done: the page ends there.
func (l *jobList) unfinished(ctx context.Context, c *db.Conn) (done bool, err error) {
	f := &l.filter
	if f.After.Ended || !f.SelectsUnfinished() {
		return false, nil
	}
	if l.running, err = readRunning(ctx, c); err != nil {
		return false, err
	}
	l.byLane = make(map[int64][]table.Mark)
	for _, m := range l.running {
		l.byLane[m.Q] = append(l.byLane[m.Q], m)
	}
	for from := f.After.Topic; ; {
		var more bool
		if from, more = f.NextTopic(from); !more {
			return false, nil
		}
		if l.seeks++; l.seeks > maxSeeks {
			return l.stop(), nil
		}
		topic := ""
		if err := c.Query(ctx, table.UnfinishedTopic, func(v []driver.Value) error {
			topic = db.Text(v[0])
			return nil
		}, f.Namespace, from); err != nil || topic == "" {
			return false, err
		}
		if from = topic; !f.SelectsTopic(topic) {
			continue
		}
		if done, err := l.topic(ctx, c, topic); done || err != nil {
			return done, err
		}
		from = after(topic)
	}
}

// after returns the first name after a name.
func after(name string) string { return name + "\x00" }

// topic lists the unfinished jobs of one topic.
func (l *jobList) topic(ctx context.Context, c *db.Conn, topic string) (done bool, err error) {
	f := &l.filter
	from, limit := f.Lane, maxNames
	if topic == f.After.Topic {
		from = max(from, f.After.Lane)
	} else {
		l.enter(store.Position{Topic: topic})
	}
	if f.Lane != "" {
		limit = 1
	}
	type lane struct {
		q    int64
		name string
	}
	for {
		if l.seeks++; l.seeks > maxSeeks {
			return l.stop(), nil
		}
		var lanes []lane
		err := c.Query(ctx, table.UnfinishedLanes, func(v []driver.Value) error {
			lanes = append(lanes, lane{db.Int(v[0]), db.Text(v[1])})
			return nil
		}, f.Namespace, topic, from, int64(limit))
		if err != nil {
			return false, err
		}
		for _, lane := range lanes {
			if f.Lane != "" && lane.name != f.Lane {
				return false, nil
			}
			if done, err := l.lane(ctx, c, lane.q, topic, lane.name); done || err != nil {
				return done, err
			}
			from = after(lane.name)
		}
		if len(lanes) < limit || f.Lane != "" {
			return false, nil
		}
	}
}

// lane lists the unfinished jobs of one lane.
func (l *jobList) lane(ctx context.Context, c *db.Conn, q int64, topic, name string) (done bool, err error) {
	f := &l.filter
	at, entered := store.Position{Topic: topic, Lane: name}, true
	if topic == f.After.Topic && name == f.After.Lane {
		at, entered = f.After, false
	}
	waiting := f.SelectsState(job.Scheduled) || f.SelectsState(job.Ready)
	if !waiting && len(l.byLane[q]) == 0 {
		if entered {
			l.enter(at) // so that a page which only passes lanes gets ahead
		}
		return false, nil
	}
	if l.seeks++; l.isFull() || l.seeks > maxSeeks {
		return l.stop(), nil
	}
	if entered {
		l.enter(at)
	}
	from, to := bounds(f.Due)
	passed := 0 // rows that the filter does not select
	if !f.SelectsState(job.Running) {
		passed = len(l.byLane[q])
		if !f.SelectsState(job.Ready) {
			from = max(from, l.now.Millis+1)
		}
		if !f.SelectsState(job.Scheduled) {
			to = min(to, l.now.Millis+1)
		}
	}
	s := l.newSource(q, job.Scheduled, from, to, at)
	s.chunk = min(f.Limit-len(l.page.Jobs)+1+passed, maxChunk)
	s.decode = func(v []driver.Value) *table.Row {
		r := (*table.Cells)(&v).Row()
		r.Topic, r.Lane = topic, name
		return r
	}
	if !waiting {
		if err := s.loadLeased(ctx, c, l.byLane[q]); err != nil {
			return false, err
		}
	}
	return l.merge(ctx, c, sources{s})
}

// ended lists ended jobs by the time of their end: those of each topic and state are a source.
func (l *jobList) ended(ctx context.Context, c *db.Conn) error {
	f := &l.filter
	start := store.Position{Ended: true}
	if f.After.Ended {
		start = f.After
	}
	from, to := bounds(f.Ended)
	var all sources
	for _, state := range []job.State{job.Delivered, job.Dead, job.Cancelled} {
		if !f.SelectsState(state) {
			continue
		}
		add := func(topic, head int64) {
			s := l.newSource(topic, state, from, to, start)
			s.skipTo(head)
			s.decode = decodeEnded
			all = append(all, s)
		}
		var err error
		if f.Topic != "" {
			err = c.Query(ctx, table.FindTopic, func(v []driver.Value) error {
				if f.SelectsTopic(f.Topic) {
					add(db.Int(v[0]), 0)
				}
				return nil
			}, f.Namespace, f.Topic)
		} else {
			heads := table.LastEnds
			if f.Oldest {
				heads = table.FirstEnds
			}
			err = c.Query(ctx, heads, func(v []driver.Value) error {
				if head := db.Int(v[2]); head != 0 && f.SelectsTopic(db.Text(v[1])) {
					add(db.Int(v[0]), head)
				}
				return nil
			}, f.Namespace, string(state), l.newSource(0, state, from, to, start).at.ms)
		}
		if err != nil {
			return err
		}
	}
	for _, s := range all {
		s.chunk = min(max((f.Limit-len(l.page.Jobs)+1)/len(all), minChunk), maxChunk)
	}
	_, err := l.merge(ctx, c, all)
	return err
}

// decodeEnded reads a row of an ended job.
func decodeEnded(v []driver.Value) *table.Row {
	c := table.Cells(v)
	r := c.Row()
	c.Names(r)
	return r
}

// bounds returns the milliseconds of a range, to exclusive.
func bounds(r store.TimeRange) (from, to int64) {
	from, to = clock.MillisUp(r.After), math.MaxInt64
	if !r.Before.IsZero() {
		to = clock.MillisUp(r.Before)
	}
	return from, to
}
