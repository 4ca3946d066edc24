package redis

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/redis/connect"
)

const (
	// forgetLanes is how many lanes of a topic one look for unused ones takes.
	forgetLanes = 256
	// forgetTurns is in how many turns of Sweep over all topics one looks for unused lanes. Where a Sweep sees all topics at
	// once every one does.
	forgetTurns = 6
)

// forgotten is the name of the topic whose counters are those of all that were forgotten. No job can name it.
const forgotten = ""

// An idleTopic is what is read of a topic and its lanes before a script decides.
type idleTopic struct {
	name  string
	lanes []string // as members of queues:<topic>
	after string   // the first lane's predecessor; empty: the first of all

	page  *redis.StringSliceCmd
	first [3]*redis.ZSliceCmd // that ended, of each kind
	sizes []*redis.IntCmd     // of due, ready and held of each lane
	rings *redis.SliceCmd
}

// forgetUnused looks at some topics, and at forgetLanes lanes of each, for those that nothing refers to. The next look at a
// Topic goes on behind them. It reads without scripts, and calls one for a topic of which something can be forgotten.
//
// Nothing is forgotten while a check of the shard is due or under way that its server's restart makes necessary: what it
// puts back may be of a lane that seems to be unused.
func (s *Store) forgetUnused(ctx context.Context, sh *shard, names []string) error {
	if sound, err := s.sound(ctx, sh); !sound || err != nil {
		return err
	}
	topics := make([]*idleTopic, len(names))
	pipe := s.client.Pipeline()
	for i, name := range names {
		t := &idleTopic{name: name, after: sh.idleFrom(name)}
		from := "-"
		if t.after != "" {
			from = "(" + t.after
		}
		t.page = pipe.ZRangeByLex(ctx, sh.keys.Lanes(name), &redis.ZRangeBy{Min: from, Max: "+", Count: forgetLanes})
		keys := sh.keys.TopicByName(name)
		for k, key := range []string{keys.Done, keys.Dead, keys.Cancelled} {
			t.first[k] = pipe.ZRangeWithScores(ctx, key, 0, 0)
		}
		topics[i] = t
	}
	if pipe.Len() > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return connect.MapError(ctx, err)
		}
	}
	pipe = s.client.Pipeline()
	for _, t := range topics {
		t.lanes = t.page.Val()
		if len(t.lanes) < forgetLanes {
			sh.idleNext(t.name, "")
		} else {
			sh.idleNext(t.name, t.lanes[len(t.lanes)-1])
		}
		numbers := make([]string, len(t.lanes))
		for i, lane := range t.lanes {
			_, numbers[i], _ = strings.Cut(lane, "\x00")
			t.sizes = append(t.sizes, pipe.Exists(ctx, sh.keys.Due(numbers[i]), sh.keys.Ready(numbers[i]), sh.keys.Held(numbers[i])))
		}
		if len(numbers) > 0 {
			t.rings = pipe.HMGet(ctx, sh.keys.Rings, numbers...)
		}
	}
	if pipe.Len() > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return connect.MapError(ctx, err)
		}
	}
	for _, t := range topics {
		if err := s.forget(ctx, sh, t); err != nil {
			return err
		}
	}
	return nil
}

// sound tells whether a shard was checked since its server was started. It asks the server itself: what this process knows of
// it may be of before a restart.
func (s *Store) sound(ctx context.Context, sh *shard) (bool, error) {
	server, err := s.client.Node(ctx, sh.keys.Jobs)
	if err != nil {
		return false, connect.MapError(ctx, err)
	}
	run, err := connect.RunID(ctx, server)
	if err != nil {
		return false, err
	}
	if !sh.repairs.mu.TryLock() { // a step of a check is being made: the next look will do
		return false, nil
	}
	defer sh.repairs.mu.Unlock()
	last, _, _ := strings.Cut(sh.repairs.last, " ")
	return last == run && (sh.repairs.pass == nil || sh.repairs.pass.slow), nil
}

// idleFrom is the lane behind which the next look at a topic begins; empty: with the first.
func (s *shard) idleFrom(topic string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.idleAfter[topic]
}

// idleNext notes how far a look at a topic came. Only topics with many lanes have a note.
func (s *shard) idleNext(topic, lane string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lane == "" {
		delete(s.idleAfter, topic)
		return
	}
	if s.idleAfter == nil {
		s.idleAfter = make(map[string]string)
	}
	s.idleAfter[topic] = lane
}

// forget calls the script for the lanes of a topic that may be unused.
func (s *Store) forget(ctx context.Context, sh *shard, t *idleTopic) error {
	var oldest int64 // of the kept jobs' ends; 0: none is kept
	for k := range t.first {
		for _, z := range t.first[k].Val() {
			if oldest == 0 || int64(z.Score) < oldest {
				oldest = int64(z.Score)
			}
		}
	}
	namespace, topic, _ := strings.Cut(t.name, "/")
	keys := sh.keys.TopicByName(t.name)
	scriptKeys := []string{
		sh.keys.Queues, sh.keys.Names, sh.keys.Seen, sh.keys.Agenda, sh.keys.Rings, sh.keys.Throttles, sh.keys.LaneLimits, sh.keys.Limits, sh.keys.Alarms, sh.keys.Clock,
		sh.keys.Lanes(t.name), sh.keys.ConfiguredLanes(t.name), sh.keys.Rate(t.name), keys.Open, keys.Stats, keys.Done, keys.Dead, keys.Cancelled,
		sh.keys.Topic(namespace, forgotten).Stats, sh.keys.Last, sh.keys.StaleAgenda, sh.keys.StaleThrottles, sh.keys.Owners,
	}
	args := []any{t.name}
	var rings []string
	if t.rings != nil {
		rings = strs(t.rings.Val())
	}
	for i, lane := range t.lanes {
		idle := -num(rings[i])
		if t.sizes[i].Val() > 0 || oldest != 0 && idle > 0 && oldest <= idle {
			continue
		}
		name, n, _ := strings.Cut(lane, "\x00")
		q := job.Queue{Namespace: namespace, Topic: topic, Lane: name}
		scriptKeys = append(scriptKeys, sh.keys.Due(n), sh.keys.Ready(n), sh.keys.Held(n))
		args = append(args, n, q.String(), name)
	}
	// Of a topic without lanes the last ones were forgotten, but not it.
	if len(args) == 1 && (len(t.lanes) > 0 || t.after != "" || oldest != 0) {
		return nil
	}
	_, err := s.eval(ctx, scriptForget, scriptKeys, args)
	return err
}
