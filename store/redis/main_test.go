package redis

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	// miniredis makes a Lua state of 100 kB for each call of a script, and four times less often collecting them costs
	// little memory.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
