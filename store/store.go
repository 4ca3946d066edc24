package store

import (
	"context"
	"time"
)

// Store is an engine: documents that apply to all shards, and the shards. ShardOf is the shard of a queue.
type Store interface {
	// Shards returns the shards in order, 1 to job.MaxShards of them. Their number is fixed for the life of the data.
	// The slice must not be changed.
	Shards() []Shard

	Settings // of all kinds but KindLane

	// Tail passes events on to clients that watch them live.
	Tail

	// Ping checks that the store accepts writes. The error says why it does not.
	Ping(ctx context.Context) error

	// Close ends the use of the store. Calls in flight may fail with ErrUnavailable.
	Close() error
}

// Readiness says whether jobs are registered on a store, and delivered if the process delivers.
type Readiness struct {
	Store string // its name
	Err   error  // why not; nil: they are
}

// Shard is one independent part of a store. Callers take the smallest of its interfaces that they need.
type Shard interface {
	Queue
	Jobs
	Records
	Keeper
	Counts
	Settings // of KindLane, for the lanes of the shard's queues
}

// Bounds of the contract.
const (
	// MaxBatch is the maximum number of items in one call.
	MaxBatch = 512
	// TokenTTL is how long an engine remembers the result of a call by its token.
	TokenTTL = time.Minute
	// LeaseMargin is the time by which a lease outlasts its attempt's timeout, so that the settlement arrives in time.
	// For as long, carriers expire no lease after an outage of the store.
	LeaseMargin = 5 * time.Second
	// LeadershipTTL is the lifetime of a carrier lock that is not extended.
	LeadershipTTL = 3 * time.Second
	// RenotifyAfter is how long after a wake-up a queue with claimable jobs gets the next one.
	RenotifyAfter = time.Second
	// RenotifyUnreadAfter is the same for a queue of its topic's own group whose wake-up no Wait has returned yet.
	RenotifyUnreadAfter = 10 * time.Second
	// BreakerRetention is how long an open breaker without a probe is kept after its cooldown.
	BreakerRetention = time.Hour
	// MustNotExist is the revision of a write that requires that nothing is stored yet.
	MustNotExist int64 = -1
	// MustExist is the revision of a change of settings that requires that some are stored. Engines do not know it.
	MustExist int64 = -2
	// KeptChanges is how many changes of a kind of documents an engine remembers.
	KeptChanges = 512
	// CountedStarts is the largest rate, in starts per window, whose starts are counted one by one.
	CountedStarts = 64
)
