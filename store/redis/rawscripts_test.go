package redis

import (
	"embed"

	"github.com/ringback/ringback/store/redis/script"
)

// Scripts that tests call with keys and arguments that the engine would not send.
//
//go:embed jobs/*.lua settings/*.lua
var luaFiles embed.FS

var (
	scriptRevive  = script.New(luaFiles, "jobs/revive", script.MovingJobs)
	scriptReplace = script.New(luaFiles, "jobs/replace", script.MovingJobs, "reply")
	scriptCancel  = script.New(luaFiles, "jobs/cancel", script.EndingJobs, "reply")
	scriptPurge   = script.New(luaFiles, "jobs/purge", script.EndingJobs)
	scriptPutLane = script.New(luaFiles, "settings/put_lane", script.MovingJobs)
)
