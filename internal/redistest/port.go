package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports are below the range of outgoing connections: such a connection could take the port of a server that restarts,
// or connect to itself.
const (
	firstPort = 10000
	lastPort  = 32000
)

// given are the ports that this process has handed out, each once.
var given sync.Map

// freePort returns a port without a listener.
func freePort(tb testing.TB) int {
	tb.Helper()
	var err error
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close() // it was never used
			return port
		}
	}
	tb.Fatalf("find a free port: %v", err)
	return 0
}
