package pull

import (
	"container/list"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
)

const (
	// claimQueues bounds the queues of one claim.
	claimQueues = 32
	// maxRunnable bounds the runnable queues of a topic on a shard. The store notifies of others again within a second.
	maxRunnable = 10_000
)

// queues are the runnable queues of a topic on a shard: those that claims should look at, in turns.
type queues struct {
	order list.List // of *runnable
	known map[job.Queue]*list.Element
}

// runnable is a queue that may have claimable jobs.
type runnable struct {
	queue   job.Queue
	wakeups int // that named it
	claims  int // under way that will probably serve it
}

// add adds a queue, or counts its wake-up.
func (q *queues) add(name job.Queue) {
	if e := q.known[name]; e != nil {
		r, _ := e.Value.(*runnable)
		r.wakeups++
		return
	}
	if len(q.known) >= maxRunnable {
		return
	}
	if q.known == nil {
		q.known = make(map[job.Queue]*list.Element)
	}
	q.known[name] = q.order.PushBack(&runnable{queue: name})
}

// remove removes a picked queue, unless a wake-up has named it since.
func (q *queues) remove(r *pickedQueue) {
	e := q.known[r.queue]
	if e != nil && e.Value == r.runnable && r.wakeups == r.runnable.wakeups {
		q.order.Remove(e)
		delete(q.known, r.queue)
	}
}

// pick returns up to claimQueues queues that a client asks for, and has others come before those that its claim will
// serve.
func (q *queues) pick(c *client) (picked []pickedQueue) {
	for e := q.order.Front(); e != nil && len(picked) < claimQueues; e = e.Next() {
		if r, _ := e.Value.(*runnable); c.asksFor(r.queue.Lane) {
			picked = append(picked, pickedQueue{runnable: r, wakeups: r.wakeups})
		}
	}
	for i := range picked[:min(len(picked), c.most)] {
		picked[i].turn = true
		picked[i].claims++
		q.order.MoveToBack(q.known[picked[i].queue])
	}
	return picked
}

// putBack ends a claim of picked queues, and has those come first that it did not serve, in their order.
func (q *queues) putBack(all []pickedQueue, served func(name job.Queue) bool) {
	for _, r := range slices.Backward(all) {
		if r.turn {
			r.claims--
		}
		if e := q.known[r.queue]; e != nil && r.claims == 0 && !served(r.queue) {
			q.order.MoveToFront(e)
		}
	}
}

// all returns up to most queues that selected selects.
func (q *queues) all(most int, selected func(r *runnable) bool) (found []job.Queue) {
	for e := q.order.Front(); e != nil && len(found) < most; e = e.Next() {
		if r, _ := e.Value.(*runnable); selected(r) {
			found = append(found, r.queue)
		}
	}
	return found
}

// picked are runnable queues of one shard, to claim from.
type picked struct {
	shard  int
	queues []pickedQueue
}

// pickedQueue is a queue with the number of its wake-ups when it was picked.
type pickedQueue struct {
	*runnable
	wakeups int
	turn    bool // the claim will probably serve it
}

// pick returns runnable queues that a client asks for; nil: none. Shards take turns at random, as the topics' queues
// do. After a settlement the turn is more often its shard's, whose number and queues are given: these have just had
// jobs and may have room now. Without one the number is negative.
func (p *Puller) pick(c *client, settled int, queues []job.Queue) *picked {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.sleep()
	c.settles = settled >= 0
	if p.stopped || time.Now().Before(c.topic.starts.next) {
		return nil
	}
	first := settled
	if first < 0 || len(p.shards) > 1 && p.opts.Random() < 0.5 {
		first = int(p.opts.Random() * float64(len(p.shards)))
	}
	for i := range p.shards {
		n := (first + i) % len(p.shards)
		found := c.topic.runnable[n].pick(c)
		if n == settled {
			found = appendSettled(found, c, queues)
		}
		if len(found) > 0 {
			return &picked{shard: n, queues: found}
		}
	}
	return nil
}

// appendSettled appends the queues of a settlement that the client asks for, up to claimQueues in all.
func appendSettled(found []pickedQueue, c *client, queues []job.Queue) []pickedQueue {
	seen := make(map[job.Queue]bool, claimQueues)
	for _, r := range found {
		seen[r.queue] = true
	}
	for _, q := range queues {
		if len(found) < claimQueues && !seen[q] && q.Namespace == c.topic.namespace && q.Topic == c.topic.name &&
			c.asksFor(q.Lane) {
			seen[q] = true
			found = append(found, pickedQueue{runnable: &runnable{queue: q}}) // a wake-up makes it another one
		}
	}
	return found
}

// unpick puts back queues of a claim that is not made.
func (p *Puller) unpick(t *topic, from *picked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.runnable[from.shard].putBack(from.queues, func(job.Queue) bool { return false })
}
