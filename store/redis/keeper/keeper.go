// Package keeper implements store.Keeper on Redis: it moves due jobs to ready, expires leases, reads the outbox,
// applies retention, and forgets unused lanes. It follows steps of Redis's clock. A carrier calls it, under a lock that
// Lead takes.
package keeper

import (
	"context"
	"embed"
	"sync"
	"time"

	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/repair"
	"github.com/ringback/ringback/store/redis/settings"
	"github.com/ringback/ringback/store/redis/shard"
)

//go:embed *.lua
var files embed.FS

var (
	scriptLead    = layout.New(files, "lead")
	scriptExtend  = layout.New(files, "extend")
	scriptRelease = layout.New(files, "release")
	scriptAgenda  = layout.New(files, "agenda", layout.ReadingJobs)
	scriptCarry   = layout.New(files, "carry", layout.EndingJobs)
	scriptSweep   = layout.New(files, "sweep", layout.EndingJobs)
	scriptForget  = layout.New(files, "forget")
	scriptStep    = layout.New(files, "step", layout.ReadingJobs)
	scriptRescore = layout.New(files, "rescore", layout.MovingJobs, "clock_steps")
	scriptAlarm   = layout.New(files, "alarm", layout.MovingJobs, "outbox")
)

// Keeper maintains one shard. It is safe for concurrent use.
type Keeper struct {
	*shard.Shard
	policies *settings.Documents
	repairs  *repair.Repairer
	process  *Process
	clock    stepDetector
	wakeups  connect.Listener // of the agenda
	// unreadable logs outbox entries that cannot be decoded: they are read in every round.
	unreadable logs.Limited

	mu          sync.Mutex
	sweepAfter  string            // the last topic of the last Sweep
	sweeps      int               // complete ones over all topics
	forgetAfter map[string]string // the last lane that was checked for use, by topic, of topics with many
}

// Process is what the keepers of one process share.
type Process struct {
	id      string               // marks its readings of Redis's clock
	elapsed func() time.Duration // a monotonic clock
}

// NewProcess returns a process with a monotonic clock.
func NewProcess(elapsed func() time.Duration) *Process {
	return &Process{id: string(store.NewToken()), elapsed: elapsed}
}

// New returns the keeper of a shard.
func New(s *shard.Shard, p *Process, policies *settings.Documents, repairs *repair.Repairer) *Keeper {
	return &Keeper{
		Shard: s, process: p, policies: policies, repairs: repairs,
		unreadable: logs.Limited{Logger: s.Log, Interval: time.Minute}, forgetAfter: make(map[string]string),
	}
}

// WaitAgenda blocks on a connection until an earlier moment is on the agenda.
func (s *Keeper) WaitAgenda(ctx context.Context, timeout time.Duration) (bool, error) {
	moved, err := s.wakeups.Pop(ctx, s.Client, []string{s.Keys.CarrierWakeup}, 1, timeout)
	return len(moved) > 0, err
}

// Close closes the connection that WaitAgenda uses.
func (s *Keeper) Close() { s.wakeups.Close() }
