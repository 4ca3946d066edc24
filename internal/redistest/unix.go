package redistest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
)

// longestSocket is how long the path of a unix socket may be on every system, in bytes.
const longestSocket = 100

// StartUnix is Start for a server on a unix socket alone: its Addr is the socket's path, its URL unix:///path.
func StartUnix(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s := newServer(tb, args)
	s.socket = filepath.Join(socketDir(tb), "r.sock")
	s.url = func() string { return "unix://" + s.socket }
	s.options = func() *redis.Options {
		return &redis.Options{Network: "unix", Addr: s.socket, Password: password(args)}
	}
	s.command = func() []string {
		return append(append(s.settings(), "--port", "0", "--unixsocket", s.socket), args...)
	}
	s.launch()
	return s
}

// socketDir makes a folder with a path as short as can be, which a test's own is not: it has the test's name in it.
func socketDir(tb testing.TB) string {
	tb.Helper()
	parent := os.TempDir()
	if len(parent) > longestSocket/2 {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "rb") //nolint:usetesting // its folders have long names
	if err != nil {
		tb.Fatalf("make a folder for a socket: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system clears its folder some day
	return dir
}
