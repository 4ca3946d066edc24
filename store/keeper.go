package store

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
)

// Keeper is the part of a shard that its carrier uses: it moves due jobs, expires leases, relays the outbox, applies
// retention and repairs the data.
type Keeper interface {
	// Lead takes the shard's carrier lock for LeadershipTTL. ErrNotLeader: another process holds it. The lock only
	// saves work: each move is atomic without it.
	Lead(ctx context.Context) (Leadership, error)

	// Carry makes one bounded round of moves. It removes the relayed outbox entries, processes the queues on the agenda
	// whose moment has come, makes jobs with an expired lease due again, moves due jobs to ready, notifies queues, and
	// schedules each queue's next moment. The result says what remains to be done.
	Carry(ctx context.Context, token Token, options CarryOptions) (CarryResult, error)

	// WaitAgenda blocks until a moment was scheduled before the head of the agenda, and reports whether one was: false
	// and no error after timeout. It returns soon after ctx ends. A process makes at most one WaitAgenda per shard at a
	// time.
	WaitAgenda(ctx context.Context, timeout time.Duration) (moved bool, err error)

	// Sweep removes up to limit ended jobs and as many remembered ids that are beyond their retention. From time to
	// time it also removes unused topics and lanes: those without jobs, policy, settings, cooldown, breaker, counted
	// starts, alarm and known health (policy.Health.Known). It does so only while no repair is due. Totals keeps the
	// counts of removed topics. Topics of GroupInternal are kept.
	Sweep(ctx context.Context, token Token, limit int) (SweepResult, error)

	// Repair checks a bounded part of the shard's data and repairs each violation in one atomic step: a job in no place
	// or in two, an entry without a job, a counter that differs from its jobs. After a fault that may have lost writes
	// an engine checks the whole shard, within a minute for a million jobs. The shard's carrier calls Repair again
	// whenever Wait of its result has passed. A repaired job may be attempted once more.
	Repair(ctx context.Context) (RepairResult, error)

	// Alarm raises or clears a topic's alarm, on the shard that ShardOfTopic names, and reports whether that changed
	// its state. Only a change writes the alarm's outbox, in the same step.
	Alarm(ctx context.Context, token Token, alarm Alarm) (changed bool, err error)
}

// Leadership is a carrier lock that the caller holds.
type Leadership interface {
	// Extend renews the lock for another LeadershipTTL. ErrNotLeader: it was lost.
	Extend(ctx context.Context) error
	// Release gives the lock up, so that another process can take it at once.
	Release(ctx context.Context) error
}

// CarryOptions bounds one Carry.
type CarryOptions struct {
	// Lead is the carrier lock that the round extends first, in the same round trip; nil: none. ErrNotLeader: it was
	// lost, and no queue was changed.
	Lead Leadership
	// Queues bounds the agenda's queues to process; zero: 128.
	Queues int
	// Jobs bounds the jobs to move; zero: 1024.
	Jobs int
	// Ready bounds the length of a ready list; zero: 1024.
	Ready int
	// KeepLeases skips the expiry of leases in this round, so that settlements that a fault delayed come first.
	KeepLeases bool
	// ExpireLeasesBefore is the time that the caller expects the store's clock to show; zero: unknown. Leases with a
	// later deadline are kept, so that a clock that jumped ahead takes no job from a healthy worker.
	ExpireLeasesBefore time.Time
	// Relayed lists outbox entries whose jobs were inserted into their queues.
	Relayed []job.Ref
	// SkipOutbox is the number of the outbox's oldest entries to skip after the relayed ones are removed: those for
	// shards that are unavailable.
	SkipOutbox int
	// OutboxBytes bounds the size of the returned outbox entries, approximately; the first one always fits. Zero:
	// OutboxBytes.
	OutboxBytes int
}

// ExtendLead extends the lock of Lead, if there is one.
func (o *CarryOptions) ExtendLead(ctx context.Context) error {
	if o.Lead == nil {
		return nil
	}
	return o.Lead.Extend(ctx)
}

// OutboxBytes is the default of CarryOptions.OutboxBytes.
const OutboxBytes = 8 << 20

// CarryResult is the result of a Carry.
type CarryResult struct {
	// Moved counts the jobs that became ready.
	Moved int
	// ExpiredLeases counts the jobs that became due again because their lease had expired.
	ExpiredLeases int
	// Outbox lists up to MaxBatch jobs for the caller to insert into their queues and then to name in Relayed, the
	// oldest first.
	Outbox []NewJob
	// OutboxRead counts the outbox entries that were read: those returned and those that cannot be decoded.
	OutboxRead int
	// Next is the time until the head of the agenda; zero: more can be done at once; negative: the agenda is empty.
	Next time.Duration
	// Now is the store's clock during the round.
	Now time.Time
	// ClockStep is how far the store's clock was set ahead, or (negative) back, since the last round; zero: not at all.
	// An engine that uses this clock for more than due times moves lease deadlines, repeated wake-ups, cooldowns and
	// rate windows by the step, in this round and those that follow at once. Due times do not change, unless the engine
	// knows from a monotonic clock how long their jobs have waited.
	ClockStep time.Duration
}

// SweepResult is the result of a Sweep.
type SweepResult struct {
	Jobs int  // ended jobs that were removed
	IDs  int  // remembered ids that were removed
	More bool // limit was reached: call again
}

// Alarm is the state of a topic's alarm.
type Alarm struct {
	Namespace string
	Topic     string
	Raised    bool
	Outbox    []NewJob
}
