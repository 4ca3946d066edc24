package queue

import (
	"embed"

	"github.com/ringback/ringback/store/redis/script"
)

//go:embed *.lua
var files embed.FS

var (
	scriptClaim   = script.New(files, "claim", script.MovingJobs, "grant")
	scriptOverdue = script.New(files, "overdue", script.ReadingJobs, "run")
	scriptExpire  = script.New(files, "expire", script.MovingJobs)
	scriptSettle  = script.New(files, "settle", script.EndingJobs, "outbox")
	scriptPermit  = script.New(files, "permit", "window grant clock_steps")
	scriptRing    = script.New(files, "ring", script.MovingJobs)
)
