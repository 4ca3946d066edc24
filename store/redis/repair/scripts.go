package repair

import (
	"embed"

	"github.com/ringback/ringback/store/redis/script"
)

//go:embed *.lua
var files embed.FS

var (
	scriptIndex     = script.New(files, "index")
	scriptQueues    = script.New(files, "queues", script.MovingJobs, "mend")
	scriptEnded     = script.New(files, "ended", script.MovingJobs, "mend")
	scriptScan      = script.New(files, "scan", "record")
	scriptJobs      = script.New(files, "jobs", script.MovingJobs, "mend")
	scriptLeftovers = script.New(files, "leftovers")
	scriptOutbox    = script.New(files, "outbox")
	scriptAgenda    = script.New(files, "agenda")
	scriptCounts    = script.New(files, "counts")
	scriptBytes     = script.New(files, "bytes")
)
