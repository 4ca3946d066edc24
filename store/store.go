package store

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Store is an engine: the policies of topics, which apply to all shards, and the shards. Router selects the shard of a
// queue or of a job.
type Store interface {
	// Shards returns the shards in order, 1 to job.MaxShards of them. Their number is fixed for the life of the data. The
	// slice must not be changed.
	Shards() []Shard

	// PutTopic writes a topic's policy for all shards and returns it with its new revision. A revision other than 0 must
	// equal the stored one (MustNotExist: none may be stored), else the error is ErrVersion. The policy applies to claims,
	// carries and sweeps that begin after PutTopic has returned. Due jobs of a resumed topic are notified within a second.
	PutTopic(ctx context.Context, topic Topic) (Topic, error)

	// Topics reads all stored policies in order of namespace and name. It also returns the revision that ClaimResult
	// reports until one of them changes.
	Topics(ctx context.Context) (topics []Topic, revision int64, err error)

	// Ping checks that the store accepts writes. The error says why it does not.
	Ping(ctx context.Context) error

	// Close ends the use of the store. Calls in flight may fail with ErrUnavailable.
	Close() error
}

// Shard is one independent part of a store. Callers take the smallest of its interfaces that they need.
type Shard interface {
	Queue
	Jobs
	Keeper
	Counts
	LaneSettings
}

// Bounds of the contract.
const (
	// MaxBatch is the maximum number of items in one call.
	MaxBatch = 512
	// TokenTTL is how long an engine remembers the result of a call by its token.
	TokenTTL = time.Minute
	// LeadershipTTL is the lifetime of a carrier lock that is not extended.
	LeadershipTTL = 3 * time.Second
	// RenotifyAfter is how long after a wake-up a queue with claimable jobs gets the next one.
	RenotifyAfter = time.Second
	// BreakerRetention is how long an open breaker without a probe is kept after its cooldown.
	BreakerRetention = time.Hour
	// MustNotExist is the revision of a write that requires that nothing is stored yet.
	MustNotExist int64 = -1
	// CountedStarts is the largest rate, in starts per window, whose starts are counted one by one.
	CountedStarts = 64
	// GroupPush is the group of the pools that POST to URLs.
	GroupPush = "push"
)

// Topic is the stored policy of a topic, without defaults.
type Topic struct {
	Namespace string
	Name      string
	Policy    policy.Topic
	// Revision grows with each change, also after a failover that rolled changes back.
	Revision int64
	// Durability is that of the PutTopic that returned the topic, as in job.Job.
	Durability *job.Durability
}
