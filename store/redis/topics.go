package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// copyChunk is how many topics' terms are copied to a shard in one script.
const copyChunk = 256

// putTimeout bounds the copies to the shards once a policy is written: a caller that goes does not leave them behind.
const putTimeout = 10 * time.Second

// PutTopic writes the policy, then what scripts need of it to each shard. When that fails half way the policy is
// written and the call may be repeated; the shards' carriers copy it too, within a second.
func (s *Store) PutTopic(ctx context.Context, put store.Topic) (store.Topic, error) {
	text, err := json.Marshal(put.Policy)
	if err != nil {
		return store.Topic{}, fmt.Errorf("write a policy: %w", err)
	}
	name := layout.TopicName(put.Namespace, put.Name)
	args := []any{name, text, put.Revision, string(store.NewToken())}
	reply, reached, err := s.evalDurable(ctx, scriptPutTopic, []string{s.topicsKey()}, args)
	if err != nil {
		return store.Topic{}, fmt.Errorf("put topic: %w", err)
	}
	revision := num(reply)
	if revision == 0 {
		return store.Topic{}, fmt.Errorf("put topic: %w", store.ErrVersion)
	}
	ctx, cancel := connect.WithTimeout(context.WithoutCancel(ctx), putTimeout)
	defer cancel()
	terms := layout.FormatLimits(revision, put.Policy.Limits().Over(s.limits))
	for _, sh := range s.shards {
		keys := []string{sh.keys.Limits, sh.keys.Recheck, sh.keys.Wake}
		if _, err := s.eval(ctx, scriptCopyLimits, keys, []any{revision, "", name, terms}); err != nil {
			return store.Topic{}, fmt.Errorf("put topic on shard %d: %w", sh.index, err)
		}
	}
	put.Revision, put.Durability = revision, reached
	return put, nil
}

func (s *Store) topicsKey() string { return s.prefix + ":topics" }

// Topics reads every policy. It looks at the servers as well: a process that only registers jobs may call nothing else
// regularly.
func (s *Store) Topics(ctx context.Context) ([]store.Topic, int64, error) {
	s.checkHealth(ctx)
	stored, err := s.client.HGetAll(ctx, s.topicsKey()).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("read topics: %w", connect.MapError(ctx, err))
	}
	topics := make([]store.Topic, 0, len(stored))
	for name, text := range stored {
		if name == "" {
			continue
		}
		t, err := parseTopic(name, text)
		if err != nil {
			return nil, 0, err
		}
		topics = append(topics, t)
	}
	slices.SortFunc(topics, func(a, b store.Topic) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return topics, num(stored[""]), nil
}

// parseTopic reads a stored policy: '<revision> <token> <policy>'.
func parseTopic(name, text string) (store.Topic, error) {
	namespace, topic, _ := strings.Cut(name, "/")
	revision, rest, _ := strings.Cut(text, " ")
	_, body, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(revision, 10, 64)
	if err != nil {
		return store.Topic{}, fmt.Errorf("read topic %s: %w", name, err)
	}
	var p policy.Topic
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		return store.Topic{}, fmt.Errorf("read topic %s: %w", name, err)
	}
	return store.Topic{Namespace: namespace, Name: topic, Policy: p, Revision: n}, nil
}

// revision reads that of all policies.
func (s *Store) revision(ctx context.Context) (int64, error) {
	text, err := s.client.HGet(ctx, s.topicsKey(), "").Result()
	if err != nil && !connect.IsNil(err) {
		return 0, fmt.Errorf("read the topics' revision: %w", connect.MapError(ctx, err))
	}
	return num(text), nil
}

// copyTopics copies every topic's terms to one shard, and answers their revision.
//
// PutTopic writes the policies first, then the shards. So a shard that has a newer revision than the policies, read after
// it, has what a failover of the policies' server took back: then the policies count, as they are.
func (s *Store) copyTopics(ctx context.Context, sh *shard) (int64, error) {
	held, err := s.client.HGet(ctx, sh.keys.Limits, "").Result()
	if err != nil && !connect.IsNil(err) {
		return 0, fmt.Errorf("read the policies of shard %d: %w", sh.index, connect.MapError(ctx, err))
	}
	topics, revision, err := s.Topics(ctx)
	if err != nil {
		return 0, err
	}
	copies := make([][2]string, 0, len(topics))
	for _, t := range topics {
		copies = append(copies, [2]string{layout.TopicName(t.Namespace, t.Name), layout.FormatLimits(t.Revision, t.Policy.Limits().Over(s.limits))})
	}
	lost := ""
	if num(held) > revision {
		lost = held
		if copies, err = s.withForgotten(ctx, sh, copies); err != nil {
			return 0, err
		}
		s.log.WarnContext(ctx, "topic policies were rolled back by a failover", "shard", sh.index)
	}
	for from := 0; ; from += copyChunk {
		chunk := copies[from:min(from+copyChunk, len(copies))]
		last := from+copyChunk >= len(copies)
		args := []any{"", lost}
		if last || lost == "" {
			args[0] = revision
		}
		for _, c := range chunk {
			args = append(args, c[0], c[1])
		}
		reply, err := s.eval(ctx, scriptCopyLimits, []string{sh.keys.Limits, sh.keys.Recheck, sh.keys.Wake}, args)
		if err != nil {
			return 0, fmt.Errorf("copy topics to shard %d: %w", sh.index, err)
		}
		if num(reply) < 0 {
			return unknownRevision, nil // another carrier was quicker: look again
		}
		if last {
			return revision, nil
		}
	}
}

// withForgotten adds the topics that a shard knows and the policies have lost: they go by the defaults again.
func (s *Store) withForgotten(ctx context.Context, sh *shard, copies [][2]string) ([][2]string, error) {
	known, err := s.client.HGetAll(ctx, sh.keys.Limits).Result()
	if err != nil {
		return nil, fmt.Errorf("read the policies of shard %d: %w", sh.index, connect.MapError(ctx, err))
	}
	kept := map[string]bool{"": true}
	for _, c := range copies {
		kept[c[0]] = true
	}
	for name := range known {
		if !kept[name] {
			copies = append(copies, [2]string{name, s.defaults})
		}
	}
	return copies, nil
}
