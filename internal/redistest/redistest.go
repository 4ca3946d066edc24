// Package redistest starts real redis-servers for tests: each on a free loopback port, in a folder of its own, ended by
// its process id when the test ends, and on Linux by the kernel when the test's process ends before.
//
// Where redis-server is not installed a test is skipped, but fails when the environment says CI=true.
package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout is how long a server may take until it answers.
const startTimeout = 10 * time.Second

// A Server is a redis-server under test. Its methods may be called from the test's goroutine only, but Addr and URL
// from any.
type Server struct {
	tb     testing.TB
	binary string
	dir    string
	port   int
	args   []string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	out  *bytes.Buffer
}

// Start runs a redis-server and waits until it answers. It keeps nothing on disk, unless args say otherwise; they are
// settings as on its command line ("--appendonly", "yes"), later ones winning.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s := &Server{tb: tb, binary: Binary(tb), dir: tb.TempDir(), args: args}
	tb.Cleanup(s.Kill)
	for range 5 { // another process may take the port first
		s.port = freePort(tb)
		if err := s.start(); err == nil {
			return s
		}
	}
	tb.Fatalf("redis-server does not start:\n%s", s.out)
	return nil
}

// Binary finds redis-server, or skips the test, or fails it when CI=true.
func Binary(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		tb.Fatalf("redis-server is needed and was not found: %v", err)
	}
	tb.Skip("redis-server was not found")
	return ""
}

// Addr is host:port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// URL is the server as an address for clients.
func (s *Server) URL() string { return "redis://" + s.Addr() }

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

func (s *Server) end(signal os.Signal) {
	s.mu.Lock()
	cmd, done := s.cmd, s.done
	s.cmd = nil
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(signal) // it may have ended by itself
	select {
	case <-done:
	case <-time.After(startTimeout):
		_ = cmd.Process.Kill() // as above
		<-done
	}
}

func (s *Server) start() error {
	args := []string{
		"--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--daemonize", "no", "--loglevel", "warning",
	}
	out := &bytes.Buffer{}
	cmd := exec.Command(s.binary, append(args, s.args...)...)
	cmd.Stdout, cmd.Stderr = out, out
	s.out = out
	diesWithUs(cmd)
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		// The thread that starts the server must not end before it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is for the test to judge
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	s.mu.Lock()
	s.cmd, s.done = cmd, done
	s.mu.Unlock()
	if err := s.answers(cmd.Process.Pid, done); err != nil {
		s.end(os.Kill)
		return err
	}
	return nil
}

// answers waits until the server answers, and tells it from another one that has its port.
func (s *Server) answers(pid int, done <-chan struct{}) error {
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1})
	defer func() { _ = client.Close() }() // nothing was written
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.reachable(ctx)
		if err == nil {
			err = client.Ping(ctx).Err()
		}
		if err == nil {
			info, err := client.Info(ctx, "server").Result()
			if err != nil {
				return fmt.Errorf("ask redis-server who it is: %w", err)
			}
			if !bytes.Contains([]byte(info), fmt.Appendf(nil, "process_id:%d\r", pid)) {
				return errors.New("another redis-server has the port")
			}
			return nil
		}
		select {
		case <-done:
			return errors.New("redis-server ended")
		case <-ctx.Done():
			return fmt.Errorf("redis-server does not answer: %w", err)
		case <-tick.C:
		}
	}
}

// reachable tells whether anybody listens; go-redis would write a line for each time that nobody does.
func (s *Server) reachable(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return fmt.Errorf("reach redis-server: %w", err)
	}
	return conn.Close()
}

// freePort asks the system for a port that nobody has.
func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("find a free port: %v", err)
	}
	defer func() { _ = l.Close() }() // it was never used
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		tb.Fatalf("a listener of an unexpected kind: %v", l.Addr())
	}
	return addr.Port
}
