package jobs

import (
	"embed"

	"github.com/ringback/ringback/store/redis/script"
)

//go:embed *.lua
var files embed.FS

var (
	scriptInsert  = script.New(files, "insert", script.MovingJobs)
	scriptGet     = script.New(files, "get", script.ReadingJobs)
	scriptKnown   = script.New(files, "known", script.ReadingJobs)
	scriptPage    = script.New(files, "page", "record read_without_body")
	scriptReplace = script.New(files, "replace", script.MovingJobs, "reply")
	scriptCancel  = script.New(files, "cancel", script.EndingJobs, "reply")
	scriptRevive  = script.New(files, "revive", script.MovingJobs)
	scriptPurge   = script.New(files, "purge", script.EndingJobs)
)
