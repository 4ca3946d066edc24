// Package jobs implements store.Jobs on Redis: it registers, reads, lists, replaces, cancels, revives and deletes jobs.
package jobs

import (
	"embed"

	"github.com/ringback/ringback/store/redis/health"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

//go:embed *.lua
var files embed.FS

var (
	scriptInsert     = layout.New(files, "insert", layout.MovingJobs)
	scriptGet        = layout.New(files, "get", layout.ReadingJobs)
	scriptGetRecords = layout.New(files, "get_records", "record")
	scriptPutRecords = layout.New(files, "put_records", layout.MovingJobs)
	scriptKnown      = layout.New(files, "known", layout.ReadingJobs)
	scriptLanes      = layout.New(files, "lanes")
	scriptUnfinished = layout.New(files, "unfinished", "order")
	scriptEnded      = layout.New(files, "ended", "order")
	scriptReplace    = layout.New(files, "replace", layout.MovingJobs, "reply")
	scriptCancel     = layout.New(files, "cancel", layout.EndingJobs, "reply")
	scriptRevive     = layout.New(files, "revive", layout.MovingJobs)
	scriptPurge      = layout.New(files, "purge", layout.EndingJobs)
)

// Jobs is the jobs of one shard. It is safe for concurrent use.
type Jobs struct {
	*shard.Shard
	health *health.Monitor
}

// New returns the jobs of a shard.
func New(s *shard.Shard, h *health.Monitor) *Jobs { return &Jobs{Shard: s, health: h} }
