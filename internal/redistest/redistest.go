// Package redistest starts Redis servers for tests: single ones, also with TLS or on a unix socket, clusters,
// sentinels, and a proxy that injects network faults. Each server has free loopback ports and a new folder. It is
// killed by its process id when the test ends, and on Linux by the kernel when the test's process ends first.
//
// A test that needs a server is skipped with -short, and where redis-server (for a cluster redis-cli, too) is not
// installed; with CI=true in the environment the latter fails. A server that does not start, or a wait that times out,
// fails the test.
package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A Server is a redis-server under test. Its methods may only be called from the test's goroutine, except Addr and URL.
type Server struct {
	tb      testing.TB
	binary  string
	dir     string
	port    int
	bus     int    // the cluster bus port
	socket  string // the unix socket that is listened on, if any, and then no port
	url     func() string
	options func() *redis.Options     // of its clients
	prepare func() error              // called before its first start on a port; may be nil
	command func() []string           // its arguments
	ready   func(*redis.Client) error // called after each start; may be nil

	mu     sync.Mutex
	cmd    *exec.Cmd
	done   chan struct{} // closed when cmd has ended
	paused bool
	out    *output
}

// Start runs a redis-server and waits until it answers. Args are settings as on its command line ("--appendonly",
// "yes"); later ones win. By default it writes nothing to disk. Addr and URL contain no password.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s := newServer(tb, args)
	s.launch()
	return s
}

// newServer returns a plain server that is not started.
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

// find is Binary for a named program.
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

// Addr returns host:port, or the path of a unix socket.
func (s *Server) Addr() string {
	if s.socket != "" {
		return s.socket
	}
	return fmt.Sprintf("127.0.0.1:%d", s.port)
}

// URL returns the server's address for clients.
func (s *Server) URL() string { return s.url() }

// Stop makes the server save and exit, and waits for it.
func (s *Server) Stop() {
	s.tb.Helper()
	s.end(os.Interrupt)
}

// Kill kills the server and waits for it. Killing it again does nothing.
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

// settings returns the default settings of a server.
func (s *Server) settings() []string {
	return []string{
		"--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--daemonize", "no", "--loglevel", "warning",
	}
}

// password returns the password in args, if any.
func password(args []string) string {
	found := ""
	for i := 1; i < len(args); i++ {
		if args[i-1] == "--requirepass" {
			found = args[i]
		}
	}
	return found
}
