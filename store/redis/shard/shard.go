package shard

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

//go:embed *.lua
var files embed.FS

var (
	scriptIntern = layout.New(files, "intern")
	scriptPeek   = layout.New(files, "peek", "record read_without_body")
)

const (
	// staleTries bounds how often a call is repeated after the database was emptied.
	staleTries = 3
	// readChunk is how many jobs EachJob reads in one script.
	readChunk = 500
)

// A Shard is one shard's keys and queues, and runs scripts on it.
//
// A queue's number is given once, so that it can be cached. Numbers change when the database is emptied, and when a
// queue is used again after it was forgotten. Then scripts reply STALE, and RetryStale drops the cache.
type Shard struct {
	*layout.Runner
	Keys  layout.Keys
	Index int
	Log   *slog.Logger
	// Unreadable logs jobs that cannot be decoded, which calls for several jobs leave out.
	Unreadable logs.Limited
	// Rescoring is set while scores are moved after a step of Redis's clock, as far as this process knows.
	Rescoring atomic.Bool

	cache cache
}

// New returns the shard with a hash tag and an index.
func New(r *layout.Runner, log *slog.Logger, tag string, index int) *Shard {
	s := &Shard{
		Runner: r, Keys: layout.NewKeys(tag), Index: index, Log: log,
		Unreadable: logs.Limited{Logger: log, Interval: time.Minute, Burst: 20},
	}
	s.cache.keys = &s.Keys
	s.cache.clear()
	return s
}

// NewCall lays out the keys and arguments of a script that includes keys.lua. replyKey is where its reply is kept for
// repeats; calls without one pass a key that does not exist. Queues must not be nil; their topics need not be in
// topics. extra is how many arguments will be added.
func (s *Shard) NewCall(
	c *layout.Script, replyKey string, queues []*layout.Queue, topics []*layout.Topic, extra int,
) *layout.Call {
	all := make([]*layout.Topic, 0, len(topics)+1)
	position := make(map[*layout.Topic]int, len(topics)+1)
	index := func(t *layout.Topic) int {
		at, ok := position[t]
		if !ok {
			all = append(all, t)
			at = len(all)
			position[t] = at
		}
		return at
	}
	for _, t := range topics {
		index(t)
	}
	keys := make([]string, 0, 22+4*len(queues)+11+2)
	keys = append(append(keys, s.Keys.Common...), replyKey)
	args := make([]any, 3, 3+3*len(queues)+1+extra)
	for _, q := range queues {
		keys = append(keys, q.Due, q.Ready, q.Claimed, q.Ordered)
		args = append(args, q.Number, index(q.TopicKeys), q.Name)
	}
	for _, t := range all {
		keys = append(keys, t.Stats, t.Done, t.Dead, t.Cancelled, t.Open, t.Unhealthy, t.History,
			t.AllHistory)
		keys = append(keys, t.Wakeups[:]...)
		args = append(args, t.Name)
	}
	args[0], args[1], args[2] = len(queues), len(all), s.Defaults
	return &layout.Call{Script: c, Keys: keys, Args: args}
}

// RetryStale calls do, and again without cached queues when their numbers turned out to be stale.
func (s *Shard) RetryStale(do func() error) error {
	var err error
	for range staleTries {
		if err = do(); !errors.Is(err, layout.ErrStale) {
			return err
		}
		s.ForgetQueues()
	}
	return &store.UnavailableError{Reason: "redis: the database was emptied", RetryAfter: time.Second, Err: err}
}

// ForgetQueues drops the cached numbers of queues.
func (s *Shard) ForgetQueues() { s.cache.clear() }

// Intern finds queues by name, and numbers those that are new.
func (s *Shard) Intern(ctx context.Context, wanted []job.Queue) ([]*layout.Queue, error) {
	found, missing := s.cache.lookup(wanted)
	if len(missing) == 0 {
		return found, nil
	}
	keys := []string{s.Keys.Queues, s.Keys.Names, s.Keys.Topics, s.Keys.LastNumber}
	args := make([]any, 0, 3*len(missing))
	for _, q := range missing {
		name := layout.TopicName(q.Namespace, q.Topic)
		keys = append(keys, s.Keys.TopicLanes(name))
		args = append(args, q.String(), name, q.Lane)
	}
	reply, err := s.Eval(ctx, scriptIntern, keys, args)
	if err != nil {
		return nil, fmt.Errorf("number queues: %w", err)
	}
	numbers := layout.Strs(reply)
	if len(numbers) != len(missing) {
		return nil, scriptIntern.Malformed()
	}
	return s.fill(wanted, found, missing, numbers), nil
}

// Find finds queues by name. position has each wanted queue's place among the known ones, from 1; 0 for one that the
// shard does not have.
func (s *Shard) Find(ctx context.Context, wanted []job.Queue) (known []*layout.Queue, position []int, err error) {
	found, missing := s.cache.lookup(wanted)
	if len(missing) > 0 {
		names := make([]string, len(missing))
		for i, q := range missing {
			names[i] = q.String()
		}
		values, err := s.Client.HMGet(ctx, s.Keys.Queues, names...).Result()
		if err != nil {
			return nil, nil, connect.MapError(ctx, err)
		}
		found = s.fill(wanted, found, missing, layout.Strs(values))
	}
	known, position = make([]*layout.Queue, 0, len(found)), make([]int, len(found))
	for i, q := range found {
		if q != nil {
			known = append(known, q)
			position[i] = len(known)
		}
	}
	return known, position, nil
}

// fill caches the numbers of missing queues, and completes found.
func (s *Shard) fill(wanted []job.Queue, found []*layout.Queue, missing []job.Queue, numbers []string) []*layout.Queue {
	added := make(map[job.Queue]*layout.Queue, len(missing))
	for i, q := range missing {
		if numbers[i] != "" {
			added[q] = s.cache.add(q, numbers[i])
		}
	}
	for i, q := range wanted {
		if found[i] == nil {
			found[i] = added[q]
		}
	}
	return found
}

// FindByNumber finds queues by number. unknown are the numbers that no queue has.
func (s *Shard) FindByNumber(
	ctx context.Context, numbers []string,
) (queues []*layout.Queue, unknown []string, err error) {
	queues, missing := s.cache.lookupNumbers(numbers)
	queues = slices.DeleteFunc(queues, func(q *layout.Queue) bool { return q == nil })
	if len(missing) == 0 {
		return queues, nil, nil
	}
	names, err := s.Client.HMGet(ctx, s.Keys.Names, missing...).Result()
	if err != nil {
		return nil, nil, connect.MapError(ctx, err)
	}
	for i, name := range layout.Strs(names) {
		if q, ok := layout.ParseQueue(name); ok {
			queues = append(queues, s.cache.add(q, missing[i]))
		} else {
			unknown = append(unknown, missing[i])
		}
	}
	return queues, unknown, nil
}

// PeekByNumber finds queues by number without caching those that are not cached: a scan of all queues must not displace
// the ones in use. Numbers that no queue has are left out.
func (s *Shard) PeekByNumber(ctx context.Context, numbers []string) (map[string]*layout.Queue, error) {
	found := make(map[string]*layout.Queue)
	topics := make(map[string]*layout.Topic)
	var missing []string
	for _, n := range numbers {
		if q := s.cache.byNumber(n); q != nil {
			found[n], topics[q.TopicKeys.Name] = q, q.TopicKeys
		} else if _, asked := found[n]; !asked {
			found[n] = nil
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	names, err := s.Client.HMGet(ctx, s.Keys.Names, missing...).Result()
	if err != nil {
		return nil, connect.MapError(ctx, err)
	}
	for i, name := range layout.Strs(names) {
		if q, ok := layout.ParseQueue(name); ok {
			found[missing[i]] = s.Uncached(q, missing[i], topics)
		} else {
			delete(found, missing[i])
		}
	}
	return found, nil
}

// Uncached returns a queue's keys without caching them. topics has the topics that were returned before.
func (s *Shard) Uncached(q job.Queue, number string, topics map[string]*layout.Topic) *layout.Queue {
	name := layout.TopicName(q.Namespace, q.Topic)
	t := topics[name]
	if t == nil {
		t = s.Keys.TopicByName(name)
		topics[name] = t
	}
	return s.Keys.Queue(q, number, t)
}

// QueueOf returns the queue that a job's record names by its number. name is the one that Redis has for the number. The
// error is layout.ErrRecord when the name is lost, and script.ErrStale when the number is cached under another.
func (s *Shard) QueueOf(record, name string) (*layout.Queue, error) {
	number, ok := layout.QueueNumber(record)
	if !ok {
		return nil, layout.ErrRecord
	}
	known := s.cache.byNumber(number)
	if known != nil && known.Name == name {
		return known, nil
	}
	q, ok := layout.ParseQueue(name)
	switch {
	case !ok:
		return nil, layout.ErrRecord
	case known != nil:
		return nil, layout.ErrStale
	}
	return s.cache.add(q, number), nil
}

// EachJob reads jobs without their bodies. It calls do with each one's index among the job keys, the store's clock in
// ms, its record (empty if it does not exist), its run, and its queue's name.
func (s *Shard) EachJob(
	ctx context.Context, jobKeys []any, do func(i int, now int64, record, run, queue string) error,
) error {
	for done := 0; done < len(jobKeys); {
		chunk := jobKeys[done:min(done+readChunk, len(jobKeys))]
		answer, err := s.EvalList(ctx, scriptPeek, 4, []string{s.Keys.Jobs, s.Keys.Runs, s.Keys.Names}, chunk)
		if err != nil {
			return err
		}
		now, records, runs, names := layout.Num(answer[0]), layout.Strs(answer[1]), layout.Strs(answer[2]),
			layout.Strs(answer[3])
		if n := len(records); n == 0 || n > len(chunk) || len(runs) != n || len(names) != n {
			return scriptPeek.Malformed()
		}
		for i := range records {
			if err := do(done+i, now, records[i], runs[i], names[i]); err != nil {
				return err
			}
		}
		done += len(records)
	}
	return nil
}

// CheckBatchSize panics if a call has more items than the contract allows.
func CheckBatchSize(n int) {
	if n > store.MaxBatch {
		panic("redis: more items in a call than store.MaxBatch")
	}
}

// QueuesOf returns the distinct queues of a batch, in order, and each item's position among them, from 1.
func QueuesOf[T any](items []T, of func(*T) job.Queue) (queues []job.Queue, position []int) {
	position = make([]int, len(items))
	if len(items) == 0 {
		return nil, position
	}
	first := of(&items[0])
	seen := map[job.Queue]int{}
	for i := range items {
		q := of(&items[i])
		if q == first {
			position[i] = 1
			if i == 0 {
				queues = append(queues, q)
			}
			continue
		}
		at, ok := seen[q]
		if !ok {
			queues = append(queues, q)
			at = len(queues)
			seen[q] = at
		}
		position[i] = at
	}
	return queues, position
}

// Distinct returns queues without duplicates, in order.
func Distinct(all []*layout.Queue) (queues []*layout.Queue) {
	seen := make(map[*layout.Queue]bool, len(all))
	for _, q := range all {
		if !seen[q] {
			seen[q] = true
			queues = append(queues, q)
		}
	}
	return queues
}
