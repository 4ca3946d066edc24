// Package health checks, every few seconds, whether Redis still has a store's data and is configured to keep them. What
// Open refuses can also happen while a process runs: another maxmemory-policy, an emptied database, data laid out anew.
package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

const (
	// checkEvery is the pause between two checks.
	checkEvery = 5 * time.Second
	// checkTimeout bounds a check.
	checkTimeout = 2 * time.Second
	// emptiedFor is how long a process is not ready after its store was emptied.
	emptiedFor = time.Minute
)

// A Monitor checks the servers and the data of one store. It is safe for concurrent use.
type Monitor struct {
	client *connect.Client
	log    *slog.Logger
	prefix string
	shards []*shard.Shard
	now    func() time.Time

	mu      sync.Mutex
	next    time.Time         // the next check
	id      string            // of the data, in <prefix>:meta; empty: not known
	runs    map[string]string // servers' run ids by address
	filled  []bool            // by shard: it had data
	evicts  string            // the maxmemory-policy of a server that may evict keys; empty: none
	two     bool              // two servers answer at the address
	emptied time.Time         // when data were last found missing
	foreign string            // the layout of the data if another process created them anew with a different one
	found   int               // how often data were found missing since Take
}

// New returns the monitor of an open store. now is the clock of its pauses.
func New(
	client *connect.Client, log *slog.Logger, prefix string, shards []*shard.Shard, now func() time.Time,
) *Monitor {
	return &Monitor{client: client, log: log, prefix: prefix, shards: shards, now: now, filled: make([]bool,
		len(shards))}
}

// Check checks servers and data if the last check was 5 s ago. Failures are logged, and the check is repeated the next
// time.
func (h *Monitor) Check(ctx context.Context) {
	h.mu.Lock()
	due := !h.now().Before(h.next)
	if due {
		h.next = h.now().Add(checkEvery)
	}
	h.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := connect.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := errors.Join(h.checkServers(ctx), h.checkData(ctx)); err != nil {
		h.log.DebugContext(ctx, "reading redis's configuration failed, retrying", "err", err)
	}
}

// checkServers reads the servers' run ids and eviction policies, and looks whether the address leads to one of them.
func (h *Monitor) checkServers(ctx context.Context) error {
	if err := h.checkAddress(ctx); err != nil {
		return err
	}
	found, err := h.client.Servers(ctx)
	evicts := found.EvictionPolicy
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs = found.RunIDs // also when some servers failed
	if err != nil {
		return fmt.Errorf("read run ids: %w", err)
	}
	if evicts != "" && h.evicts == "" {
		h.log.ErrorContext(ctx, "redis may evict jobs, refusing registrations until maxmemory-policy is noeviction",
			"maxmemory_policy", evicts)
	}
	h.evicts = evicts
	return nil
}

func (h *Monitor) checkAddress(ctx context.Context) error {
	err := h.client.MeetServer(ctx)
	two := errors.Is(err, connect.ErrTwoServers)
	if err != nil && !two {
		return fmt.Errorf("meet the server: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if two && !h.two {
		h.log.ErrorContext(ctx,
			"two redis servers answer at one address, refusing registrations until it leads to one of them only")
	}
	h.two = two
	return nil
}

// RunID returns the run id of the server that serves a shard; empty when it is not known.
func (h *Monitor) RunID(ctx context.Context, sh *shard.Shard) string {
	address, err := h.client.NodeAddress(ctx, sh.Keys.Jobs)
	if err != nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[address]
}

// checkData checks that the data still exist, and are those that were opened.
func (h *Monitor) checkData(ctx context.Context) error {
	pipe := h.client.Pipeline()
	meta := pipe.HMGet(ctx, layout.MetaKey(h.prefix), "version", "shards", "id")
	keys := make([]*redis.IntCmd, len(h.shards))
	for i, sh := range h.shards {
		keys[i] = pipe.Exists(ctx, sh.Keys.Names, sh.Keys.LastNumber, sh.Keys.Checked)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("read %s, and whether the shards have data: %w", layout.MetaKey(h.prefix),
			connect.MapError(ctx, err))
	}
	found, gone := layout.Strs(meta.Val()), h.emptiedShards(keys)
	h.mu.Lock()
	known := h.id
	h.mu.Unlock()
	missing := found[0] == "" || found[1] == ""
	if missing || known != "" && found[2] != "" && found[2] != known || len(gone) > 0 {
		h.log.ErrorContext(ctx, "redis was emptied while in use: jobs, policies, pauses and lane settings are lost; "+
			"accepting new jobs, policies must be put again",
			"prefix", h.prefix, "shards", gone)
		h.mu.Lock()
		h.emptied, h.found = h.now(), h.found+1
		h.mu.Unlock()
		for _, sh := range h.shards {
			sh.ForgetQueues()
		}
	}
	if missing || found[2] == "" {
		var err error
		if found, err = h.writeMeta(ctx); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.id = found[2]
	foreign := ""
	if layout.Num(found[0]) != layout.Version || layout.Num(found[1]) != int64(len(h.shards)) {
		foreign = found[1] + " shards, version " + found[0]
	}
	if foreign != "" && h.foreign == "" {
		h.log.ErrorContext(ctx,
			"data were created anew by another process, refusing registrations until this process is restarted",
			"prefix", h.prefix, "now", foreign, "opened_with_shards", len(h.shards))
	}
	h.foreign = foreign
	return nil
}

// writeMeta writes the missing fields of <prefix>:meta and reads it. Data without an id get one, so that data that were
// deleted and created again have another.
func (h *Monitor) writeMeta(ctx context.Context) ([]string, error) {
	key := layout.MetaKey(h.prefix)
	pipe := h.client.Pipeline()
	pipe.HSetNX(ctx, key, "version", layout.Version)
	pipe.HSetNX(ctx, key, "shards", len(h.shards))
	pipe.HSetNX(ctx, key, "id", string(store.NewToken()))
	read := pipe.HMGet(ctx, key, "version", "shards", "id")
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write %s: %w", key, connect.MapError(ctx, err))
	}
	return layout.Strs(read.Val()), nil
}

// emptiedShards returns the shards that have lost all their data, by how many keys each has. On a cluster a single
// server may be emptied.
func (h *Monitor) emptiedShards(keys []*redis.IntCmd) (gone []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.shards {
		filled := keys[i].Val() > 0
		if h.filled[i] && !filled {
			gone = append(gone, i)
		}
		h.filled[i] = filled
	}
	return gone
}

// CheckInsert returns an error if jobs must not be registered: two servers answer, the layout changed, or servers may
// evict.
func (h *Monitor) CheckInsert() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.two:
		return &store.UnavailableError{RetryAfter: checkEvery, Reason: connect.ErrTwoServers.Error()}
	case h.foreign != "":
		return &store.UnavailableError{RetryAfter: checkEvery, Reason: "the data in redis were laid out anew (" +
			h.foreign +
			", not " + strconv.Itoa(len(h.shards)) + "): restart this process"}
	case h.evicts != "":
		return &store.UnavailableError{RetryAfter: checkEvery, Reason: "redis may evict jobs (maxmemory-policy " +
			h.evicts +
			"): set it to noeviction"}
	}
	return nil
}

// CheckReady returns an error if the process must not get work: those of CheckInsert, and one for a minute after data
// were lost.
func (h *Monitor) CheckReady() error {
	if err := h.CheckInsert(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := emptiedFor - h.now().Sub(h.emptied); !h.emptied.IsZero() && left > 0 {
		return &store.UnavailableError{
			RetryAfter: left,
			Reason:     "redis was emptied while in use: jobs and policies are gone, put the policies anew",
		}
	}
	return nil
}

// TakeRepairs returns how often data were found missing since the last call.
func (h *Monitor) TakeRepairs() map[store.RepairKind]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.found
	h.found = 0
	if n == 0 {
		return nil
	}
	return map[store.RepairKind]int{store.RepairEmptied: n}
}
