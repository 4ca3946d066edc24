package redis

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
)

// cacheMax bounds the queues whose numbers a process remembers for each shard; beyond it, it begins anew.
const cacheMax = 200_000

// A part is one shard's keys, and what this process knows of its queues' numbers. Numbers never change, except when
// someone empties the database: scripts then answer STALE, and the memory is dropped.
type part struct {
	keys
	index int

	mu       sync.RWMutex
	byName   map[job.Queue]*queue
	byNumber map[string]*queue
	topics   map[string]*topic

	unreadable map[string]bool // outbox entries that were complained of

	sweepAfter string // the topic that the last Sweep came to
	listener   listener
	repairs    repairs
	lock       lockWatch // under mu
	watch      clockWatch
}

func newPart(k keys, index int) *part {
	s := &part{keys: k, index: index}
	s.forget()
	return s
}

// forget drops what is known of queues.
func (s *part) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName, s.byNumber, s.topics = map[job.Queue]*queue{}, map[string]*queue{}, map[string]*topic{}
}

// complaintsMax bounds the outbox entries that a process remembers to have complained of; beyond it, it begins anew.
const complaintsMax = 1000

// first tells whether an outbox entry was not complained of before: it is read in every round.
func (s *part) first(member string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreadable[member] {
		return false
	}
	if s.unreadable == nil || len(s.unreadable) >= complaintsMax {
		s.unreadable = map[string]bool{}
	}
	s.unreadable[member] = true
	return true
}

// numbered is the queue that a number means, given the name that Redis has for it. errStale when the number was known
// under another name, or has none any more.
func (s *part) numbered(number, name string) (*queue, error) {
	s.mu.RLock()
	known := s.byNumber[number]
	s.mu.RUnlock()
	if known != nil && known.name == name {
		return known, nil
	}
	q, ok := parseQueue(name)
	if known != nil || !ok {
		return nil, errStale
	}
	return s.remember(q, number), nil
}

// remember notes a queue's number.
func (s *part) remember(q job.Queue, number string) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byName[q]; known != nil && known.number == number {
		return known
	}
	if len(s.byName) >= cacheMax {
		s.byName, s.byNumber, s.topics = map[job.Queue]*queue{}, map[string]*queue{}, map[string]*topic{}
	}
	name := topicName(q.Namespace, q.Topic)
	t := s.topics[name]
	if t == nil {
		t = s.topic(q.Namespace, q.Topic)
		s.topics[name] = t
	}
	known := s.queue(q, number, t)
	s.byName[q], s.byNumber[number] = known, known
	return known
}

// lookup finds queues by name in memory and names those that are not there.
func (s *part) lookup(wanted []job.Queue) (found []*queue, missing []job.Queue) {
	found = make([]*queue, len(wanted))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i, q := range wanted {
		if found[i] = s.byName[q]; found[i] == nil {
			missing = append(missing, q)
		}
	}
	return found, missing
}

// intern finds queues by name and numbers those that are new.
func (s *part) intern(ctx context.Context, r *runner, wanted []job.Queue) ([]*queue, error) {
	found, missing := s.lookup(wanted)
	if len(missing) == 0 {
		return found, nil
	}
	keys := []string{s.queues, s.names, s.seen}
	args := make([]any, 0, 3*len(missing))
	for _, q := range missing {
		name := topicName(q.Namespace, q.Topic)
		keys = append(keys, s.lanes(name))
		args = append(args, q.String(), name, q.Lane)
	}
	reply, err := r.eval(ctx, scriptIntern, keys, args)
	if err != nil {
		return nil, fmt.Errorf("number queues: %w", err)
	}
	numbers := strs(reply)
	if len(numbers) != len(missing) {
		return nil, malformed(scriptIntern)
	}
	return s.fill(wanted, found, missing, numbers), nil
}

// find finds queues by name; one that the shard has never seen is nil.
func (s *part) find(ctx context.Context, r *runner, wanted []job.Queue) ([]*queue, error) {
	found, missing := s.lookup(wanted)
	if len(missing) == 0 {
		return found, nil
	}
	names := make([]string, len(missing))
	for i, q := range missing {
		names[i] = q.String()
	}
	values, err := r.client.HMGet(ctx, s.queues, names...).Result()
	if err != nil {
		return nil, fault(ctx, err)
	}
	return s.fill(wanted, found, missing, strs(values)), nil
}

// fill remembers the numbers of what was missing, and completes found.
func (s *part) fill(wanted []job.Queue, found []*queue, missing []job.Queue, numbers []string) []*queue {
	fresh := make(map[job.Queue]*queue, len(missing))
	for i, q := range missing {
		if numbers[i] != "" {
			fresh[q] = s.remember(q, numbers[i])
		}
	}
	for i, q := range wanted {
		if found[i] == nil {
			found[i] = fresh[q]
		}
	}
	return found
}

// named finds queues by number; those that are not there are left out.
func (s *part) named(ctx context.Context, client redis.UniversalClient, numbers []string) ([]*queue, error) {
	found := make([]*queue, 0, len(numbers))
	var missing []string
	s.mu.RLock()
	for _, n := range numbers {
		if q := s.byNumber[n]; q != nil {
			found = append(found, q)
		} else {
			missing = append(missing, n)
		}
	}
	s.mu.RUnlock()
	if len(missing) == 0 {
		return found, nil
	}
	names, err := client.HMGet(ctx, s.names, missing...).Result()
	if err != nil {
		return nil, fault(ctx, err)
	}
	for i, name := range strs(names) {
		if q, ok := parseQueue(name); ok {
			found = append(found, s.remember(q, missing[i]))
		}
	}
	return found, nil
}
