package redistest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports are drawn from below those that systems give to outgoing connections: such a connection could take the port of
// a server that is down for a moment, or, dialling that port, reach itself.
const (
	firstPort = 10000
	lastPort  = 32000
)

// given are the ports that this process has handed out: none is given twice.
var given sync.Map

// freePort finds a port that nobody listens on.
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
