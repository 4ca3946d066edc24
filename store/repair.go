package store

import "time"

// RepairKind says what a Repair found and mended.
type RepairKind string

// The kinds of repairs.
const (
	// RepairUnplaced: a job that was in no queue and in no list of ended jobs. An unfinished one is due again.
	RepairUnplaced RepairKind = "unplaced"
	// RepairMisplaced: a job that was in a place other than its own, or in several.
	RepairMisplaced RepairKind = "misplaced"
	// RepairNoJob: an entry of a queue, of a list of ended jobs or of the outbox whose job does not exist.
	RepairNoJob RepairKind = "no_job"
	// RepairOutbox: a job in the outbox that the carrier would not have found.
	RepairOutbox RepairKind = "outbox"
	// RepairAgenda: a queue with jobs that the carrier would not have looked at, or not in time.
	RepairAgenda RepairKind = "agenda"
	// RepairQueue: a queue that could not be found by its name or number, or was not listed.
	RepairQueue RepairKind = "queue"
	// RepairLeftover: progress, attempts or a remembered id of a job that does not exist.
	RepairLeftover RepairKind = "leftover"
	// RepairCounter: a topic's counter that did not agree with its jobs.
	RepairCounter RepairKind = "counter"
	// RepairEmptied: a store whose data were removed while it was in use.
	RepairEmptied RepairKind = "emptied"
)

// RepairKinds are all kinds.
func RepairKinds() []RepairKind {
	return []RepairKind{
		RepairUnplaced, RepairMisplaced, RepairNoJob, RepairOutbox, RepairAgenda, RepairQueue, RepairLeftover,
		RepairCounter, RepairEmptied,
	}
}

// RepairResult is the result of a Repair.
type RepairResult struct {
	// Repairs counts what was repaired, by kind; nil: nothing. The engine has logged it.
	Repairs map[RepairKind]int
	// Complete is set by the call that ended a check of the whole shard.
	Complete bool
	// Wait is the time until the next call; negative: no further call is needed.
	Wait time.Duration
}
