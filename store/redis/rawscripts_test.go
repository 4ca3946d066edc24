package redis

import (
	"embed"

	"github.com/ringback/ringback/store/redis/layout"
)

// Scripts that tests call with keys and arguments that the engine would not send.
//
//go:embed jobs/*.lua settings/*.lua
var luaFiles embed.FS

var (
	scriptRevive  = layout.New(luaFiles, "jobs/revive", layout.MovingJobs)
	scriptReplace = layout.New(luaFiles, "jobs/replace", layout.MovingJobs, "reply")
	scriptCancel  = layout.New(luaFiles, "jobs/cancel", layout.EndingJobs, "reply")
	scriptPurge   = layout.New(luaFiles, "jobs/purge", layout.EndingJobs)
	scriptPutLane = layout.New(luaFiles, "settings/put_lane", layout.MovingJobs)
)
