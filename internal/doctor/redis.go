// This part of the package makes the doctor's checks of a Redis store: the servers, their settings, and what the user
// may do. It opens separate connections and writes nothing, so it also works where the service refuses to start.

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// Bounds. One server that hangs must leave time for the others.
const (
	callTimeout  = 1500 * time.Millisecond // of a connection, and of a reply
	stepTimeout  = 2 * time.Second         // of a step that asks one server, which the client chooses on a cluster
	redisTimeout = 2 * time.Second         // of all calls to one server
	meetings     = 8                       // connections that are opened to see whether they meet one server
)

// RedisOptions are what the checks of a store are given.
type RedisOptions struct {
	// URL is that of the store.
	URL string
	// Prefix begins every key; empty: rb.
	Prefix string
	// Shards is the number of shards that is set; zero: none is.
	Shards int
	// Wait is the durability that writes wait for.
	Wait connect.Wait
}

// CheckRedis returns the checks of a store.
func CheckRedis(subject string, o RedisOptions) Check {
	names := []Name{RedisData}
	for _, j := range judges {
		names = append(names, j.check)
	}
	o.Prefix = cmp.Or(o.Prefix, "rb")
	address, err := connect.ParseAddress(o.URL)
	if err == nil && address.IsCluster() {
		names = append(names, RedisCluster)
	}
	return Check{Subject: subject, Names: names, Run: func(ctx context.Context) ([]Finding, error) {
		if err != nil {
			return RedisReach.of(fault("Correct --store.", "%v", err)), err
		}
		return o.look(ctx, address)
	}}
}

// errDown is why findings are missing of which no server could be asked.
var errDown = errors.New("no server answers")

// look reads what the servers tell, and judges it.
func (o RedisOptions) look(ctx context.Context, address connect.Address) (_ []Finding, err error) {
	client := connect.New(address.Within(callTimeout), connect.Wait{}, slog.New(slog.DiscardHandler))
	defer func() { err = errors.Join(err, client.Close()) }()
	f := facts{RedisOptions: o, cluster: address.IsCluster(), maxConns: client.MaxConns()}
	unreachable := client.Check(ctx)
	f.two = unreachable == nil && meetsTwo(ctx, client)
	if unreachable == nil || f.cluster { // on a cluster Check asks any server
		f.readStore(ctx, client)
		err = f.readServers(ctx, client)
	}
	switch {
	case unreachable != nil && len(f.servers) == 0:
		return RedisReach.of(fault("Start Redis, correct --store, or open the network between the two; jobs are "+
			"refused and none is delivered until then.", "%v", unreachable)), unreachable
	case err != nil:
		return f.judge(), connect.MapError(ctx, err)
	}
	return f.judge(), errDown
}

// meetsTwo reports whether two servers answer at one address. A load balancer may lead each connection to another one.
func meetsTwo(ctx context.Context, client *connect.Client) bool {
	ctx, cancel := connect.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for range meetings {
		if err := client.MeetServer(ctx); err != nil {
			return errors.Is(err, connect.ErrTwoServers) // other errors are those of the calls that follow
		}
	}
	return false
}

// readStore reads what one server tells of all.
func (f *facts) readStore(ctx context.Context, client *connect.Client) {
	ctx, cancel := connect.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var reading sync.WaitGroup
	if f.cluster {
		reading.Go(func() { f.readSlots(ctx, client) })
	}
	f.readMeta(ctx, client)
	reading.Wait()
}

// readServers reads what each server tells, each within its own time.
func (f *facts) readServers(ctx context.Context, client *connect.Client) error {
	finding, cancel := connect.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var mu sync.Mutex
	err := client.EachPrimary(finding, func(_ context.Context, c *redis.Client) error {
		ctx, cancel := connect.WithTimeout(ctx, redisTimeout)
		defer cancel()
		s := f.readServer(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		f.servers = append(f.servers, s)
		return nil
	})
	slices.SortFunc(f.servers, func(a, b server) int { return cmp.Compare(a.addr, b.addr) })
	return err
}

// facts are what was read of a store.
type facts struct {
	RedisOptions

	cluster  bool
	two      bool // servers answer at one address
	maxConns int  // of a process, to a server
	servers  []server
	shards   int // of the data; zero: none, or not known
	meta     Finding
	slots    *Finding // of a cluster
}

// readMeta checks that the data can be read by this program.
func (f *facts) readMeta(ctx context.Context, client *connect.Client) {
	found, err := client.HMGet(ctx, layout.MetaKey(f.Prefix), "version", "shards").Result()
	if err != nil {
		f.meta = fault("Mend what the error names, such as the rights of the user.", "%v", connect.MapError(ctx, err))
		return
	}
	if found[0] == nil && found[1] == nil {
		f.meta = warn("Correct --store or --redis-prefix, unless the service has never run with them.",
			"there are no data under the prefix %s", f.Prefix)
		return
	}
	n, err := layout.CheckMeta(fmt.Sprint(found[0]), fmt.Sprint(found[1]), f.Shards)
	if err != nil {
		f.meta = fault("Correct --shards, or use the program's version that made the data, or another --redis-prefix "+
			"(docs/export.md).", "%v", err)
		return
	}
	f.shards = n
	f.meta = good("version %d with %d shards under the prefix %s", layout.Version, n, f.Prefix)
}

// allSlots is the number of slots of a cluster.
const allSlots = 16384

// readSlots checks that each slot of a cluster has a server.
func (f *facts) readSlots(ctx context.Context, client *connect.Client) {
	found, err := client.ClusterSlots(ctx).Result()
	if err != nil {
		return // a missing finding is unknown
	}
	covered, alone := 0, 0
	for _, s := range found {
		covered += s.End - s.Start + 1
		if len(s.Nodes) < 2 {
			alone++
		}
	}
	f.slots = new(judgeSlots(covered, alone, len(found)))
}

func judgeSlots(covered, alone, ranges int) Finding {
	switch {
	case covered < allSlots:
		return fault("Bring the missing servers back, or run redis-cli --cluster fix.",
			"%d of %d slots have no server: the shards there are down", allSlots-covered, allSlots)
	case alone > 0:
		return warn("Give each primary a replica.", "all slots are served, but %d of %d ranges have no replica: when "+
			"their server dies, their shards are down", alone, ranges)
	}
	return good("all slots are served, by servers with replicas")
}

// judge judges the facts.
func (f *facts) judge() []Finding {
	found := RedisData.of(f.meta)
	if f.slots != nil {
		found = append(found, RedisCluster.of(*f.slots)...)
	}
	for _, j := range judges {
		found = append(found, j.check.of(f.judgeEach(j.server, j.check != RedisReach)...)...)
	}
	return found
}

// judgeEach judges all servers. What is wrong has a finding, which names the servers. If nothing is, there is one
// finding, which is not ok if servers that are down were left out.
func (f *facts) judgeEach(judge func(*facts, *server) Finding, skip bool) (found []Finding) {
	var fine []Finding
	var addrs [][]string // of found
	left := 0
	for i := range f.servers {
		s := &f.servers[i]
		if s.down && skip {
			left++
			continue
		}
		one := judge(f, s)
		if one.Level == OK {
			fine = append(fine, one)
		} else if at := slices.Index(found, one); at >= 0 {
			addrs[at] = append(addrs[at], s.addr)
		} else {
			found, addrs = append(found, one), append(addrs, []string{s.addr})
		}
	}
	switch {
	case len(found) > 0 && len(f.servers) > 1:
		for i := range found {
			found[i].Seen = strings.Join(addrs[i], ", ") + ": " + found[i].Seen
		}
	case len(found) > 0 || len(fine) == 0: // none: Run reports it as unknown
	case left > 0:
		found = []Finding{unknown("Mend what keeps them from answering, and run ringback doctor again.",
			"%d of %d servers could not be looked at; the others are fine", left, len(f.servers))}
	case len(fine) > 1:
		fine[0].Seen = fmt.Sprintf("%s; and %d more servers are fine", fine[0].Seen, len(fine)-1)
		fallthrough
	default:
		found = fine[:1]
	}
	return found
}
