package counts

import (
	"embed"

	"github.com/ringback/ringback/store/redis/script"
)

//go:embed *.lua
var files embed.FS

var (
	scriptWaiting      = script.New(files, "waiting")
	scriptThrottles    = script.New(files, "throttles")
	scriptOpenBreakers = script.New(files, "open_breakers")
)
