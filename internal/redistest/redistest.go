// Package redistest starts real Redis for tests: single servers, with TLS or on a unix socket too, a cluster, servers
// that sentinels watch, and a proxy that does to connections what networks do. Each server has free loopback ports and a
// folder of its own; it is ended by its process id when the test ends, and on Linux by the kernel when the test's
// process ends before.
//
// With -short a test that needs a server is skipped, and also where redis-server (for a cluster redis-cli too) is not installed;
// the latter fails when the environment says CI=true. What does not start, or does not come about in time, fails the test.
package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout is how long a server may take until it answers, or has ended.
const startTimeout = 10 * time.Second

// A Server is a redis-server under test. Its methods may be called from the test's goroutine only, but Addr and URL
// from any.
type Server struct {
	tb      testing.TB
	binary  string
	dir     string
	port    int
	bus     int    // the second port, which cluster nodes speak to each other on
	socket  string // the unix socket that is listened on, if any, and then no port
	url     func() string
	options func() *redis.Options     // how it is reached
	prepare func() error              // what is done before it first starts on a port; may be nil
	command func() []string           // its arguments
	ready   func(*redis.Client) error // what is done each time it answers again; may be nil

	mu     sync.Mutex
	cmd    *exec.Cmd
	done   chan struct{} // closed when cmd has ended
	paused bool
	out    *output
}

// Start runs a redis-server and waits until it answers. It keeps nothing on disk, unless args say otherwise; they are
// settings as on its command line ("--appendonly", "yes"), later ones winning. Addr and URL tell no password.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s := newServer(tb, args)
	s.launch()
	return s
}

// newServer is a plain server that was not started yet.
func newServer(tb testing.TB, args []string) *Server {
	tb.Helper()
	s := &Server{tb: tb, binary: Binary(tb), dir: tb.TempDir(), out: &output{}}
	s.url = func() string { return "redis://" + s.Addr() }
	s.options = func() *redis.Options { return &redis.Options{Addr: s.Addr(), Password: password(args)} }
	s.command = func() []string { return append(s.settings(), args...) }
	return s
}

// Binary finds redis-server, or skips the test, or fails it when CI=true.
func Binary(tb testing.TB) string {
	tb.Helper()
	return find(tb, "redis-server")
}

// find is Binary for any program.
func find(tb testing.TB, program string) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("no servers with -short")
	}
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		tb.Fatalf("%s is needed and was not found: %v", program, err)
	}
	tb.Skip(program + " was not found")
	return ""
}

// Addr is host:port, or the path of a unix socket.
func (s *Server) Addr() string {
	if s.socket != "" {
		return s.socket
	}
	return fmt.Sprintf("127.0.0.1:%d", s.port)
}

// URL is the server as an address for clients.
func (s *Server) URL() string { return s.url() }

// Stop asks the server to save and end, and waits until it has.
func (s *Server) Stop() {
	s.tb.Helper()
	s.end(os.Interrupt)
}

// Kill ends the server as a crash does, and waits until it is gone. A server that is gone stays so.
func (s *Server) Kill() {
	s.tb.Helper()
	s.end(os.Kill)
}

// Restart runs the server again after Stop or Kill, on the same port and folder.
func (s *Server) Restart() {
	s.tb.Helper()
	if err := s.start(); err != nil {
		s.tb.Fatalf("redis-server does not start again: %v\n%s", err, s.out)
	}
}

// settings are what a server has unless it is told otherwise.
func (s *Server) settings() []string {
	return []string{
		"--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--daemonize", "no", "--loglevel", "warning",
	}
}

// password is the one that args set, if any.
func password(args []string) string {
	found := ""
	for i := 1; i < len(args); i++ {
		if args[i-1] == "--requirepass" {
			found = args[i]
		}
	}
	return found
}
