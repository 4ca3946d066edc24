package store

import (
	"context"
	"iter"
	"time"

	"github.com/ringback/ringback/job"
)

// Auditor checks the data of a store against its invariants, while other processes use the store.
type Auditor interface {
	// Shards is the number of shards.
	Shards() int

	// Audit looks at all data of a shard once, in bounded steps, and yields what each has found. It stops after an
	// error. The caller waits for Pause of a page before it asks for the next one. With repair each step also repairs
	// what it finds: the check and its repair are atomic, so that a repeated repair, or one beside a change, does
	// nothing wrong. No repair loses a job, or makes one due that has ended.
	//
	// A page is right when it is read, but a fault may be gone by the next look: the caller looks twice.
	Audit(ctx context.Context, shard int, repair bool) iter.Seq2[AuditPage, error]

	// ListDocuments is that of Settings.
	ListDocuments(ctx context.Context, after DocumentKey, limit int) (docs []Document, revision int64, err error)

	// Unfinished reports for each job whether any shard has it, and it has not ended.
	Unfinished(ctx context.Context, refs []job.Ref) ([]bool, error)

	// Close ends the use of the store.
	Close() error
}

// AuditPage is the result of one step of an audit.
type AuditPage struct {
	Faults []Fault
	// Ledger has what the step has counted. The sum over all pages is the shard's.
	Ledger Ledger
	// Pause is the time until the next step, so that the store has room for others.
	Pause time.Duration
}

// Fault is one violation of an invariant.
type Fault struct {
	Kind  RepairKind
	Shard int
	// Where is the queue, topic or index, as far as it is known.
	Where string
	// ID is the job's, with its namespace before it outside the default one; empty: the fault is not about one job.
	ID string
	// Detail says what is wrong.
	Detail string
	// Repaired is set by an audit with repair. A fault without it is left as it was.
	Repaired bool
	// After is the least time between two looks that find a fault of its kind; zero: any.
	After time.Duration
}

// Ledger are numbers of jobs, each counted in three ways.
type Ledger struct {
	Records  States // by their records
	Places   States // entries of queues and of lists of ended jobs
	Counters States // counters of topics. Those of ended jobs include jobs that were removed.
	// Registered is the counter of registrations. It is the sum of Counters.
	Registered int64
	Outbox     int64 // entries
}

// States are numbers of jobs by state.
type States struct{ Waiting, Running, Delivered, Dead, Cancelled int64 }

// Sum returns the number of all jobs.
func (s States) Sum() int64 { return s.Waiting + s.Running + s.Delivered + s.Dead + s.Cancelled }

// Plus returns the sums of two numbers of jobs.
func (s States) Plus(o States) States {
	return States{
		Waiting: s.Waiting + o.Waiting, Running: s.Running + o.Running,
		Delivered: s.Delivered + o.Delivered, Dead: s.Dead + o.Dead, Cancelled: s.Cancelled + o.Cancelled,
	}
}

// Plus returns the sums of two ledgers.
func (l Ledger) Plus(o Ledger) Ledger {
	return Ledger{
		Records: l.Records.Plus(o.Records), Places: l.Places.Plus(o.Places), Counters: l.Counters.Plus(o.Counters),
		Registered: l.Registered + o.Registered, Outbox: l.Outbox + o.Outbox,
	}
}
