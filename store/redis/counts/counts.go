// Package counts implements store.Counts on Redis. It reads counters and the sizes of sets, and no jobs but the heads
// of ready lists.
package counts

import (
	"embed"

	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

//go:embed *.lua
var files embed.FS

var (
	scriptLaneCounts   = layout.New(files, "lane_counts", "record")
	scriptThrottles    = layout.New(files, "throttles")
	scriptOpenBreakers = layout.New(files, "open_breakers")
	scriptQueueState   = layout.New(files, "queue_state", layout.ReadingJobs, "limits throttle")
	scriptTopicState   = layout.New(files, "topic_state", "window clock_steps permits")
)

// Counts counts the jobs of one shard. It is safe for concurrent use.
type Counts struct{ *shard.Shard }
