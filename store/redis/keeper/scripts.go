package keeper

import (
	"embed"

	"github.com/ringback/ringback/store/redis/script"
)

//go:embed *.lua
var files embed.FS

var (
	scriptLead    = script.New(files, "lead")
	scriptAgenda  = script.New(files, "agenda", script.ReadingJobs)
	scriptCarry   = script.New(files, "carry", script.EndingJobs)
	scriptSweep   = script.New(files, "sweep", script.EndingJobs)
	scriptForget  = script.New(files, "forget")
	scriptStep    = script.New(files, "step", script.ReadingJobs)
	scriptRescore = script.New(files, "rescore", script.MovingJobs, "clock_steps")
	scriptAlarm   = script.New(files, "alarm", script.MovingJobs, "outbox")
)
