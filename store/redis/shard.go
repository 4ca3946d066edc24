package redis

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

const (
	// cacheMax bounds each of the two generations of queues whose numbers a process remembers for a shard.
	cacheMax = 100_000
	// cacheFor is how long a generation is the newest. A queue that is not used for up to twice as long is forgotten.
	cacheFor = 5 * time.Minute
)

// numbering is a generation of what a process knows of queues' numbers.
type numbering struct {
	byName   map[job.Queue]*layout.Queue
	byNumber map[string]*layout.Queue
	topics   map[string]*layout.Topic
}

func newNumbering() numbering {
	return numbering{map[job.Queue]*layout.Queue{}, map[string]*layout.Queue{}, map[string]*layout.Topic{}}
}

// A shard is one shard's keys, and what this process knows of its queues' numbers. A number never means another queue, but
// when someone empties the database, and a queue that was forgotten gets another: scripts then answer STALE, and the cache
// is dropped.
type shard struct {
	keys  layout.Keys
	store *Store
	index int

	mu        sync.RWMutex
	newest    numbering
	older     numbering
	rotatedAt time.Time // when newest began

	unreadable map[string]bool // outbox entries that were complained of

	sweepAfter  string            // the topic that the last Sweep came to
	sweepTurns  int               // over all topics, under mu
	idleAfter   map[string]string // the lane that the last look for unused ones came to, of topics with many
	wakeups     listener
	agendaMoves listener
	repairs     repairs
	lock        lockWatch // under mu
	watch       clockWatch
}

func newShard(s *Store, k layout.Keys, index int) *shard {
	sh := &shard{store: s, keys: k, index: index}
	sh.forget()
	return sh
}

// forget drops what is known of queues.
func (s *shard) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest, s.older, s.rotatedAt = newNumbering(), newNumbering(), time.Now()
}

// complaintsMax bounds the outbox entries that a process remembers to have complained of; beyond it, it begins anew.
const complaintsMax = 1000

// isFirstComplaint tells whether an outbox entry was not complained of before: it is read in every round.
func (s *shard) isFirstComplaint(member string) bool {
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
func (s *shard) numbered(number, name string) (*layout.Queue, error) {
	s.mu.RLock()
	known := s.newest.byNumber[number]
	if known == nil {
		known = s.older.byNumber[number]
	}
	s.mu.RUnlock()
	if known != nil && known.Name == name {
		return known, nil
	}
	q, ok := layout.ParseQueue(name)
	if known != nil || !ok {
		return nil, errStale
	}
	return s.remember(q, number), nil
}

// remember notes a queue's number.
func (s *shard) remember(q job.Queue, number string) *layout.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotate()
	if known := s.newest.byName[q]; known != nil && known.Number == number {
		return known
	}
	name := layout.TopicName(q.Namespace, q.Topic)
	t := cmp.Or(s.newest.topics[name], s.older.topics[name]) // calls tell topics apart by their pointers
	if t == nil {
		t = s.keys.Topic(q.Namespace, q.Topic)
	}
	known := s.keys.Queue(q, number, t)
	s.newest.add(known)
	return known
}

func (n *numbering) add(q *layout.Queue) {
	n.byName[q.Queue], n.byNumber[q.Number], n.topics[q.TopicKeys.Name] = q, q, q.TopicKeys
}

// rotate begins a new generation when it is time; s.mu is held.
func (s *shard) rotate() {
	if s.full() {
		s.newest, s.older, s.rotatedAt = newNumbering(), s.newest, time.Now()
	}
}

func (s *shard) full() bool {
	return len(s.newest.byName) >= cacheMax || time.Since(s.rotatedAt) >= cacheFor
}

// use moves queues of the older generation to the newest, and begins a new one when it is time.
func (s *shard) use(old []*layout.Queue, full bool) {
	if len(old) == 0 && !full {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotate()
	for _, q := range old {
		t := cmp.Or(s.newest.topics[q.TopicKeys.Name], s.older.topics[q.TopicKeys.Name])
		if s.newest.byName[q.Queue] == nil && (t == nil || t == q.TopicKeys) {
			s.newest.add(q)
		}
	}
}

// lookup finds queues by name in memory and names those that are not there.
func (s *shard) lookup(wanted []job.Queue) (found []*layout.Queue, missing []job.Queue) {
	found = make([]*layout.Queue, len(wanted))
	var old []*layout.Queue
	s.mu.RLock()
	for i, q := range wanted {
		if found[i] = s.newest.byName[q]; found[i] != nil {
			continue
		}
		if found[i] = s.older.byName[q]; found[i] != nil {
			old = append(old, found[i])
		} else {
			missing = append(missing, q)
		}
	}
	full := s.full()
	s.mu.RUnlock()
	s.use(old, full)
	return found, missing
}

// intern finds queues by name and numbers those that are new.
func (s *shard) intern(ctx context.Context, r *runner, wanted []job.Queue) ([]*layout.Queue, error) {
	found, missing := s.lookup(wanted)
	if len(missing) == 0 {
		return found, nil
	}
	keys := []string{s.keys.Queues, s.keys.Names, s.keys.Seen, s.keys.Last}
	args := make([]any, 0, 3*len(missing))
	for _, q := range missing {
		name := layout.TopicName(q.Namespace, q.Topic)
		keys = append(keys, s.keys.Lanes(name))
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
func (s *shard) find(ctx context.Context, r *runner, wanted []job.Queue) ([]*layout.Queue, error) {
	found, missing := s.lookup(wanted)
	if len(missing) == 0 {
		return found, nil
	}
	names := make([]string, len(missing))
	for i, q := range missing {
		names[i] = q.String()
	}
	values, err := r.client.HMGet(ctx, s.keys.Queues, names...).Result()
	if err != nil {
		return nil, connect.MapError(ctx, err)
	}
	return s.fill(wanted, found, missing, strs(values)), nil
}

// fill remembers the numbers of what was missing, and completes found.
func (s *shard) fill(wanted []job.Queue, found []*layout.Queue, missing []job.Queue, numbers []string) []*layout.Queue {
	fresh := make(map[job.Queue]*layout.Queue, len(missing))
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
func (s *shard) named(ctx context.Context, client redis.UniversalClient, numbers []string) ([]*layout.Queue, error) {
	found := make([]*layout.Queue, 0, len(numbers))
	var missing []string
	var old []*layout.Queue
	s.mu.RLock()
	for _, n := range numbers {
		if q := s.newest.byNumber[n]; q != nil {
			found = append(found, q)
		} else if q := s.older.byNumber[n]; q != nil {
			found, old = append(found, q), append(old, q)
		} else {
			missing = append(missing, n)
		}
	}
	full := s.full()
	s.mu.RUnlock()
	s.use(old, full)
	if len(missing) == 0 {
		return found, nil
	}
	names, err := client.HMGet(ctx, s.keys.Names, missing...).Result()
	if err != nil {
		return nil, connect.MapError(ctx, err)
	}
	for i, name := range strs(names) {
		if q, ok := layout.ParseQueue(name); ok {
			found = append(found, s.remember(q, missing[i]))
		}
	}
	return found, nil
}
