package redistest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
)

// longestSocket is the portable limit of a unix socket's path, in bytes.
const longestSocket = 100

// StartUnix is Start for a server on a unix socket only: Addr is the socket's path, URL is unix:///path.
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

// socketDir creates a folder with a short path: that of TempDir contains the test's name.
func socketDir(tb testing.TB) string {
	tb.Helper()
	parent := os.TempDir()
	if len(parent) > longestSocket/2 {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "rb") //nolint:usetesting // its paths are too long
	if err != nil {
		tb.Fatalf("make a folder for a socket: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system clears its temporary files
	return dir
}
