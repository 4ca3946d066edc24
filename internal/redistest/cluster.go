package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// nodeTimeout in milliseconds: a node silent for that long is failing; its replica takes over about a second
	// later. It is short for tests that kill a master, and long compared to the scheduling delays of a busy machine:
	// a node that waited for a processor that long would be replaced though it lives.
	nodeTimeout = "5000"
	// createTimeout bounds the creation of a cluster, which takes about two seconds unless a handshake is missed.
	createTimeout = time.Minute
)

// A Cluster is a Redis Cluster under test. Its methods may only be called from the test's goroutine, except Addrs, URL
// and Nodes.
type Cluster struct {
	tb    testing.TB
	cli   string
	args  []string
	nodes []*Server
}

// StartCluster runs masters (three or more) that share all slots evenly, each with a number of replicas, and waits
// until every node is healthy and every replica in sync. Replicas stay with their masters. args are the settings of
// every node, as for Start; a password must be set as "--masterauth", too.
func StartCluster(tb testing.TB, masters, replicasEach int, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb, cli: find(tb, "redis-cli"), args: args}
	var err error
	for range tries { // a node that misses the first handshake gets no second one
		c.nodes = nil
		for range masters * (1 + replicasEach) {
			c.nodes = append(c.nodes, startNode(tb, args))
		}
		if err = c.create(replicasEach); err == nil {
			c.await(masters * replicasEach)
			return c
		}
		for _, n := range c.nodes {
			n.Kill()
		}
		if masters < 3 {
			break // redis-cli requires three masters
		}
	}
	tb.Fatalf("make a cluster: %v", err)
	return nil
}

// startNode runs a node outside of a cluster.
func startNode(tb testing.TB, args []string) *Server {
	tb.Helper()
	s := newServer(tb, args)
	s.command = func() []string {
		return append(append(s.settings(),
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(s.bus), "--cluster-announce-ip", "127.0.0.1",
			"--cluster-node-timeout", nodeTimeout,
			"--cluster-allow-replica-migration", "no",
			"--cluster-replica-validity-factor", "0", // replicas take over however long their master was silent
			"--repl-diskless-sync-delay", "0", // do not wait for more replicas
		), args...)
	}
	s.launch()
	return s
}

// create joins the nodes to a cluster.
func (c *Cluster) create(replicasEach int) error {
	ctx, cancel := context.WithTimeout(context.Background(), createTimeout)
	defer cancel()
	args := append([]string{"--cluster", "create"}, c.Addrs()...)
	args = append(args, "--cluster-yes")
	if replicasEach > 0 {
		args = append(args, "--cluster-replicas", strconv.Itoa(replicasEach))
	}
	cmd := exec.CommandContext(ctx, c.cli, args...)
	if p := password(c.args); p != "" {
		cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+p)
	}
	diesWithUs(cmd)
	runtime.LockOSThread() // redis-cli ends with the thread that starts it
	defer runtime.UnlockOSThread()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run redis-cli --cluster create: %w\n%s", err, out)
	}
	return nil
}

// Nodes returns all servers, running or not, the initial masters first.
func (c *Cluster) Nodes() []*Server { return slices.Clone(c.nodes) }

// Addrs returns the addresses of Nodes.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.Addr()
	}
	return addrs
}

// URL returns the address of the cluster, with all nodes.
func (c *Cluster) URL() string { return "redis+cluster://" + strings.Join(c.Addrs(), ",") }

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	var slot int64
	err := errors.New("no node answers")
	for _, n := range c.answering() {
		err = n.ask(func(ctx context.Context, client *redis.Client) (err error) {
			slot, err = client.ClusterKeySlot(ctx, key).Result()
			return err
		})
		if err == nil {
			return int(slot)
		}
	}
	c.tb.Fatalf("ask for the slot of a key: %v", err)
	return 0
}

// Master returns the node that serves a slot (0 to 16383): the one elected last, running or not.
func (c *Cluster) Master(slot int) *Server {
	c.tb.Helper()
	for _, m := range c.latest() {
		if m.serves(slot) {
			return c.node(m.addr)
		}
	}
	c.tb.Fatalf("no node serves slot %d", slot)
	return nil
}

// Masters returns the current masters, in the order of their first slots.
func (c *Cluster) Masters() []*Server {
	c.tb.Helper()
	members := slices.DeleteFunc(c.latest(), func(m member) bool { return len(m.slots) == 0 })
	slices.SortFunc(members, func(a, b member) int { return a.slots[0][0] - b.slots[0][0] })
	masters := make([]*Server, len(members))
	for i, m := range members {
		masters[i] = c.node(m.addr)
	}
	return masters
}

// ReplicasOf returns the current replicas of a master, running or not.
func (c *Cluster) ReplicasOf(master *Server) []*Server {
	c.tb.Helper()
	members := c.latest()
	id := c.id(members, master)
	var replicas []*Server
	for _, m := range members {
		if m.master == id {
			replicas = append(replicas, c.node(m.addr))
		}
	}
	return replicas
}

// answering returns the nodes that run and are not paused.
func (c *Cluster) answering() []*Server {
	return slices.DeleteFunc(c.Nodes(), func(n *Server) bool { return !n.answering() })
}

// node returns the node with an address.
func (c *Cluster) node(addr string) *Server {
	c.tb.Helper()
	for _, n := range c.nodes {
		if n.Addr() == addr {
			return n
		}
	}
	c.tb.Fatalf("the cluster knows %s, which is none of its nodes", addr)
	return nil
}

// id returns the cluster's id of a node.
func (c *Cluster) id(members []member, s *Server) string {
	c.tb.Helper()
	for _, m := range members {
		if m.addr == s.Addr() {
			return m.id
		}
	}
	c.tb.Fatalf("the cluster does not know %s", s.Addr())
	return ""
}
