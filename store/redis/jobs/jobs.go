// Package jobs implements store.Jobs on Redis: it registers, reads, lists, replaces, cancels, revives and deletes jobs.
package jobs

import (
	"embed"

	"github.com/ringback/ringback/store/redis/health"
	"github.com/ringback/ringback/store/redis/script"
	"github.com/ringback/ringback/store/redis/shard"
)

//go:embed *.lua
var files embed.FS

var (
	scriptInsert     = script.New(files, "insert", script.MovingJobs)
	scriptGet        = script.New(files, "get", script.ReadingJobs)
	scriptGetRecords = script.New(files, "get_records", "record")
	scriptPutRecords = script.New(files, "put_records", script.MovingJobs)
	scriptKnown      = script.New(files, "known", script.ReadingJobs)
	scriptLanes      = script.New(files, "lanes")
	scriptUnfinished = script.New(files, "unfinished", "order")
	scriptEnded      = script.New(files, "ended", "order")
	scriptReplace    = script.New(files, "replace", script.MovingJobs, "reply")
	scriptCancel     = script.New(files, "cancel", script.EndingJobs, "reply")
	scriptRevive     = script.New(files, "revive", script.MovingJobs)
	scriptPurge      = script.New(files, "purge", script.EndingJobs)
)

// Jobs is the jobs of one shard. It is safe for concurrent use.
type Jobs struct {
	*shard.Shard
	health *health.Monitor
}

// New returns the jobs of a shard.
func New(s *shard.Shard, h *health.Monitor) *Jobs { return &Jobs{Shard: s, health: h} }
