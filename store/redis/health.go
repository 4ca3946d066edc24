package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

const (
	// healthEvery is the pause between two looks of a process at its servers.
	healthEvery = 5 * time.Second
	// healthTime bounds one.
	healthTime = 2 * time.Second
	// emptiedFor is for how long a process is not ready after its store was emptied.
	emptiedFor = time.Minute
)

// health is what a process knows of its servers beside their answers: whether they still have its data and are set up to keep them. What Open
// refuses can come about while the process runs, too.
type health struct {
	shards int // as it was opened

	mu      sync.Mutex
	next    time.Time         // no look before
	id      string            // of the data, as <prefix>:meta has it; empty: not known
	runs    map[string]string // by address of a server: which run of it this is, with which history of replication
	filled  map[int]bool      // shards that had data
	evicts  string            // what the policy of a server that may evict is; empty: none may
	emptied time.Time         // when data were last found missing
	foreign string            // how the data are laid out, when that is not as they were opened
	found   int               // how often data were found missing, and not reported yet
}

// checkHealth asks the servers when it is time. What cannot be had now is asked for the next time.
func (s *Store) checkHealth(ctx context.Context) {
	h := &s.health
	h.mu.Lock()
	due := !time.Now().Before(h.next)
	if due {
		h.next = time.Now().Add(healthEvery)
	}
	h.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := connect.WithTimeout(ctx, healthTime)
	defer cancel()
	if err := errors.Join(s.checkServers(ctx), s.checkData(ctx)); err != nil {
		s.log.DebugContext(ctx, "reading redis's configuration failed, retrying", "err", err)
	}
}

// checkServers asks each server who it is and whether it may evict.
func (s *Store) checkServers(ctx context.Context) error {
	found, err := s.client.Servers(ctx)
	evicts := found.EvictionPolicy
	h := &s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs = found.RunIDs // also when some servers failed
	if err != nil {
		return fmt.Errorf("ask redis who it is: %w", err)
	}
	if evicts != "" && h.evicts == "" {
		s.log.ErrorContext(ctx, "redis may evict jobs, refusing registrations until maxmemory-policy is noeviction",
			"maxmemory_policy", evicts)
	}
	h.evicts = evicts
	return nil
}

// runOf is the run of the server that has a shard; empty when it could not be asked.
func (s *Store) runOf(ctx context.Context, sh *shard) string {
	address, err := s.client.NodeAddress(ctx, sh.keys.Jobs)
	if err != nil {
		return ""
	}
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.runs[address]
}

// checkData asks whether the data are still there, and those that were opened.
func (s *Store) checkData(ctx context.Context) error {
	values, err := s.client.HMGet(ctx, s.metaKey(), "version", "shards", "id").Result()
	if err != nil {
		return fmt.Errorf("read %s: %w", s.metaKey(), connect.MapError(ctx, err))
	}
	found := strs(values)
	gone, err := s.emptiedShards(ctx)
	if err != nil {
		return err
	}
	h := &s.health
	h.mu.Lock()
	known := h.id
	h.mu.Unlock()
	missing := found[0] == "" || found[1] == ""
	if missing || known != "" && found[2] != "" && found[2] != known || len(gone) > 0 {
		s.log.ErrorContext(ctx, "redis was emptied while in use: jobs, policies, pauses and lane settings are lost; accepting new jobs, policies must be put again",
			"prefix", s.prefix, "shards", gone)
		h.mu.Lock()
		h.emptied, h.found = time.Now(), h.found+1
		h.mu.Unlock()
		for _, sh := range s.shards {
			sh.forget()
		}
	}
	if missing || found[2] == "" {
		if found, err = s.mark(ctx); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.id = found[2]
	foreign := ""
	if num(found[0]) != layout.Version || num(found[1]) != int64(h.shards) {
		foreign = found[1] + " shards, version " + found[0]
	}
	if foreign != "" && h.foreign == "" {
		s.log.ErrorContext(ctx, "data were created anew by another process, refusing registrations until this process is restarted",
			"prefix", s.prefix, "now", foreign, "opened_with_shards", h.shards)
	}
	h.foreign = foreign
	return nil
}

// mark writes what is missing of <prefix>:meta, as the data were opened, and reads it. A store that has no id of its own gets one: data that were
// removed and laid out again have another.
func (s *Store) mark(ctx context.Context) ([]string, error) {
	key := s.metaKey()
	pipe := s.client.Pipeline()
	pipe.HSetNX(ctx, key, "version", layout.Version)
	pipe.HSetNX(ctx, key, "shards", s.health.shards)
	pipe.HSetNX(ctx, key, "id", string(store.NewToken()))
	read := pipe.HMGet(ctx, key, "version", "shards", "id")
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write %s: %w", key, connect.MapError(ctx, err))
	}
	return strs(read.Val()), nil
}

// emptiedShards are the shards that had data and have none. On a cluster each server may be emptied by itself.
func (s *Store) emptiedShards(ctx context.Context) ([]int, error) {
	pipe := s.client.Pipeline()
	there := make([]*redis.IntCmd, len(s.shards))
	for i, sh := range s.shards {
		there[i] = pipe.Exists(ctx, sh.keys.Names, sh.keys.Last, sh.keys.Checked)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("look for the shards: %w", connect.MapError(ctx, err))
	}
	h := &s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	var gone []int
	for i := range s.shards {
		if there[i].Val() == 0 && h.filled[i] {
			gone = append(gone, i)
		}
		h.filled[i] = there[i].Val() > 0
	}
	return gone, nil
}

func (s *Store) metaKey() string { return s.prefix + ":meta" }

// refusal says why no job must be registered; nil: nothing speaks against it.
func (h *health) refusal() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.foreign != "":
		return &store.UnavailableError{RetryAfter: healthEvery, Reason: "the data in redis were laid out anew (" + h.foreign +
			", not " + strconv.Itoa(h.shards) + "): restart this process"}
	case h.evicts != "":
		return &store.UnavailableError{RetryAfter: healthEvery, Reason: "redis may evict jobs (maxmemory-policy " + h.evicts +
			"): set it to noeviction"}
	}
	return nil
}

// unready says why the process must not be sent work; nil: it may be.
func (h *health) unready() error {
	if err := h.refusal(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := emptiedFor - time.Since(h.emptied); !h.emptied.IsZero() && left > 0 {
		return &store.UnavailableError{RetryAfter: left, Reason: "redis was emptied while in use: jobs and policies are gone, put the policies anew"}
	}
	return nil
}

// take gives what was found since it was asked last.
func (h *health) take() map[store.RepairKind]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.found
	h.found = 0
	if n == 0 {
		return nil
	}
	return map[store.RepairKind]int{store.RepairEmptied: n}
}
