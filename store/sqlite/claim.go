package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/throttle"
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
	fill     func(*claim, *tx) error
	reply    *claimReply
	rows     []*table.Row    // of the reply's leases that have not ended
	leases   []*memory.Lease // the same
	size     int             // of bodies so far
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
	bound("queues to claim from", len(request.Queues))
	bound("jobs to claim", request.Max)
	return &claim{token: token, request: request, kind: "claim", fill: (*claim).serveAll}
}

// run makes the claim, or repeats its reply.
func (c *claim) run(tx *tx) error {
	*c = claim{token: c.token, request: c.request, kind: c.kind, fill: c.fill, now: tx.Now, revision: tx.Mem.Revisions[store.KindTopic]}
	fresh := false
	t, err := once(tx, memory.Call{Method: c.kind, Token: c.token}, (*claimReply).weight, func() (*claimReply, error) {
		fresh = true
		tx.MayBeNewHead = true // the next job of a queue may be due before all others
		c.reply = &claimReply{queues: make([]store.QueueStatus, 0, len(c.request.Queues))}
		if err := c.fill(c, tx); err != nil {
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
		if tx.Mem.Leases[h.Ref] != h || tx.Mem.Unreadable[h.N] {
			continue
		}
		if err := tx.Query(table.JobByN, func(v []driver.Value) error {
			cells := table.Cells(v)
			r := cells.Row()
			cells.Names(r)
			cells.Body(r)
			c.rows, c.leases = append(c.rows, r), append(c.leases, h)
			return nil
		}, h.N); db.IsDamage(err) {
			tx.SkipJob(h.Queue, h.N, "claim a job again", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// serveAll serves the queues of the request in order.
func (c *claim) serveAll(tx *tx) error {
	for _, want := range c.request.Queues {
		left, err := c.serve(tx, want)
		if q := tx.Mem.Queues[want.Queue]; q != nil && db.IsDamage(err) {
			tx.SetAside(q, "claim jobs", err)
			left, err = store.QueueStatus{Queue: want.Queue, Blocked: true}, nil
		}
		if err != nil {
			return err
		}
		c.reply.queues = append(c.reply.queues, left)
	}
	return nil
}

// serve claims the first jobs of one queue, up to the bounds of its QueueClaim and of the request.
func (c *claim) serve(tx *tx, want store.QueueClaim) (store.QueueStatus, error) {
	left := store.QueueStatus{Queue: want.Queue}
	q := tx.Mem.Queues[want.Queue] // every queue with waiting jobs is in memory, and every one with a throttle
	if q == nil {
		return left, tx.statusOfUnloaded(want, &left)
	}
	if err := tx.showLaneConfig(q, want, &left); err != nil {
		return left, err
	}
	if err := tx.LoadHead(q); err != nil {
		return left, err
	}
	tx.PruneThrottle(q)
	ahead := int64(0)
	if !q.Limits().Rate.Limited() && q.Owners.Only(c.token.Owner()) {
		ahead = int64(want.Ahead)
	}
	most := min(int64(want.Max), int64(c.request.Max-len(c.reply.leases)), q.Room(tx.Now, ahead))
	// Bodies that fill the answer already leave no room for another.
	full := len(c.reply.leases) > 0 && c.size >= c.request.MaxBytes
	if most > 0 && !full && q.Due(tx.Now) {
		if err := c.take(tx, q, want, most); err != nil {
			return left, err
		}
	}
	left.Blocked, left.BreakerOpen = q.Blocked(tx.Now), q.BreakerOpen(tx.Now)
	left.More = !left.Blocked && q.Due(tx.Now)
	return left, nil
}

// take claims the first jobs of a queue, as far as they are due and their bodies fit. It reads one more than it takes,
// which is the queue's new head.
func (c *claim) take(tx *tx, q *memory.Queue, want store.QueueClaim, most int64) error {
	if err := tx.Begin(); err != nil {
		return err
	}
	var rows []*table.Row
	next := table.Key{}
	size := c.size
	read := func(v []driver.Value) error {
		cells := table.Cells(v)
		r := cells.Row()
		cells.Body(r)
		r.TTLEnd = cells.Int()
		if tx.Mem.IsSkipped(r.N) {
			return nil
		}
		body := int(max(0, r.BodySize))
		full := int64(len(rows)) == most || (len(c.reply.leases)+len(rows) > 0 && size+body > c.request.MaxBytes)
		if full || clock.Millis(r.DueAt) > tx.Now.Millis {
			next = r.Key()
			return db.ErrStop
		}
		size += body
		rows = append(rows, r)
		return nil
	}
	var err error
	if !q.PartlyUnreadable {
		err = tx.Query(table.Claimable, read, q.Id, q.Head.Due, q.Head.N, most+1+q.Running)
	}
	if q.PartlyUnreadable || db.IsDamage(err) {
		rows, next, size = nil, table.Key{}, c.size
		err = c.readEach(tx, q, read)
		tx.Touch(q)
		if q.HeadKnown = false; err == nil && len(rows) == 0 {
			return tx.LoadHead(q)
		}
	}
	if err != nil || len(rows) == 0 {
		return err
	}
	c.size = size
	last := rows[len(rows)-1].Key()
	count := int64(len(rows))
	rate, probe := q.Limits().Rate, q.BreakerOpen(tx.Now)
	starts := int64(0)
	if rate.Limited() {
		for _, r := range rows {
			if !r.Expired(tx.Now) {
				starts++
			}
		}
	}
	if starts > 0 {
		tx.SetThrottle(q, func(g *throttle.Throttle) { g.Starts = g.Starts.Add(rate, starts, c.request.Slack, tx.Now) })
	}
	tx.Touch(q)
	tx.MayBeNewHead = true // the next job may be due before the next wake-up
	fromReady := min(count, q.Ready)
	q.Ready -= fromReady
	q.Topic.Ready -= fromReady
	q.Waiting -= count
	q.Topic.Waiting -= count
	q.Running += count
	q.Topic.Running += count
	q.Head, q.HeadKnown = next, next.N != 0 || q.Waiting == 0
	if q.Mark.Before(last) {
		q.Mark = last
	}
	for _, r := range rows {
		h := c.lease(tx, q, r, cmp.Or(r.Timeout, want.Timeout)+c.request.Margin)
		h.Rated, h.Probe = rate.Limited() && !r.Expired(tx.Now), probe
		c.reply.leases = append(c.reply.leases, h)
	}
	c.rows = append(c.rows, rows...)
	return nil
}

// lease makes the lease of one claimed job.
func (c *claim) lease(tx *tx, q *memory.Queue, r *table.Row, leaseFor time.Duration) *memory.Lease {
	until := tx.Now.After(leaseFor)
	h := &memory.Lease{
		Ref: r.Ref(), N: r.N, Queue: q, Token: c.token, Claimed: tx.Now.Millis, Begun: tx.Now.Mono,
		Deadline: tx.Now.Mono + (until-tx.Now.Millis)*int64(time.Millisecond), Progress: r.Progress(),
	}
	tx.AddLease(h)
	return h
}

// answer decodes what was claimed, in the caller's goroutine. A job that cannot be read is left to its lease:
// the others are answered.
func (c *claim) answer(s *Store) store.ClaimResult {
	claimed := store.ClaimResult{Queues: c.reply.queues, Revision: c.revision}
	for i, r := range c.rows {
		h := c.leases[i]
		if err := r.Decode(); err != nil {
			s.unreadable.Error("claimed job unreadable, leaving it to its lease", "job", h.Ref.ID, "err", err)
			continue
		}
		r.Queue = h.Queue.Name
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
