// Package queue implements store.Queue on Redis: claims, settlements, wake-ups and rate permits. Claims take throttles,
// limits and rates into account in their script (claim.lua), which runs in one round trip with the settlement before
// it.
//
// It does not know how jobs are registered, listed or deleted.
package queue

import (
	"embed"
	"sync"

	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

//go:embed *.lua
var files embed.FS

var (
	scriptClaim   = layout.New(files, "claim", layout.MovingJobs, "grant")
	scriptOverdue = layout.New(files, "overdue", layout.ReadingJobs, "run")
	scriptExpire  = layout.New(files, "expire", layout.MovingJobs)
	scriptSettle  = layout.New(files, "settle", layout.EndingJobs, "outbox history health")
	scriptPermit  = layout.New(files, "permit", "window grant clock_steps permits")
	scriptNotify  = layout.New(files, "notify", layout.MovingJobs)
)

// Queue is the queues of one shard. It is safe for concurrent use.
type Queue struct {
	*shard.Shard
	mu        sync.Mutex
	listeners []*connect.Listener // one for each Wait in progress, and those of ended ones
	idle      []*connect.Listener
	closed    bool
}

// New returns the queues of a shard.
func New(s *shard.Shard) *Queue { return &Queue{Shard: s} }

// Close closes the connections that Wait uses.
func (s *Queue) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.listeners {
		l.Close()
	}
}
