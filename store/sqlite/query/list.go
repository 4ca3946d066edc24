package query

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"

	"github.com/ringback/ringback/internal/limitedlog"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// What one page looks at, at most, whatever its limit: rows, and lanes.
const (
	MaxRows   = 5000
	listLanes = 500
	listChunk = 500
)

// A cursor is a position in a list: behind a job of a lane. Lists of ended jobs run over all lanes at once, without a lane.
type cursor struct {
	Lane string `json:"l,omitempty"`
	MS   int64  `json:"t"`
	N    int64  `json:"n"`
}

func (p cursor) encode() string { return base64.RawURLEncoding.EncodeToString([]byte(db.JSON(p))) }

func parseCursor(text string) (cursor, error) {
	var p cursor
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return cursor{}, store.ErrCursor
	}
	return p, nil
}

// A List is one page of jobs that is being read.
type List struct {
	filter   store.Filter
	log      *limitedlog.Log
	from, to int64  // of the state's time, to exclusive
	at       cursor // behind what was looked at last
	looked   int
	page     store.Page
	now      clock.Instant
	running  map[int64]table.Mark   // leased jobs in the snapshot, by number
	byLane   map[int64][]table.Mark // the same, by lane
	passed   int                    // how many of them lie in the lane that is being listed
}

// NewList returns a list of the jobs that a filter selects, with states at now. Jobs that cannot be decoded are logged and
// left out. It fails with store.ErrCursor.
func NewList(filter store.Filter, now clock.Instant, log *limitedlog.Log) (*List, error) {
	l := &List{filter: filter, log: log, from: clock.MillisUp(filter.After), to: math.MaxInt64, at: cursor{N: -1}, now: now}
	if !filter.Before.IsZero() {
		l.to = clock.MillisUp(filter.Before)
	}
	if filter.Cursor != "" {
		var err error
		if l.at, err = parseCursor(filter.Cursor); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Run reads the page from a snapshot.
func (l *List) Run(ctx context.Context, c *db.Conn) (store.Page, error) {
	list := l.open
	if l.filter.State.Ended() {
		list = l.ended
	}
	err := list(ctx, c)
	return l.page, err
}

// stop says that the page ends here, and where the next begins.
func (l *List) stop() bool {
	if len(l.page.Jobs) < l.filter.Limit && l.looked < MaxRows {
		return false
	}
	l.page.Cursor = l.at.encode()
	return true
}

// add takes a row that the filter lets through.
func (l *List) add(r *table.Row) {
	f := &l.filter
	switch {
	case f.Lane != "" && r.Lane != f.Lane, f.Reason != "" && r.Reason != f.Reason, f.Status != 0 && r.Status != f.Status:
		return
	}
	if _, running := l.running[r.N]; running && r.State == job.Scheduled {
		return // it waits no longer
	}
	if err := r.Decode(); err != nil {
		l.log.Error("job unreadable, leaving it out of a list", "job", r.ID, "err", err)
		return
	}
	if l.filter.Label != "" {
		if value, ok := r.Labels[l.filter.Label]; !ok || value != l.filter.Value {
			return
		}
	}
	l.page.Jobs = append(l.page.Jobs, r.View(l.now))
}

// open lists unfinished jobs, a lane after the other.
func (l *List) open(ctx context.Context, c *db.Conn) error {
	switch l.filter.State {
	case job.Scheduled:
		l.from = max(l.from, l.now.Millis+1)
	case job.Ready:
		l.to = min(l.to, l.now.Millis+1)
	case job.Running:
	default:
		return nil // a state that this version does not know has no jobs
	}
	var err error
	if l.running, err = readRunning(ctx, c); err != nil {
		return err
	}
	l.byLane = make(map[int64][]table.Mark)
	for _, m := range l.running {
		l.byLane[m.Q] = append(l.byLane[m.Q], m)
	}
	type lane struct {
		q    int64
		name string
	}
	var lanes []lane
	first := l.at.Lane
	if l.filter.Lane != "" {
		first = l.filter.Lane
	}
	err = c.Query(ctx, table.ListQueues, func(v []driver.Value) error {
		lanes = append(lanes, lane{db.Int(v[0]), db.Text(v[1])})
		return nil
	}, l.filter.Namespace, l.filter.Topic, first, int64(listLanes))
	if err != nil {
		return err
	}
	for _, lane := range lanes {
		if l.filter.Lane != "" && lane.name != l.filter.Lane {
			return nil
		}
		if lane.name != l.at.Lane {
			l.at = cursor{Lane: lane.name, MS: l.from, N: -1}
		}
		if done, err := l.lane(ctx, c, lane.q); err != nil || done {
			return err
		}
	}
	if len(lanes) == listLanes && l.filter.Lane == "" {
		l.page.Cursor = cursor{Lane: l.at.Lane, MS: math.MaxInt64}.encode()
	}
	return nil
}

// lane lists one lane from the cursor; done says that the page is full.
func (l *List) lane(ctx context.Context, c *db.Conn, q int64) (done bool, err error) {
	if l.filter.State == job.Running {
		return l.leased(ctx, c, q)
	}
	l.passed = len(l.byLane[q])
	return l.walk(ctx, c, table.OpenAt, table.OpenAfter, q, job.Scheduled, func(v []driver.Value) (*table.Row, int64) {
		r := (*table.Cells)(&v).Row()
		r.Topic, r.Lane = l.filter.Topic, l.at.Lane
		return r, clock.Millis(r.DueAt)
	})
}

// leased lists the running jobs of a lane. Its rows are all read for each page: no more than its limit.
func (l *List) leased(ctx context.Context, c *db.Conn, q int64) (done bool, err error) {
	var rows []*table.Row
	for _, m := range l.byLane[q] {
		if err := c.Query(ctx, table.JobWithoutBodyByN, func(v []driver.Value) error {
			rows = append(rows, (*table.Cells)(&v).Row())
			return nil
		}, m.N); err != nil {
			return false, err
		}
	}
	slices.SortFunc(rows, func(a, b *table.Row) int {
		return cmp.Or(cmp.Compare(clock.Millis(a.DueAt), clock.Millis(b.DueAt)), cmp.Compare(a.N, b.N))
	})
	for _, r := range rows {
		k := r.Key()
		if !(table.Key{Due: l.at.MS, N: l.at.N}).Before(k) || k.Due < l.from || k.Due >= l.to {
			continue
		}
		r.State, r.Topic, r.Lane = job.Running, l.filter.Topic, l.at.Lane
		l.at.MS, l.at.N = k.Due, k.N
		l.looked++
		l.add(r)
		if l.stop() {
			return true, nil
		}
	}
	return false, nil
}

// ended lists delivered, dead or cancelled jobs by the time of their end.
func (l *List) ended(ctx context.Context, c *db.Conn) error {
	topic := int64(0)
	err := c.Query(ctx, table.FindTopic, func(v []driver.Value) error {
		topic = db.Int(v[0])
		return nil
	}, l.filter.Namespace, l.filter.Topic)
	if err != nil || topic == 0 {
		return err
	}
	_, err = l.walk(ctx, c, table.EndedAt, table.EndedAfter, topic, l.filter.State, func(v []driver.Value) (*table.Row, int64) {
		c := table.Cells(v)
		r := c.Row()
		c.Names(r)
		return r, clock.Millis(r.FinishedAt)
	})
	return err
}

// walk reads rows from the cursor on, chunk by chunk, until the page is full (done) or there are no more. The
// statement same reads on within the cursor's millisecond, later reads what comes after that moment: one
// for both would look at every row of a moment again for each chunk.
func (l *List) walk(
	ctx context.Context, c *db.Conn, same, later db.Statement, of int64, state job.State,
	read func([]driver.Value) (r *table.Row, at int64),
) (done bool, err error) {
	if l.at.MS < l.from {
		l.at.MS, l.at.N = l.from, -1
	}
	next := same
	for {
		chunk, rows := l.chunk(), 0
		args := []driver.Value{of, string(state), l.to, l.at.MS, int64(chunk)}
		if next == same {
			args = []driver.Value{of, string(state), l.to, l.at.MS, l.at.N, int64(chunk)}
		}
		err := c.Query(ctx, next, func(v []driver.Value) error {
			rows++
			r, at := read(v)
			l.at.MS, l.at.N = at, r.N
			l.looked++
			l.add(r)
			if done = l.stop(); done {
				return db.ErrStop
			}
			return nil
		}, args...)
		switch {
		case err != nil || done:
			return done, err
		case rows == chunk:
			next = same
		case next == later:
			return false, nil
		default:
			next = later
		}
	}
}

// chunk is how many rows to read at once: no more than the page can take and those that are passed over, unless a filter
// may drop some.
func (l *List) chunk() int {
	f := &l.filter
	if f.Label == "" && f.Reason == "" && f.Status == 0 && (f.Lane == "" || !f.State.Ended()) {
		return max(1, min(listChunk, l.filter.Limit-len(l.page.Jobs)+l.passed))
	}
	return listChunk
}
