package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"strconv"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// claimReply is the result of a claim, as the reply cache keeps it.
type claimReply struct {
	leases []*memory.Lease
	queues []store.QueueStatus
}

func (t *claimReply) weight() int {
	weight := 256*len(t.leases) + 128*len(t.queues)
	for _, q := range t.queues {
		if q.LaneDocument != nil {
			weight += 4096
		}
	}
	return weight
}

// A claim is one request under way. The rows it has read are decoded by the caller, so that the writer need not.
type claim struct {
	token    store.Token
	request  store.ClaimRequest
	kind     string // of its call, for the reply cache
	fill     func(*claim, *unit.Unit) error
	reply    *claimReply
	rows     []*table.Row    // of the reply's leases that have not ended
	leases   []*memory.Lease // the same
	read     int             // jobs that fit so far
	size     int             // of their bodies
	missed   int             // bytes of bodies that were read but do not fit
	batch    []*queueClaim   // the queues of the next statement
	found    []foundJob      // their jobs
	now      clock.Instant
	revision int64
}

// Claim implements store.Shard.
func (s *Store) Claim(ctx context.Context, token store.Token, request store.ClaimRequest) (store.ClaimResult, error) {
	c := newClaim(token, request)
	err := s.db.Submit(ctx, &op{
		Verb: "claim jobs", Weight: request.Max, Run: c.run,
		// Nothing would work on the jobs until their leases expire.
		Gone: func() error { return db.ContextError(ctx) },
	})
	if err != nil {
		return store.ClaimResult{}, err
	}
	return c.answer(s), nil
}

// newClaim returns the claim for a request.
func newClaim(token store.Token, request store.ClaimRequest) *claim {
	checkBatch("queues to claim from", len(request.Queues))
	checkBatch("jobs to claim", request.Max)
	return &claim{token: token, request: request, kind: "claim", fill: (*claim).serveAll}
}

// run makes the claim, or repeats its reply.
func (c *claim) run(u *unit.Unit) error {
	*c = claim{
		token: c.token, request: c.request, kind: c.kind, fill: c.fill, now: u.Now,
		revision: u.Mem.Revisions[store.KindTopic],
	}
	fresh := false
	t, err := unit.Once(u, memory.Call{
		Method: c.kind,
		Token:  c.token,
	}, (*claimReply).weight, func() (*claimReply, error) {
		fresh = true
		u.MayBeNewHead = true // the next job of a queue may be due before all others
		c.reply = &claimReply{}
		if err := c.fill(c, u); err != nil {
			return nil, err
		}
		c.leases = c.reply.leases
		return c.reply, nil
	})
	c.reply = t
	if err != nil || fresh {
		return err
	}
	for _, h := range t.leases {
		if u.Mem.Leases[h.Ref] != h {
			continue
		}
		if err := u.Query(table.JobByN, func(v []driver.Value) error {
			cells := table.Cells(v)
			r := cells.Row()
			cells.Names(r)
			cells.Body(r)
			c.rows, c.leases = append(c.rows, r), append(c.leases, h)
			return nil
		}, h.N); err != nil {
			return err
		}
	}
	return nil
}

const (
	// claimBatch is the number of jobs from which on a claim reads the rows of those it has found. The last queue's may
	// exceed it.
	claimBatch = 128
	// maxMissed bounds the bodies that a claim reads though they do not fit, at most one of each queue, in bytes.
	maxMissed = 4 << 20
)

// A queueClaim is the part of a claim that concerns one queue.
type queueClaim struct {
	want   store.QueueClaim
	status *store.QueueStatus
	queue  *memory.Queue
	keys   []table.Key  // of the first waiting jobs, in order: those that may be claimed, and the one after them
	unread int          // of those that may be claimed, how many have no row yet
	rows   []*table.Row // of the first of them, as far as their bodies fit
}

// served reports whether the caller delivers the queue's jobs as its topic says.
func (p *queueClaim) served() bool { return p.want.Deliver.Same(p.queue.Topic.Limits.Deliver) }

// serveAll serves the queues of the request in order.
func (c *claim) serveAll(u *unit.Unit) error {
	c.reply.queues = make([]store.QueueStatus, len(c.request.Queues))
	for i, want := range c.request.Queues {
		q := u.Mem.Queues[want.Queue] // every queue with waiting jobs is in memory, and every one with a throttle
		if q != nil && q.InClaim || len(c.found) >= claimBatch {
			if err := c.takeAll(u); err != nil {
				return err
			}
		}
		if err := c.find(u, q, want, &c.reply.queues[i]); err != nil {
			return err
		}
	}
	return c.takeAll(u)
}

// find adds the first jobs of one queue to the batch, up to the bounds of its QueueClaim and of the request.
func (c *claim) find(u *unit.Unit, q *memory.Queue, want store.QueueClaim, status *store.QueueStatus) error {
	status.Queue = want.Queue
	if q == nil {
		return completeUnloaded(u, want, status)
	}
	if err := addLaneDocument(u, q, want, status); err != nil {
		return err
	}
	if err := u.LoadHead(q); err != nil {
		return err
	}
	u.PruneThrottle(q)
	p := &queueClaim{want: want, status: status, queue: q}
	c.batch, q.InClaim = append(c.batch, p), true
	ahead := int64(0)
	if !q.Limits().Rate.Limited() && q.Owners.Only(c.token.Owner()) {
		ahead = int64(want.Ahead)
	}
	most := int(min(int64(want.Max), int64(c.request.Max-len(c.reply.leases)-len(c.found)), q.Room(u.Now, ahead)))
	if most <= 0 || c.full() || !q.Due(u.Now) || !p.served() {
		return nil
	}
	if err := u.Begin(); err != nil { // the reads are cheaper within it
		return err
	}
	var err error
	p.keys, err = u.FirstWaiting(q, most+1)
	for _, k := range p.keys[:min(most, len(p.keys))] {
		if k.Due <= u.Now.Millis {
			c.found = append(c.found, foundJob{p, k.N})
			p.unread++
		}
	}
	return err
}

// fits counts a job whose body fits in the answer, as the first one always does.
func (c *claim) fits(r *table.Row) bool {
	size := c.size + int(max(0, r.BodySize))
	if c.read > 0 && size > c.request.MaxBytes {
		c.missed += size - c.size
		return false
	}
	c.read, c.size = c.read+1, size
	return true
}

// full reports whether no other row is read: the bodies of the claimed jobs leave no room, or too many do not fit.
func (c *claim) full() bool {
	return c.read > 0 && c.size >= c.request.MaxBytes || c.missed >= maxMissed
}

// takeAll claims the jobs of the batch, and completes the statuses of its queues.
func (c *claim) takeAll(u *unit.Unit) error {
	for _, p := range c.batch {
		p.queue.InClaim = false
	}
	if err := c.readBatch(u); err != nil {
		return err
	}
	for _, p := range c.batch {
		q := p.queue
		switch {
		case p.unread > 0 && !c.full():
			return db.ErrDamaged // the index names jobs that are not there
		case len(p.rows) > 0:
			c.take(u, p)
		}
		p.status.Blocked, p.status.BreakerOpen = q.Blocked(u.Now), q.BreakerOpen(u.Now)
		p.status.More = !p.status.Blocked && q.Due(u.Now) && p.served()
	}
	c.batch, c.found = nil, nil
	return nil
}

// readBatch reads the rows of the jobs that were found, as far as their bodies fit. A body that does not fit ends the
// statement, since each row is read with its body, and the next one begins with the next queue.
func (c *claim) readBatch(u *unit.Unit) error {
	for len(c.found) > 0 && !c.full() {
		next, err := c.readRows(u)
		if err != nil {
			return err
		}
		c.found = c.found[next:]
	}
	return nil
}

// readRows reads rows up to the first whose body does not fit, and returns the index of the next queue's first job.
func (c *claim) readRows(u *unit.Unit) (next int, err error) {
	next = len(c.found)
	err = u.Query(table.ClaimableJobs, func(v []driver.Value) error {
		cells := table.Cells(v)
		i := int(cells.Int())
		p := c.found[i].queueClaim
		p.unread--
		r := cells.Row()
		cells.Body(r)
		r.TTLEnd = cells.Int()
		if !c.fits(r) {
			for next = i + 1; next < len(c.found) && c.found[next].queueClaim == p; next++ {
				p.unread--
			}
			return db.ErrStop
		}
		p.rows = append(p.rows, r)
		if c.full() {
			return db.ErrStop
		}
		return nil
	}, jsonNumbers(c.found))
	return next, err
}

// take claims the jobs of one queue whose rows were read.
func (c *claim) take(u *unit.Unit, p *queueClaim) {
	q, rows := p.queue, p.rows
	next := table.Key{}
	if len(rows) < len(p.keys) {
		next = p.keys[len(rows)]
	}
	last := rows[len(rows)-1].Key()
	count := int64(len(rows))
	rate, probe := q.Limits().Rate, q.BreakerOpen(u.Now)
	starts := int64(0)
	if rate.Limited() {
		for _, r := range rows {
			if !r.Expired(u.Now) {
				starts++
			}
		}
	}
	if starts > 0 {
		u.SetThrottle(q, func(g *memory.Throttle) { g.Starts = g.Starts.Add(rate, starts, c.request.Slack, u.Now) })
	}
	u.Touch(q)
	u.MayBeNewHead = true // the next job may be due before the next wake-up
	if q.Limits().Ordered {
		for _, r := range rows {
			u.RemoveWaiting(q, r.Key())
		}
	} else {
		fromReady := min(count, q.Ready)
		q.Ready -= fromReady
		q.Topic.Ready -= fromReady
		q.Waiting -= count
		q.Topic.Waiting -= count
		q.Head, q.HeadKnown = next, next.N != 0 || q.Waiting == 0
		if q.Mark.Before(last) {
			q.Mark = last
		}
	}
	q.Running += count
	q.Topic.Running += count
	for _, r := range rows {
		h := c.lease(u, q, r, cmp.Or(r.Timeout, p.want.Timeout)+c.request.Margin)
		h.Rated, h.Probe = rate.Limited() && !r.Expired(u.Now), probe
		c.reply.leases = append(c.reply.leases, h)
	}
	c.rows = append(c.rows, rows...)
}

// A foundJob is a job that a claim may take.
type foundJob struct {
	*queueClaim
	n int64
}

// jsonNumbers returns the numbers of jobs as a JSON array.
func jsonNumbers(jobs []foundJob) string {
	text := []byte{'['}
	for i, f := range jobs {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, f.n, 10)
	}
	return string(append(text, ']'))
}

// lease makes the lease of one claimed job.
func (c *claim) lease(u *unit.Unit, q *memory.Queue, r *table.Row, leaseFor time.Duration) *memory.Lease {
	until := u.Now.After(leaseFor)
	h := &memory.Lease{
		Ref: r.Ref(), N: r.N, Queue: q, Token: c.token, Claimed: u.Now.Millis, Begun: u.Now.Mono,
		Deadline: u.Now.Mono + (until-u.Now.Millis)*int64(time.Millisecond), Progress: r.Progress(),
	}
	u.AddLease(h)
	return h
}

// answer decodes what was claimed, in the caller's goroutine. A job that cannot be read is left to its lease:
// the others are answered.
func (c *claim) answer(s *Store) store.ClaimResult {
	claimed := store.ClaimResult{Queues: c.reply.queues, Revision: c.revision}
	for i, r := range c.rows {
		h := c.leases[i]
		r.Queue = h.Queue.Name
		if err := r.Decode(); err != nil {
			s.unreadable.Error("claimed job unreadable, leaving it to its lease", "job", h.Ref.ID, "err", err)
			continue
		}
		r.State = job.Running
		claimed.Jobs = append(claimed.Jobs, store.ClaimedJob{
			Job:      r.Job,
			Lease:    c.token,
			LeaseFor: time.Duration(h.Deadline - c.now.Mono),
			Age:      time.Duration(c.now.Millis-clock.Millis(r.FirstDueAt)) * time.Millisecond,
			Late:     time.Duration(max(0, h.Claimed-clock.Millis(r.DueAt))) * time.Millisecond,
			Rated:    h.Rated,
			Probe:    h.Probe,
		})
	}
	return claimed
}
