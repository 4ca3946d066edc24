package settings

import (
	"embed"

	"github.com/ringback/ringback/store/redis/script"
)

//go:embed *.lua
var files embed.FS

var (
	scriptPutDocument = script.New(files, "put_document")
	scriptCopyLimits  = script.New(files, "copy_limits")
	scriptPutLane     = script.New(files, "put_lane", script.MovingJobs)
)
