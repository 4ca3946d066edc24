// Package settings implements store.Settings on Redis: documents such as the policies of topics and the settings of
// lanes. It copies the limits that scripts read to the shards.
//
// Policies are in one hash for all shards. Each shard has a copy of their limits, which the carrier brings up to date.
// A lane's settings are on the lane's shard.
package settings

import (
	"embed"
	"log/slog"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

//go:embed *.lua
var files embed.FS

var (
	scriptPutDocument = layout.New(files, "put_document", "changes")
	scriptCopyLimits  = layout.New(files, "copy_limits")
	scriptPutLane     = layout.New(files, "put_lane", layout.MovingJobs+" changes")
)

// Lanes implements store.Settings for the lanes of one shard. It is safe for concurrent use.
type Lanes struct{ *shard.Shard }

// Documents implements store.Settings for the documents of all shards. It is safe for concurrent use.
type Documents struct {
	*layout.Runner
	prefix string
	limits policy.Limits // of topics without a stored policy
	shards []*shard.Shard
	log    *slog.Logger
}

// NewDocuments returns the documents of a store with shards.
func NewDocuments(
	r *layout.Runner, prefix string, limits policy.Limits, shards []*shard.Shard, log *slog.Logger,
) *Documents {
	return &Documents{Runner: r, prefix: prefix, limits: limits, shards: shards, log: log}
}
