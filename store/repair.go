package store

import "time"

// RepairKind classifies a violation that Repair has repaired, or that an audit has found.
type RepairKind string

// The kinds of repairs.
const (
	// RepairUnplaced: a job that was in no queue and in no list of ended jobs. An unfinished one is due again.
	RepairUnplaced RepairKind = "unplaced"
	// RepairMisplaced: a job that was in a place other than its own, or in several.
	RepairMisplaced RepairKind = "misplaced"
	// RepairNoJob: an entry of a queue, of a list of ended jobs or of the outbox whose job does not exist.
	RepairNoJob RepairKind = "no_job"
	// RepairOutbox: an outbox job that was missing from the outbox's order.
	RepairOutbox RepairKind = "outbox"
	// RepairAgenda: a queue with jobs that was missing from the agenda, or scheduled too late.
	RepairAgenda RepairKind = "agenda"
	// RepairOrder: an ordered queue of which a job was missing in the order.
	RepairOrder RepairKind = "order"
	// RepairQueue: a queue that was missing from an index of queues.
	RepairQueue RepairKind = "queue"
	// RepairLeftover: progress, attempts or a remembered id of a job that does not exist.
	RepairLeftover RepairKind = "leftover"
	// RepairCounter: a topic's counter that differed from its jobs.
	RepairCounter RepairKind = "counter"
	// RepairLease: a claimed job whose lease does not end.
	RepairLease RepairKind = "lease"
	// RepairLifetime: a waiting job with an expiry that was missing from the index of expiries.
	RepairLifetime RepairKind = "lifetime"
	// RepairEmptied: the data of the store were removed while it was in use.
	RepairEmptied RepairKind = "emptied"
)

// The kinds of faults that audits find and nothing repairs.
const (
	// FaultUnreadable: what is stored of a job, or of an entry of the outbox, cannot be decoded.
	FaultUnreadable RepairKind = "unreadable"
	// FaultBody: a job whose body is lost.
	FaultBody RepairKind = "body"
	// FaultNameless: a job whose queue has lost its name.
	FaultNameless RepairKind = "nameless"
	// FaultRelay: an entry that stays in the outbox.
	FaultRelay RepairKind = "relay"
	// FaultSchedule: a schedule without an internal job, so that it makes no tick.
	FaultSchedule RepairKind = "schedule"
)

// RepairKinds returns the kinds of repairs.
func RepairKinds() []RepairKind {
	return []RepairKind{
		RepairUnplaced, RepairMisplaced, RepairNoJob, RepairOutbox, RepairAgenda, RepairOrder,
		RepairQueue, RepairLeftover, RepairCounter, RepairLease, RepairLifetime, RepairEmptied,
	}
}

// RepairResult is the result of a Repair.
type RepairResult struct {
	// Repairs counts the repairs by kind; nil: none. The engine has logged them.
	Repairs map[RepairKind]int
	// Complete is set by the last call of a check of the whole shard.
	Complete bool
	// Wait is the time until the next call; negative: no further call is needed.
	Wait time.Duration
}
