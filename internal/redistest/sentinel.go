package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// watched is the name of the master in the sentinels.
const watched = "rb"

// sentinelSettings are the settings of the sentinels. A master that is silent for five seconds is down: short for
// tests that kill it, and long compared to the scheduling delays of a busy machine, on which a living one would be
// replaced.
const sentinelSettings = `sentinel monitor rb 127.0.0.1 %d 2
sentinel down-after-milliseconds rb 5000
sentinel failover-timeout rb 5000
sentinel parallel-syncs rb 1
`

// A sentinel that was stopped for longer than tilt-trigger (default 2 s) stays passive for tilt-period (default 30 s).
// A trigger below down-after keeps sentinels from replacing a master when the whole machine froze, and a short period
// makes them active again soon. The other two make them discover servers and roles within one second instead of ten. In
// milliseconds; lost when a sentinel ends.
var sentinelClock = []any{
	"SENTINEL", "DEBUG", "tilt-trigger", 1000, "tilt-period", 3000, "info-period", 1000, "publish-period", 500,
}

// A Sentinel is a master with replicas under test, watched by three sentinels as "rb". Its methods may only be called
// from the test's goroutine, except URL and Sentinels.
type Sentinel struct {
	tb        testing.TB
	servers   []*Server // the initial master first
	sentinels []*Server
}

// StartSentinel runs a master, replicas (one or more) and three sentinels with a quorum of two, and waits until they
// know each other and the replicas are in sync. args are the settings of the master and the replicas, as for Start. A
// password must not contain spaces and must be set as "--masterauth", too; the sentinels have none. A restarted server
// keeps its last role.
func StartSentinel(tb testing.TB, replicas int, args ...string) *Sentinel {
	tb.Helper()
	s := &Sentinel{tb: tb}
	for range 1 + replicas {
		s.servers = append(s.servers, s.startServer(args))
	}
	await(tb, "wait for replicas", func() error {
		r, err := s.servers[0].replication()
		if err == nil && r.replicas < replicas {
			err = fmt.Errorf("%d of %d are in sync", r.replicas, replicas)
		}
		return err
	})
	for range 3 {
		s.sentinels = append(s.sentinels, s.startSentinel(password(args)))
	}
	s.AwaitOK()
	return s
}

// startServer runs a server with a settings file, which keeps its role when sentinels change it. All but the first are
// replicas of the first.
func (s *Sentinel) startServer(args []string) *Server {
	s.tb.Helper()
	server := newServer(s.tb, args)
	file := filepath.Join(server.dir, "redis.conf")
	server.command = func() []string { return []string{file} }
	server.prepare = func() error {
		settings := append(server.settings(), "--repl-diskless-sync-delay", "0") // do not wait for more replicas
		if len(s.servers) > 0 {
			settings = append(settings, "--replicaof", "127.0.0.1", fmt.Sprint(s.servers[0].port))
		}
		return os.WriteFile(file, []byte(settingLines(append(settings, args...))), 0o600)
	}
	server.launch()
	return server
}

// startSentinel runs a sentinel that watches the first server.
func (s *Sentinel) startSentinel(password string) *Server {
	s.tb.Helper()
	sentinel := newServer(s.tb, nil)
	file := filepath.Join(sentinel.dir, "sentinel.conf")
	sentinel.command = func() []string { return []string{file, "--sentinel"} }
	sentinel.prepare = func() error {
		settings := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %q\n", sentinel.port, sentinel.dir)
		settings += fmt.Sprintf(sentinelSettings, s.servers[0].port)
		if password != "" {
			settings += fmt.Sprintf("sentinel auth-pass rb %q\n", password)
		}
		return os.WriteFile(file, []byte(settings), 0o600)
	}
	sentinel.ready = func(client *redis.Client) error {
		if err := client.Do(context.Background(), sentinelClock...).Err(); err != nil {
			return fmt.Errorf("set the clock of a sentinel: %w", err)
		}
		return nil
	}
	sentinel.launch()
	return sentinel
}

// settingLines converts command-line settings to lines of a file.
func settingLines(args []string) string {
	var b strings.Builder
	for _, a := range args {
		if name, ok := strings.CutPrefix(a, "--"); ok {
			b.WriteString("\n" + name)
		} else {
			fmt.Fprintf(&b, " %q", a)
		}
	}
	return b.String() + "\n"
}

// URL returns the address of the sentinels, with the master's name.
func (s *Sentinel) URL() string {
	addrs := make([]string, len(s.sentinels))
	for i, sentinel := range s.sentinels {
		addrs[i] = sentinel.Addr()
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/0?master_name=" + watched
}

// Sentinels returns all three sentinels, running or not.
func (s *Sentinel) Sentinels() []*Server { return slices.Clone(s.sentinels) }

// Master returns the server that most running sentinels name as the master, running or not.
func (s *Sentinel) Master() *Server {
	s.tb.Helper()
	votes := make(map[*Server]int)
	var most *Server
	err := errors.New("no sentinel runs")
	for _, sentinel := range s.sentinels {
		if !sentinel.answering() {
			continue
		}
		named, failed := s.named(sentinel)
		if failed != nil {
			err = failed
			continue
		}
		votes[named]++
		if votes[named] > votes[most] {
			most = named
		}
	}
	if most == nil {
		s.tb.Fatalf("ask sentinels for the master: %v", err)
	}
	return most
}

// Switches returns how often the master was replaced since the start, planned or not, as the running sentinels know.
// Call it before and after: it also grows by one for each election of sentinels that failed before.
func (s *Sentinel) Switches() int {
	s.tb.Helper()
	latest := -1
	err := errors.New("no sentinel runs")
	for _, sentinel := range s.sentinels {
		if !sentinel.answering() {
			continue
		}
		epoch, failed := sentinel.masterEpoch()
		if failed != nil {
			err = failed
			continue
		}
		latest = max(latest, epoch)
	}
	if latest < 0 {
		s.tb.Fatalf("ask sentinels for the epoch of the master: %v", err)
	}
	return latest
}

// masterEpoch returns the epoch in which the master was elected, according to a sentinel; 0: it is the first one.
func (s *Server) masterEpoch() (epoch int, err error) {
	err = s.ask(func(ctx context.Context, c *redis.Client) error {
		answer, err := c.Do(ctx, "SENTINEL", "MASTER", watched).Result()
		if err != nil {
			return fmt.Errorf("ask sentinel %s for its master: %w", s.Addr(), err)
		}
		epoch, err = strconv.Atoi(field(answer, "config-epoch"))
		return err
	})
	return epoch, err
}

// Replicas returns all servers but Master, running or not.
func (s *Sentinel) Replicas() []*Server {
	s.tb.Helper()
	master := s.Master()
	return slices.DeleteFunc(slices.Clone(s.servers), func(server *Server) bool { return server == master })
}

// named returns the master according to a sentinel.
func (s *Sentinel) named(sentinel *Server) (*Server, error) {
	var addr []string
	err := sentinel.ask(func(ctx context.Context, c *redis.Client) (err error) {
		addr, err = c.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", watched).StringSlice()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask sentinel %s for the master: %w", sentinel.Addr(), err)
	}
	for _, server := range s.servers {
		if server.Addr() == strings.Join(addr, ":") {
			return server, nil
		}
	}
	return nil, fmt.Errorf("sentinel %s names %v, which is none of its servers", sentinel.Addr(), addr)
}
