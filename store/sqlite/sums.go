package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
)

// laneSums are numbers of a lane's jobs.
type laneSums struct{ unfinished, rows int64 }

// topicSums are numbers of a topic's jobs and their bytes.
type topicSums struct {
	states                    store.States // all that wait or run are waiting
	bytes, doneBytes, deadLen int64        // of unfinished jobs; of those that are kept as done, and as dead
}

// sumJobs adds some jobs to the sums of their lanes and topics, and looks for those that cannot be decoded.
func (p *pass) sumJobs(ctx context.Context, after, last int64) error {
	if err := p.Query(ctx, sumJobs, func(v []driver.Value) error {
		q, t := atPlace(p.queues, db.Int(v[0])), atPlace(p.topics, db.Int(v[1]))
		state, unfinished, n, bytes := job.State(db.Text(v[2])), db.Int(v[3]) != 0, db.Int(v[4]), db.Int(v[5])
		var counted store.States
		q.rows += n
		switch {
		case unfinished:
			q.unfinished += n
			counted.Waiting, t.bytes = n, t.bytes+bytes
		case state == job.Delivered:
			counted.Delivered, t.doneBytes = n, t.doneBytes+bytes
		case state == job.Cancelled:
			counted.Cancelled, t.doneBytes = n, t.doneBytes+bytes
		case state == job.Dead:
			counted.Dead, t.deadLen = n, t.deadLen+bytes
		}
		t.states = t.states.Plus(counted)
		p.page.Ledger.Records = p.page.Ledger.Records.Plus(counted)
		return nil
	}, after, last); err != nil {
		return err
	}
	return p.Query(ctx, readSpecs, func(v []driver.Value) error {
		var spec job.Spec
		if err := codec.DecodeSpec(db.Blob(v[2]), &spec, nil); err != nil {
			p.note(store.Fault{
				Kind: store.FaultUnreadable, Where: db.Text(v[0]), ID: db.Text(v[1]),
				Detail: "it cannot be decoded: " + err.Error(),
			})
		}
		return nil
	}, after, last)
}

// atPlace returns the sums under a key.
func atPlace[T any](sums map[int64]*T, key int64) *T {
	if sums[key] == nil {
		sums[key] = new(T)
	}
	return sums[key]
}

// counters are names and values of columns, as they are stored and as they were counted.
type counters struct {
	names           []string
	stored, counted []int64
}

// wrong describes the columns that differ; empty: none does.
func (c *counters) wrong() string {
	var texts []string
	for i, name := range c.names {
		if c.stored[i] != c.counted[i] {
			texts = append(texts, fmt.Sprintf("%s is %d, counted %d", name, c.stored[i], c.counted[i]))
		}
	}
	return strings.Join(texts, "; ")
}

// repairCounters writes the counters of a row unless they are right.
func (p *pass) repairCounters(c *counters, where string, update db.Statement, key int64) error {
	wrong := c.wrong()
	if wrong == "" {
		return nil
	}
	args := []driver.Value{key}
	for _, n := range c.counted {
		args = append(args, n)
	}
	changed, err := p.change(update, args...)
	p.note(store.Fault{Kind: store.RepairCounter, Where: where, Detail: wrong, Repaired: changed})
	return err
}

// counterRow is a row with counters.
type counterRow struct {
	key    int64
	name   string
	values []int64
}

// readCounters reads the next rows with counters.
func (p *pass) readCounters(
	ctx context.Context, read db.Statement, after int64,
) (rows []counterRow, last int64, err error) {
	err = p.Query(ctx, read, func(v []driver.Value) error {
		r := counterRow{key: db.Int(v[0]), name: db.Text(v[1])}
		for _, n := range v[2:] {
			r.values = append(r.values, db.Int(n))
		}
		rows, last = append(rows, r), r.key
		return nil
	}, after, int64(pageRows))
	return rows, last, err
}

// checkQueues compares the counters of lanes.
func (p *pass) checkQueues(ctx context.Context, after int64) (last int64, more bool, err error) {
	rows, last, err := p.readCounters(ctx, readQueues, after)
	for _, r := range rows {
		q := atPlace(p.queues, r.key)
		c := counters{[]string{"unfinished", "rows"}, r.values, []int64{q.unfinished, q.rows}}
		if err := p.repairCounters(&c, r.name, updateQueue, r.key); err != nil {
			return last, false, err
		}
		p.page.Ledger.Places.Waiting += r.values[0]
	}
	if after == -1<<63 { // once: those that are claimed do not wait
		p.page.Ledger.Places.Waiting -= int64(len(p.leased))
	}
	return last, len(rows) == pageRows, err
}

// topicColumns are the counters of topics.
var topicColumns = []string{
	"registered", "delivered", "dead", "cancelled", "bytes", "kept_done", "kept_done_bytes", "kept_dead",
	"kept_dead_bytes", "ids",
}

// checkTopics compares the counters of topics. Those of ended jobs include the jobs that were removed, so they are not
// smaller than the number of jobs.
func (p *pass) checkTopics(ctx context.Context, after int64) (last int64, more bool, err error) {
	rows, last, err := p.readCounters(ctx, readTopics, after)
	if err != nil {
		return last, false, err
	}
	for _, r := range rows {
		s, ids := atPlace(p.topics, r.key), int64(0)
		if err := p.Query(ctx, countIDs, func(v []driver.Value) error {
			ids = db.Int(v[0])
			return nil
		}, r.key); err != nil {
			return last, false, err
		}
		v := r.values
		delivered, dead, cancelled := max(v[1], s.states.Delivered), max(v[2], s.states.Dead), max(v[3],
			s.states.Cancelled)
		c := counters{topicColumns, v, []int64{
			s.states.Waiting + delivered + dead + cancelled, delivered, dead, cancelled, s.bytes,
			s.states.Delivered + s.states.Cancelled, s.doneBytes, s.states.Dead, s.deadLen, ids,
		}}
		if err := p.repairCounters(&c, r.name, updateTopic, r.key); err != nil {
			return last, false, err
		}
		l := &p.page.Ledger
		l.Registered += v[0]
		l.Counters = l.Counters.Plus(store.States{
			Waiting: v[0] - v[1] - v[2] - v[3], Delivered: v[1],
			Dead: v[2], Cancelled: v[3],
		})
		l.Places = l.Places.Plus(store.States{
			Delivered: s.states.Delivered, Dead: s.states.Dead,
			Cancelled: s.states.Cancelled,
		})
	}
	return last, len(rows) == pageRows, nil
}
