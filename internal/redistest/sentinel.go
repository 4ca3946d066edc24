package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// watched is the name that sentinels watch the master under.
const watched = "rb"

// sentinelSettings are how the sentinels watch. A master that is silent for two seconds is down, which is quick for a
// test that kills it, and long beside the tens of milliseconds that a process waits for its turn on a machine with more
// work than cores.
const sentinelSettings = `sentinel monitor rb 127.0.0.1 %d 2
sentinel down-after-milliseconds rb 2000
sentinel failover-timeout rb 5000
sentinel parallel-syncs rb 1
`

// A sentinel that stood still for longer than tilt-trigger trusts its own clock no more, and only looks on for
// tilt-period. By default these are 2 s and 30 s. With a trigger below down-after, a machine that freezes makes the
// sentinels look on, where they would depose a master that froze with them; with a short period they are soon back at
// work. The other two let them learn who is there, and who came back as what, within a second and not ten. In
// milliseconds; a sentinel forgets them when it ends.
var sentinelClock = []any{
	"SENTINEL", "DEBUG", "tilt-trigger", 1000, "tilt-period", 3000, "info-period", 1000, "publish-period", 500,
}

// A Sentinel is a master with replicas under test, that three sentinels watch as "rb". Its methods may be called from
// the test's goroutine only, but URL and Sentinels from any.
type Sentinel struct {
	tb        testing.TB
	servers   []*Server // first the one that was the master at first
	sentinels []*Server
}

// StartSentinel runs a master, replicas (one or more) and three sentinels, of whom two must agree, and waits until all
// know each other and the replicas are in sync. args are the settings of the master and the replicas, as for Start; a
// password, in which sentinels allow no space, has to be "--masterauth" as well; the sentinels themselves ask for none. A server that is restarted comes
// back as what it was last, as in earnest.
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

// startServer runs a server with a file of settings, where its role is kept when sentinels change it. All but the first
// are its replicas.
func (s *Sentinel) startServer(args []string) *Server {
	s.tb.Helper()
	server := newServer(s.tb, args)
	file := filepath.Join(server.dir, "redis.conf")
	server.command = func() []string { return []string{file} }
	server.prepare = func() error {
		settings := append(server.settings(), "--repl-diskless-sync-delay", "0") // no waiting for more replicas to come
		if len(s.servers) > 0 {
			settings = append(settings, "--replicaof", "127.0.0.1", fmt.Sprint(s.servers[0].port))
		}
		return os.WriteFile(file, []byte(settingLines(append(settings, args...))), 0o600)
	}
	server.launch()
	return server
}

// startSentinel runs one that watches the first server.
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

// settingLines are settings of a command line as a file has them.
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

// URL is the sentinels as an address for clients, with the master's name.
func (s *Sentinel) URL() string {
	addrs := make([]string, len(s.sentinels))
	for i, sentinel := range s.sentinels {
		addrs[i] = sentinel.Addr()
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/0?master_name=" + watched
}

// Sentinels are all three, whether or not they run.
func (s *Sentinel) Sentinels() []*Server { return slices.Clone(s.sentinels) }

// Master is the server that most of the sentinels that run name now, whether or not it runs.
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

// Replicas are all servers but Master, whether or not they run.
func (s *Sentinel) Replicas() []*Server {
	s.tb.Helper()
	master := s.Master()
	return slices.DeleteFunc(slices.Clone(s.servers), func(server *Server) bool { return server == master })
}

// named is the server that a sentinel takes for the master.
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
