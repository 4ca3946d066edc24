package shard

import (
	"cmp"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/redis/layout"
)

const (
	// maxCached bounds each of the cache's two generations of queues.
	maxCached = 100_000
	// generationAge is how long a generation is the newest. A queue that is unused for up to twice as long is dropped.
	generationAge = 5 * time.Minute
)

// A cache has the numbers of a shard's queues, in two generations.
type cache struct {
	keys *layout.Keys

	mu        sync.RWMutex
	newest    generation
	older     generation
	rotatedAt time.Time // when newest began
}

// A generation has queues and their topics.
type generation struct {
	byName   map[job.Queue]*layout.Queue
	byNumber map[string]*layout.Queue
	topics   map[string]*layout.Topic
}

func newGeneration() generation {
	return generation{map[job.Queue]*layout.Queue{}, map[string]*layout.Queue{}, map[string]*layout.Topic{}}
}

func (g *generation) add(q *layout.Queue) {
	g.byName[q.Queue], g.byNumber[q.Number], g.topics[q.TopicKeys.Name] = q, q, q.TopicKeys
}

// clear drops all queues.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest, c.older, c.rotatedAt = newGeneration(), newGeneration(), time.Now()
}

// byNumber returns the queue with a number, nil if it is not cached. It does not count as use.
func (c *cache) byNumber(number string) *layout.Queue {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return cmp.Or(c.newest.byNumber[number], c.older.byNumber[number])
}

// add caches a queue's number.
func (c *cache) add(q job.Queue, number string) *layout.Queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rotate()
	if known := c.newest.byName[q]; known != nil && known.Number == number {
		return known
	}
	name := layout.TopicName(q.Namespace, q.Topic)
	t := cmp.Or(c.newest.topics[name], c.older.topics[name]) // calls compare topics by their pointers
	if t == nil {
		t = c.keys.TopicByName(name)
	}
	known := c.keys.Queue(q, number, t)
	c.newest.add(known)
	return known
}

// rotate begins a new generation when the newest is full or old; c.mu is held.
func (c *cache) rotate() {
	if c.isFull() {
		c.newest, c.older, c.rotatedAt = newGeneration(), c.newest, time.Now()
	}
}

func (c *cache) isFull() bool {
	return len(c.newest.byName) >= maxCached || time.Since(c.rotatedAt) >= generationAge
}

// markUsed moves queues of the older generation to the newest.
func (c *cache) markUsed(old []*layout.Queue, full bool) {
	if len(old) == 0 && !full {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rotate()
	for _, q := range old {
		t := cmp.Or(c.newest.topics[q.TopicKeys.Name], c.older.topics[q.TopicKeys.Name])
		if c.newest.byName[q.Queue] == nil && (t == nil || t == q.TopicKeys) {
			c.newest.add(q)
		}
	}
}

// lookup finds queues by name; missing are those that are not cached.
func (c *cache) lookup(wanted []job.Queue) (found []*layout.Queue, missing []job.Queue) {
	return lookup(c, wanted, func(g *generation, q job.Queue) *layout.Queue { return g.byName[q] })
}

// lookupNumbers finds queues by number; missing are those that are not cached.
func (c *cache) lookupNumbers(wanted []string) (found []*layout.Queue, missing []string) {
	return lookup(c, wanted, func(g *generation, n string) *layout.Queue { return g.byNumber[n] })
}

func lookup[T any](c *cache, wanted []T, get func(*generation, T) *layout.Queue) (found []*layout.Queue, missing []T) {
	found = make([]*layout.Queue, len(wanted))
	var old []*layout.Queue
	c.mu.RLock()
	for i, w := range wanted {
		if found[i] = get(&c.newest, w); found[i] != nil {
			continue
		}
		if found[i] = get(&c.older, w); found[i] != nil {
			old = append(old, found[i])
		} else {
			missing = append(missing, w)
		}
	}
	full := c.isFull()
	c.mu.RUnlock()
	c.markUsed(old, full)
	return found, missing
}
