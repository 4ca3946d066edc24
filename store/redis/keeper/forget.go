package keeper

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

const (
	// forgetLanes is how many lanes of a topic are checked at a time.
	forgetLanes = 256
	// forgetTurns: one of so many turns of Sweep over all topics checks for unused lanes. If one Sweep covers all
	// topics, each one does.
	forgetTurns = 6
)

// An idleTopic is a topic with lanes that may be unused. forget.lua decides.
type idleTopic struct {
	name  string
	lanes []string // as members of topic_lanes:<topic>
	after string   // the first lane's predecessor; empty: the first of all

	page  *redis.StringSliceCmd
	first [3]*redis.ZSliceCmd // that ended, of each kind
	sizes []*redis.IntCmd     // of due, ready and claimed of each lane
	last  *redis.SliceCmd     // wake-ups of each lane; negative: since when it has no job
}

// isInternal reports whether a topic, by its full name, is of store.GroupInternal.
func isInternal(name string) bool {
	_, topic, _ := strings.Cut(name, "/")
	return store.IsInternal(topic)
}

// forgetUnused forgets topics, and lanes among the next forgetLanes of each, that nothing refers to. It reads without
// scripts, and calls one for each topic with something to forget.
//
// Nothing is forgotten while a check of the shard after a restart of its server is due or in progress: it may restore
// jobs of a lane that seems to be unused. Nor is a topic of store.GroupInternal, whose counts Totals must not get; its
// lanes are.
func (s *Keeper) forgetUnused(ctx context.Context, names []string) error {
	if checked, err := s.repairs.IsChecked(ctx); !checked || err != nil {
		return err
	}
	topics := make([]*idleTopic, len(names))
	pipe := s.Client.Pipeline()
	for i, name := range names {
		t := &idleTopic{name: name, after: s.idleFrom(name)}
		from := "-"
		if t.after != "" {
			from = "(" + t.after
		}
		t.page = pipe.ZRangeByLex(ctx, s.Keys.TopicLanes(name),
			&redis.ZRangeBy{Min: from, Max: "+", Count: forgetLanes})
		keys := s.Keys.TopicByName(name)
		for k, key := range []string{keys.Done, keys.Dead, keys.Cancelled} {
			t.first[k] = pipe.ZRangeWithScores(ctx, key, 0, 0)
		}
		topics[i] = t
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return connect.MapError(ctx, err)
	}
	pipe = s.Client.Pipeline()
	for _, t := range topics {
		t.lanes = t.page.Val()
		if len(t.lanes) < forgetLanes {
			s.idleNext(t.name, "")
		} else {
			s.idleNext(t.name, t.lanes[len(t.lanes)-1])
		}
		numbers := make([]string, len(t.lanes))
		for i, lane := range t.lanes {
			_, numbers[i], _ = strings.Cut(lane, "\x00")
			t.sizes = append(t.sizes,
				pipe.Exists(ctx, s.Keys.Due(numbers[i]), s.Keys.Ready(numbers[i]), s.Keys.Claimed(numbers[i])))
		}
		if len(numbers) > 0 {
			t.last = pipe.HMGet(ctx, s.Keys.LastWakeups, numbers...)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return connect.MapError(ctx, err)
	}
	for _, t := range topics {
		if err := s.forget(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// idleFrom returns the lane after which the next check of a topic begins; empty: with the first.
func (s *Keeper) idleFrom(topic string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forgetAfter[topic]
}

// idleNext stores the last lane of a topic that was checked; empty: all were. Only topics with many lanes have an
// entry.
func (s *Keeper) idleNext(topic, lane string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lane == "" {
		delete(s.forgetAfter, topic)
		return
	}
	s.forgetAfter[topic] = lane
}

// forget calls the script for the lanes of a topic that may be unused.
func (s *Keeper) forget(ctx context.Context, t *idleTopic) error {
	var oldest int64 // of the kept jobs' ends; 0: none is kept
	for k := range t.first {
		for _, z := range t.first[k].Val() {
			if oldest == 0 || int64(z.Score) < oldest {
				oldest = int64(z.Score)
			}
		}
	}
	namespace, topic, _ := strings.Cut(t.name, "/")
	keys := s.Keys.TopicByName(t.name)
	scriptKeys := []string{
		s.Keys.Queues, s.Keys.Names, s.Keys.Topics, s.Keys.Agenda, s.Keys.LastWakeups, s.Keys.Throttles,
		s.Keys.LaneLimits, s.Keys.Limits, s.Keys.Alarms, s.Keys.Clock, s.Keys.TopicLanes(t.name),
		s.Keys.ConfiguredLanes(t.name), s.Keys.Rate(t.name), keys.Open, keys.Stats, keys.Done, keys.Dead,
		keys.Cancelled, s.Keys.Topic(namespace, layout.ForgottenTopic).Stats, s.Keys.StaleAgenda, s.Keys.StaleThrottles,
		s.Keys.Owners, s.Keys.Ordered, s.Keys.Health, keys.Unhealthy,
	}
	args := []any{t.name, isInternal(t.name)}
	var last []string
	if t.last != nil {
		last = layout.Strs(t.last.Val())
	}
	for i, lane := range t.lanes {
		idle := -layout.Num(last[i])
		if t.sizes[i].Val() > 0 || oldest != 0 && idle > 0 && oldest <= idle {
			continue
		}
		name, n, _ := strings.Cut(lane, "\x00")
		q := job.Queue{Namespace: namespace, Topic: topic, Lane: name}
		scriptKeys = append(scriptKeys, s.Keys.Due(n), s.Keys.Ready(n), s.Keys.Claimed(n), s.Keys.OrderedJobs(n))
		args = append(args, n, q.String(), name)
	}
	// Of a topic without lanes the last ones were forgotten, but not it.
	if len(args) == 2 && (len(t.lanes) > 0 || isInternal(t.name) || t.after != "" || oldest != 0) {
		return nil
	}
	_, err := s.Eval(ctx, scriptForget, scriptKeys, args)
	return err
}
