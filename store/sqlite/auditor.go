// This part of the package checks the tables of a database against each other, and repairs them while no process uses
// it.
//
// A process that has the database open keeps its counters and queues in memory, and would not see a repair. An audit
// without repair reads one snapshot, so that it finds no fault which a change beside it makes. It reads the tables by
// their keys, some thousand rows at a time, and keeps a few numbers of each lane and topic.

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

const (
	// pageRows bounds the rows of one step.
	pageRows = 2048
	// maxPause bounds the pause after a step, which is as long as the step while a process uses the database. Longer
	// ones would let its log grow.
	maxPause = 100 * time.Millisecond
)

// An auditor audits a database. It implements store.Auditor.
type auditor struct{ file *db.File }

var _ store.Auditor = (*auditor)(nil)

// openAuditor opens an existing database. With repair it must not be in use.
func openAuditor(ctx context.Context, path string, repair bool, log *slog.Logger) (*auditor, error) {
	f, err := db.OpenFile(ctx, table.Schema, path, repair, log)
	if err != nil {
		return nil, err
	}
	return &auditor{f}, nil
}

// Shards implements store.Auditor.
func (a *auditor) Shards() int { return 1 }

// Close implements store.Auditor.
func (a *auditor) Close() error { return a.file.Close() }

// Audit implements store.Auditor. Without repair it reads one snapshot.
func (a *auditor) Audit(ctx context.Context, _ int, repair bool) iter.Seq2[store.AuditPage, error] {
	return func(yield func(store.AuditPage, error) bool) {
		p := &pass{
			Conn: a.file.Conn, repair: repair, inUse: a.file.InUse, now: time.Now().UnixMilli(),
			queues: map[int64]*laneSums{}, topics: map[int64]*topicSums{}, leased: map[int64]int64{},
		}
		var err error
		if repair {
			err = p.run(ctx, a.file.Change, yield)
		} else {
			err = a.file.Snapshot(ctx, func(ctx context.Context, _ *db.Conn) error {
				return p.run(ctx, func(do func() error) error { return do() }, yield)
			})
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(store.AuditPage{}, fmt.Errorf("audit the database: %w", err))
		}
	}
}

// errStopped ends a pass whose caller wants no more pages.
var errStopped = errors.New("the audit was stopped")

// A pass is one look at all tables.
type pass struct {
	*db.Conn
	repair, inUse bool
	now           int64 // in ms

	page   store.AuditPage
	queues map[int64]*laneSums
	topics map[int64]*topicSums
	leased map[int64]int64 // jobs of leases that were read: their numbers, and those of the leases
}

// A step reads the next rows of a table, after a key. It returns the last key and whether there may be more rows.
type step func(p *pass, ctx context.Context, after int64) (last int64, more bool, err error)

// steps of a pass, in order: a repair makes what later steps count.
var steps = []step{
	tableStep(spanOfQueues, checksOfQueues, nil),
	tableStep(spanOfJobs, checksOfJobs, (*pass).sumJobs),
	tableStep(spanOfBodies, checksOfBodies, nil),
	tableStep(spanOfFirst, checksOfFirst, nil),
	tableStep(spanOfAttempts, checksOfAttempts, nil),
	(*pass).checkLeases, (*pass).checkQueues, (*pass).checkTopics, (*pass).checkOutbox,
}

// run makes all steps, each by commit, and yields the page of each call.
func (p *pass) run(
	ctx context.Context, commit func(func() error) error, yield func(store.AuditPage, error) bool,
) error {
	for _, next := range steps {
		for last, more := int64(-1<<63), true; more; {
			if err := ctx.Err(); err != nil {
				return err
			}
			p.page = store.AuditPage{}
			began := time.Now()
			if err := commit(func() (err error) {
				last, more, err = next(p, ctx, last)
				return err
			}); err != nil {
				return err
			}
			if p.inUse {
				p.page.Pause = min(time.Since(began), maxPause)
			}
			if !yield(p.page, nil) {
				return errStopped
			}
		}
	}
	return nil
}

// tableStep returns the step of a table with a key of one number. sum is called with each span of keys after its
// checks; nil: it is not.
func tableStep(span db.Statement, checks []check, sum func(*pass, context.Context, int64, int64) error) step {
	return func(p *pass, ctx context.Context, after int64) (last int64, more bool, err error) {
		rows := int64(0)
		err = p.Query(ctx, span, func(v []driver.Value) error {
			last, rows = db.Int(v[0]), db.Int(v[1])
			return nil
		}, after, int64(pageRows))
		if err != nil || rows == 0 {
			return last, false, err
		}
		for i := range checks {
			if err := p.check(ctx, &checks[i], after, last); err != nil {
				return last, false, err
			}
		}
		if sum != nil {
			err = sum(p, ctx, after, last)
		}
		return last, rows == pageRows, err
	}
}

// check makes a check of the rows with keys above after and up to last.
func (p *pass) check(ctx context.Context, c *check, after, last int64) error {
	found, err := p.find(ctx, c, after, last)
	if err != nil || len(found) == 0 {
		return err
	}
	left := found
	if p.repair {
		for _, r := range found {
			for _, s := range c.mend {
				if _, err := p.Exec(s, arguments(s, r.key, p.now)...); err != nil {
					return err
				}
			}
		}
		if left, err = p.find(ctx, c, after, last); err != nil {
			return err
		}
	}
	for _, r := range found {
		p.note(store.Fault{
			Kind: c.kind, Where: r.where, ID: r.id, Detail: c.detail,
			Repaired: !slices.ContainsFunc(left, r.isSame),
		})
	}
	return nil
}

// A finding is a wrong row.
type finding struct {
	key       int64
	where, id string
}

func (f finding) isSame(o finding) bool { return f.key == o.key }

// find returns the rows that a check finds.
func (p *pass) find(ctx context.Context, c *check, after, last int64) (found []finding, err error) {
	err = p.Query(ctx, c.find, func(v []driver.Value) error {
		found = append(found, finding{db.Int(v[0]), db.Text(v[1]), db.Text(v[2])})
		return nil
	}, arguments(c.find, after, last, p.now)...)
	return found, err
}

// arguments returns those of the values ?1, ?2 … that a statement has.
func arguments(s db.Statement, values ...int64) (args []driver.Value) {
	for i, v := range values {
		if strings.Contains(s.Text(), "?"+strconv.Itoa(i+1)) {
			args = append(args, v)
		}
	}
	return args
}

// change runs a statement of a repair.
func (p *pass) change(s db.Statement, args ...driver.Value) (changed bool, err error) {
	if !p.repair {
		return false, nil
	}
	n, err := p.Exec(s, args...)
	return n > 0, err
}

func (p *pass) note(f store.Fault) { p.page.Faults = append(p.page.Faults, f) }

// ListDocuments implements store.Auditor.
func (a *auditor) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) (docs []store.Document, _ int64, err error) {
	err = a.file.Query(ctx, table.DocumentsAfter, func(v []driver.Value) error {
		docs = append(docs, store.Document{
			Key: store.DocumentKey{
				Kind: after.Kind, Namespace: db.Text(v[0]),
				Name: db.Text(v[1]), Lane: db.Text(v[2]),
			},
			Revision: db.Int(v[3]), Value: []byte(db.Text(v[4])),
		})
		return nil
	}, after.Kind, after.Namespace, after.Name, int64(limit))
	return docs, 0, db.Unavailable(err)
}

// Unfinished implements store.Auditor.
func (a *auditor) Unfinished(ctx context.Context, refs []job.Ref) ([]bool, error) {
	found := make([]bool, len(refs))
	for i, ref := range refs {
		if err := a.file.Query(ctx, table.KnownID, func(v []driver.Value) error {
			found[i] = db.Text(v[0]) == table.JobExists
			return nil
		}, ref.ID, ref.Namespace); err != nil {
			return nil, db.Unavailable(err)
		}
	}
	return found, nil
}
