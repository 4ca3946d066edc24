// Package counts implements store.Counts on Redis. It reads counters and the sizes of sets, and no jobs but the heads
// of ready lists.
package counts

import (
	"embed"

	"github.com/ringback/ringback/store/redis/script"
	"github.com/ringback/ringback/store/redis/shard"
)

//go:embed *.lua
var files embed.FS

var (
	scriptLaneCounts   = script.New(files, "lane_counts", "record")
	scriptThrottles    = script.New(files, "throttles")
	scriptOpenBreakers = script.New(files, "open_breakers")
	scriptQueueState   = script.New(files, "queue_state", script.ReadingJobs, "limits throttle")
	scriptTopicState   = script.New(files, "topic_state", "window clock_steps permits")
)

// Counts counts the jobs of one shard. It is safe for concurrent use.
type Counts struct{ *shard.Shard }
