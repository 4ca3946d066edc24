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
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/internal/testkit"
)

// tries is the number of tries of steps that a busy machine or another process can make fail.
const tries = 5

// launch runs the server on free ports until the test ends.
func (s *Server) launch() {
	s.tb.Helper()
	s.tb.Cleanup(s.Kill)
	var err error
	for range tries { // another process may take the port first
		s.port, s.bus = freePort(s.tb), freePort(s.tb)
		if err = s.begin(); err == nil {
			return
		}
	}
	s.tb.Fatalf("redis-server does not start: %v\n%s", err, s.out)
}

// begin starts the server for the first time on its ports.
func (s *Server) begin() error {
	if s.prepare != nil {
		if err := s.prepare(); err != nil {
			return err
		}
	}
	return s.start()
}

func (s *Server) start() error {
	out := &output{}
	cmd := exec.Command(s.binary, s.command()...)
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
			_ = cmd.Wait() // the test checks how it ended
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	s.mu.Lock()
	s.cmd, s.done, s.paused = cmd, done, false
	s.mu.Unlock()
	if err := s.answers(cmd.Process.Pid, done); err != nil {
		s.end(os.Kill)
		return err
	}
	return nil
}

func (s *Server) end(signal os.Signal) {
	s.mu.Lock()
	cmd, done, paused := s.cmd, s.done, s.paused
	s.cmd, s.paused = nil, false
	s.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(signal) // it may have exited
	if paused {
		_ = wake(cmd.Process) // as above; a stopped process receives no other signal
	}
	select {
	case <-done:
	case <-time.After(testkit.MustCome):
		_ = cmd.Process.Kill() // as above
		<-done
	}
}

// answering reports whether the server runs and is not paused.
func (s *Server) answering() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.paused {
		return false
	}
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// client returns a client without retries.
func (s *Server) client() *redis.Client {
	o := s.options()
	o.MaxRetries, o.DialerRetries, o.Protocol, o.DisableIdentity = -1, 1, 2, true
	return redis.NewClient(o)
}

// ask calls f with a client, within testlevel.MustCome.
func (s *Server) ask(questions func(context.Context, *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.MustCome)
	defer cancel()
	client := s.client()
	defer func() { _ = client.Close() }() // the reply was read
	return questions(ctx, client)
}

// answers waits until the server answers, and detects another server on its port.
func (s *Server) answers(pid int, done <-chan struct{}) error {
	client := s.client()
	defer func() { _ = client.Close() }() // nothing was written
	ctx, cancel := context.WithTimeout(context.Background(), testkit.MustCome)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.reachable(ctx)
		if err == nil {
			err = client.Ping(ctx).Err()
		}
		if err == nil {
			return s.greet(ctx, client, pid)
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

// greet checks that the started process is the one that answers, and calls ready.
func (s *Server) greet(ctx context.Context, client *redis.Client, pid int) error {
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return fmt.Errorf("ask redis-server who it is: %w", err)
	}
	if !bytes.Contains([]byte(info), fmt.Appendf(nil, "process_id:%d\r", pid)) {
		return errors.New("another redis-server has the port")
	}
	if s.ready == nil {
		return nil
	}
	return s.ready(client)
}

// reachable reports whether a connect succeeds. go-redis would log each failed one.
func (s *Server) reachable(ctx context.Context) error {
	network := "tcp"
	if s.socket != "" {
		network = "unix"
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, s.Addr())
	if err != nil {
		return fmt.Errorf("reach redis-server: %w", err)
	}
	return conn.Close()
}

// output records the output of a process and is safe for concurrent use.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
