// Package jobs implements store.Jobs on Redis: it registers, reads, lists, replaces, cancels, revives and deletes jobs.
package jobs

import (
	"github.com/ringback/ringback/store/redis/health"
	"github.com/ringback/ringback/store/redis/shard"
)

// Jobs is the jobs of one shard. It is safe for concurrent use.
type Jobs struct {
	*shard.Shard
	health *health.Monitor
}

// New returns the jobs of a shard.
func New(s *shard.Shard, h *health.Monitor) *Jobs { return &Jobs{Shard: s, health: h} }
