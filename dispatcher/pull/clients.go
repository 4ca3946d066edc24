package pull

import (
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

type topicName struct{ namespace, name string }

// topic is a pulled topic that clients ask for, or asked for until recently. The Puller's mutex guards it.
type topic struct {
	topicName
	group    string
	clients  []*client // that wait, in order of arrival
	runnable []queues  // by shard
	starts   starts
	looked   []bool    // by shard: it was looked at for the group since that joined those to wait for
	leftAt   time.Time // when the last client left
	unasked  bool      // a wake-up came while no client waited
	// passOn notifies other processes of queues that no client here asks for, after passOnAfter.
	passOn      *time.Timer // nil: it does not run
	passOnAfter time.Duration
}

// A client waits for jobs.
type client struct {
	topic   *topic
	request *store.LeaseRequest
	key     store.LeaseKey // authenticates its leases
	wake    chan struct{}  // has an element when the client should look for a runnable queue
	most    int            // jobs to claim next; more than it may have after a claim of which it got none
	awake   bool           // it was woken, and has not looked yet; guarded by the Puller's mutex
	looks   bool           // it waits only until all shards were looked at; guarded by the Puller's mutex
	settles bool           // its reports come first: wake-ups are for others; guarded by the Puller's mutex
}

// asksFor reports whether a client takes jobs of a lane.
func (c *client) asksFor(lane string) bool { return matchesLane(c.request.Lanes, lane) }

// matchesLane reports whether a lane matches one of the patterns, or there are none.
func matchesLane(patterns []string, lane string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(lane, prefix)
		}
		return lane == pattern
	})
}

// listenFor is how long a topic without clients is listened to, so that a client that asks again soon finds its group.
const listenFor = 10 * time.Second

// enter adds a client to those that wait. One that settles is not woken before it picks without a settlement.
func (p *Puller) enter(request *store.LeaseRequest, key store.LeaseKey, settles bool) (*client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, store.ErrStopping
	}
	t := p.topicOf(topicName{request.Namespace, request.Topic})
	c := &client{
		topic: t, request: request, key: key, most: request.Max,
		wake: make(chan struct{}, 1), settles: settles,
	}
	if len(t.clients) == 0 && !p.isListened(t) {
		clear(t.looked)
		close(p.changed)
		p.changed = make(chan struct{})
	}
	t.clients, t.unasked, t.passOnAfter = append(t.clients, c), false, 0
	return c, nil
}

// topicOf returns a topic, new if no client has asked for it lately. The caller holds the mutex.
func (p *Puller) topicOf(name topicName) *topic {
	t := p.topics[name]
	if t == nil {
		t = &topic{
			topicName: name, group: store.GroupOf(name.namespace, name.name, policy.DeliverPull),
			runnable: make([]queues, len(p.shards)), looked: make([]bool, len(p.shards)),
		}
		p.topics[name] = t
	}
	return t
}

// leave removes a client, and wakes others for what it has left.
func (p *Puller) leave(c *client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := c.topic
	t.clients = slices.DeleteFunc(t.clients, func(other *client) bool { return other == c })
	if len(t.clients) == 0 {
		t.leftAt = time.Now()
	}
	p.wakeClients(t)
}

// isListened reports whether a topic's group is among those to wait for. The caller holds the mutex.
func (p *Puller) isListened(t *topic) bool {
	return len(t.clients) > 0 || !t.unasked && !t.leftAt.IsZero() && time.Since(t.leftAt) < listenFor
}

// groups returns the groups to wait for, those of them for which a shard was not looked at yet, and a channel that is
// closed when another joins. It forgets topics that no client asks for any more.
func (p *Puller) groups(shard int) (groups, fresh []string, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, t := range p.topics {
		switch {
		case p.isListened(t):
			groups = append(groups, t.group)
			if !t.looked[shard] {
				fresh = append(fresh, t.group)
			}
		case t.passOn == nil && time.Now().After(t.starts.until) && time.Now().After(t.starts.next):
			delete(p.topics, name)
		}
	}
	slices.Sort(groups)
	slices.Sort(fresh)
	return groups, fresh, p.changed
}

// markLookedAt notes that a shard was looked at for groups, which are sorted, and wakes the clients that wait for that.
func (p *Puller) markLookedAt(shard int, groups []string) {
	if len(groups) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.topics {
		if t.looked[shard] {
			continue
		}
		if _, found := slices.BinarySearch(groups, t.group); !found {
			continue
		}
		t.looked[shard] = true
		for _, c := range t.clients {
			if c.looks && !c.awake {
				c.awake = true
				c.wake <- struct{}{}
			}
		}
	}
}

// waitsForLook reports whether a shard was not looked at since a client's group joined those to wait for. The client is
// woken when one is.
func (p *Puller) waitsForLook(c *client) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.looks = slices.Contains(c.topic.looked, false)
	return c.looks
}

// markRunnable notes the queues of a wake-up, and wakes clients for them.
func (p *Puller) markRunnable(shard int, names []job.Queue) {
	if len(names) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range names {
		t := p.topicOf(topicName{q.Namespace, q.Topic})
		t.unasked = t.unasked || len(t.clients) == 0
		t.runnable[shard].add(q)
		if !t.wakeOne(q.Lane) {
			p.armPassOn(t)
		}
	}
}

// wakeOne wakes the first client that asks for a lane and was not woken yet. It reports false if no client asks for it.
// The caller holds the mutex.
func (t *topic) wakeOne(lane string) bool {
	asked := false
	for _, c := range t.clients {
		if !c.asksFor(lane) {
			continue
		}
		if asked = true; !c.awake && !c.settles {
			c.awake = true
			c.wake <- struct{}{}
			return true
		}
	}
	return asked
}

// wakeClients wakes clients for runnable queues of a topic that no claim under way will serve, and other processes if
// no client asks for them. The caller holds the mutex.
func (p *Puller) wakeClients(t *topic) {
	var awake []*client // that no queue was found for
	for _, c := range t.clients {
		if c.awake {
			awake = append(awake, c)
		}
	}
	unasked := false
	for n := range t.runnable {
		for _, q := range t.runnable[n].all(claimQueues, func(r *runnable) bool { return r.claims == 0 }) {
			if i := slices.IndexFunc(awake, func(c *client) bool { return c.asksFor(q.Lane) }); i >= 0 {
				awake = slices.Delete(awake, i, i+1)
			} else if !t.wakeOne(q.Lane) {
				unasked = true
			}
		}
	}
	if unasked {
		p.armPassOn(t)
	}
}

// sleep notes that a client has looked for runnable queues. The caller holds the mutex.
func (c *client) sleep() {
	if c.awake {
		c.awake = false
		select {
		case <-c.wake:
		default: // it has received it
		}
	}
}
