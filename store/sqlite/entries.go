package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

const (
	// endless is the age from which a claim counts as one that does not end. Consumers may extend their leases for
	// days.
	endless = 7 * 24 * time.Hour
	// relayWait is how long the oldest entry of the outbox may stay there.
	relayWait = 10 * time.Second
)

// checkLeases checks the rows of claims. Those of a database that is not in use are ended when it is opened.
func (p *pass) checkLeases(ctx context.Context, after int64) (last int64, more bool, err error) {
	type claim struct {
		c, claimed int64
		jobs       string
	}
	var claims []claim
	if err := p.Query(ctx, readLeases, func(v []driver.Value) error {
		claims = append(claims, claim{db.Int(v[0]), db.Int(v[1]), db.Text(v[2])})
		return nil
	}, after, int64(pageRows/128)); err != nil {
		return 0, false, err
	}
	for _, c := range claims {
		last = c.c
		where := fmt.Sprintf("leases, row %d", c.c)
		marks, err := table.ParseMarks(c.jobs)
		if err != nil {
			changed, err := p.change(deleteLease, c.c)
			p.note(store.Fault{
				Kind: store.RepairLease, Where: where,
				Detail: "its jobs cannot be read", Repaired: changed,
			})
			if err != nil {
				return last, false, err
			}
			continue
		}
		if p.inUse && c.claimed < p.now-endless.Milliseconds() {
			p.note(store.Fault{Kind: store.RepairLease, Where: where, Detail: "claimed more than a week ago"})
		}
		if err := p.checkMarks(ctx, c.c, where, marks); err != nil {
			return last, false, err
		}
	}
	return last, len(claims) == pageRows/128, nil
}

// checkMarks checks the jobs of a claim: they are unfinished, in the queue that the claim names, and in no other claim.
func (p *pass) checkMarks(ctx context.Context, c int64, where string, marks []table.Mark) error {
	var kept []string
	first := len(p.page.Faults)
	for _, m := range marks {
		f := store.Fault{
			Kind: store.RepairNoJob, Where: where, ID: fmt.Sprintf("number %d", m.N),
			Detail: "claimed, but there is no such job",
		}
		if err := p.Query(ctx, findMark, func(v []driver.Value) error {
			f.Kind, f.Where, f.ID = store.RepairMisplaced, db.Text(v[2]), db.Text(v[3])
			switch {
			case db.Int(v[1]) != 0:
				f.Detail = "claimed, but it has ended"
			case db.Int(v[0]) != m.Q:
				f.Detail = "claimed as a job of another queue"
			case p.leased[m.N] != 0:
				f.Detail = "claimed twice"
			default:
				f.Kind = ""
			}
			return nil
		}, m.N); err != nil {
			return err
		}
		if f.Kind != "" {
			p.note(f)
			continue
		}
		p.leased[m.N] = c
		kept = append(kept, fmt.Sprintf("[%d,%d]", m.Q, m.N))
	}
	n := int64(len(kept))
	running := store.States{Running: n}
	l := &p.page.Ledger
	l.Records = l.Records.Plus(store.States{Waiting: -n, Running: n})
	l.Places, l.Counters = l.Places.Plus(running), l.Counters.Plus(store.States{Waiting: -n, Running: n})
	faults := p.page.Faults[first:]
	if len(faults) == 0 {
		return nil
	}
	var changed bool
	var err error
	if len(kept) == 0 {
		changed, err = p.change(deleteLease, c)
	} else {
		changed, err = p.change(updateLease, c, "["+strings.Join(kept, ",")+"]")
	}
	for i := range faults {
		faults[i].Repaired = changed
	}
	return err
}

// checkOutbox checks that entries can be decoded, and are found under the name of their job.
func (p *pass) checkOutbox(ctx context.Context, after int64) (last int64, more bool, err error) {
	type rename struct {
		seq           int64
		namespace, id string
		fault         int
	}
	var renames []rename
	read, bytes := 0, 0
	if err := p.Query(ctx, readOutbox, func(v []driver.Value) error {
		entry := db.Blob(v[3])
		if bytes += len(entry); read > 0 && bytes > store.OutboxBytes {
			read = pageRows
			return db.ErrStop
		}
		last = db.Int(v[0])
		read++
		p.page.Ledger.Outbox++
		ref := job.Ref{Namespace: db.Text(v[1]), ID: db.Text(v[2])}
		f := store.Fault{Kind: store.FaultUnreadable, Where: "outbox", ID: nameOf(ref)}
		n, err := store.DecodeNewJob(entry)
		switch {
		case err != nil:
			f.Detail = err.Error()
			p.note(f)
		case n.Ref() != ref:
			renames = append(renames, rename{last, n.Namespace, n.ID, len(p.page.Faults)})
			f.Kind, f.Detail = store.RepairOutbox, "under the name of another job, so that it is relayed again and "+
				"again"
			p.note(f)
		case p.inUse && after == -1<<63 && read == 1:
			f.Kind, f.After, f.Detail = store.FaultRelay, relayWait, "the oldest entry, for more than ten seconds"
			p.note(f)
		}
		return nil
	}, after, int64(pageRows)); err != nil {
		return 0, false, err
	}
	for _, r := range renames {
		if p.page.Faults[r.fault].Repaired, err = p.change(updateOutbox, r.seq, r.namespace, r.id); err != nil {
			return last, false, err
		}
	}
	return last, read == pageRows, nil
}

// nameOf is jobName of a job.
func nameOf(ref job.Ref) string {
	if ref.Namespace == job.DefaultNamespace {
		return ref.ID
	}
	return ref.Namespace + "/" + ref.ID
}
