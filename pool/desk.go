package pool

import (
	"context"
	"errors"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// settled is an attempt that ended and is to be settled.
type settled struct {
	store.Settlement
	lane  *lane // known to the pool until prepare takes the settlement: it is in flight there
	bytes int
}

// desk makes the trips to one shard: one at a time, settlements and claims together. Its fields below signal are
// guarded by the pool's mutex.
type desk struct {
	p      *Pool
	shard  int
	signal chan struct{} // something may be to do
	quit   chan struct{} // closed when no more attempts are to be started

	hush    context.CancelFunc // ends the Await under way; nil when there is none
	rota    rota
	lag     time.Duration // how long trips take, the longest of late
	ended   []settled
	working int           // attempts of this shard that were claimed and have not ended
	stock   int           // of them, that wait for a worker
	hurried bool          // what was gathered has waited long enough
	unheard store.Backoff // of calls for starts of the shard's topics, while they fail
}

func newDesk(p *Pool, shard int) *desk {
	return &desk{
		p: p, shard: shard,
		signal: make(chan struct{}, 1),
		quit:   make(chan struct{}),
		rota:   rota{lines: make(map[*topic]*line)},
		lag:    firstLag,
	}
}

// nudge makes the desk look again.
func (d *desk) nudge() {
	select {
	case d.signal <- struct{}{}:
	default:
	}
}

// close lets run end once everything in flight is settled.
func (d *desk) close() {
	close(d.quit)
}

// run makes trips until the desk was closed and nothing of it is in flight any more, or ctx ends. Attempts get work.
func (d *desk) run(claiming, ctx, work context.Context) {
	back := newHandBack(d)
	defer back.stop()
	gathered, stale := newAlarm(), newAlarm()
	defer gathered.stop()
	defer stale.stop()
	quit := d.quit
	for {
		for d.trip(claiming, ctx, work) {
			gathered.keep(false, 0)
			_, stocked := d.waits()
			if stale.keep(stocked, staleStock); stale.rang() {
				d.unstock(work, d.staleAfter())
			}
			if ctx.Err() != nil {
				return
			}
		}
		if quit == nil && d.empty() {
			return
		}
		back.arm()
		left, stocked := d.waits()
		gathered.keep(left, gatherFor)
		stale.keep(stocked, staleStock)
		select {
		case <-d.signal:
		case <-gathered.timer.C:
			gathered.set = false
			d.hurry()
		case <-stale.timer.C:
			stale.set = false
			d.unstock(work, d.staleAfter())
		case <-back.timer.C:
			back.ring(ctx)
		case <-quit:
			d.unstock(work, 0)
			back.all(ctx)
			quit = nil
		case <-ctx.Done():
			return
		}
	}
}

// empty reports that nothing of this desk is in flight or to be settled.
func (d *desk) empty() bool {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	return d.working == 0 && len(d.ended) == 0
}

// trip settles what ended and claims for the room there is; false when there was nothing to do.
func (d *desk) trip(claiming, ctx, work context.Context) bool {
	items, request := d.prepare()
	d.askPermits(claiming)
	if len(items) == 0 && len(request.Wants) == 0 {
		return false
	}
	token := store.NewToken()
	at, errs, claimed, err := d.insist(ctx, token, items, request)
	switch {
	case err == nil:
		d.report(items, errs)
		d.start(ctx, work, request, claimed, at)
	case ctx.Err() != nil:
		d.giveUp(items, request)
	default:
		d.p.log.Error("a trip failed for what is in the store", "shard", d.shard, "err", err)
		d.apart(ctx, work, token, items, request)
	}
	return true
}

// asked is when a call was made: the first time, which may be the one that took effect, and the time that was answered.
type asked struct{ first, last time.Time }

// insist makes a call again and again while the store is away, under the same token: the call may have taken effect, and
// nothing else of this shard goes on before it is known. An error is another fault of the store's, or ctx ended.
func (d *desk) insist(ctx context.Context, token store.Token, items []settled, request store.ClaimRequest) (at asked, errs []error, claimed store.Claimed, err error) {
	var pause store.Backoff
	at.first = time.Now()
	for {
		at.last = time.Now()
		errs, claimed, err = d.call(ctx, token, items, request)
		d.lagged(time.Since(at.last))
		if err == nil || ctx.Err() != nil || !away(err) {
			return at, errs, claimed, err
		}
		d.p.log.Log(ctx, pause.Level(), "the store did not settle and claim", "shard", d.shard, "err", err)
		if !pause.Wait(ctx) {
			return at, nil, store.Claimed{}, err
		}
	}
}

// away reports whether an error says that the store is, rather than something about what is in it.
func away(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// apart makes a trip that failed for another reason than the store's absence once more, in parts, so that one job or queue
// that cannot be read stops no other: the settlements first, under the same token, one by one where that fails too, then a
// claim a queue. A job that cannot be settled comes back when its lease lapses, a queue that cannot be claimed from when
// the carrier rings for it anew.
func (d *desk) apart(ctx, work context.Context, token store.Token, items []settled, request store.ClaimRequest) {
	if len(items) > 0 {
		_, errs, _, err := d.insist(ctx, token, items, store.ClaimRequest{})
		switch {
		case err == nil:
			d.report(items, errs)
		case ctx.Err() != nil:
			d.giveUp(items, request)
			return
		case len(items) == 1:
			d.report(items, []error{err})
		default:
			for i := range items {
				d.apart(ctx, work, store.NewToken(), items[i:i+1], store.ClaimRequest{})
			}
		}
	}
	for _, w := range request.Wants {
		one := request
		one.Wants, one.Max = []store.Want{w}, w.Max
		at, _, claimed, err := d.insist(ctx, store.NewToken(), nil, one)
		if err != nil {
			d.p.log.Error("a queue could not be claimed from", "queue", w.Queue.String(), "err", err)
			claimed = store.Claimed{} // nothing came: what was reserved is free again
		}
		d.start(ctx, work, one, claimed, at)
	}
}

// mostLag bounds what slow trips add to a lease.
const mostLag = 30 * time.Second

// lagged notes how long a trip took: leases last longer where the store is slow, or their jobs could never be attempted.
func (d *desk) lagged(took time.Duration) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.lag = max(took, d.lag-d.lag/8)
}

// tripTimeout bounds one call to the store.
const tripTimeout = 10 * time.Second

// call sends the trip. Outcomes are recorded even while the process stops, so the context is the flush's.
func (d *desk) call(ctx context.Context, token store.Token, items []settled, request store.ClaimRequest) ([]error, store.Claimed, error) {
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	if len(items) == 0 {
		claimed, err := d.p.opts.Store.Claim(ctx, d.shard, token, request)
		return nil, claimed, err
	}
	settlements := make([]store.Settlement, len(items))
	for i := range items {
		settlements[i] = items[i].Settlement
	}
	next := &request
	if len(request.Wants) == 0 {
		next = nil
	}
	return d.p.opts.Store.Settle(ctx, d.shard, token, settlements, next)
}

// prepare takes the settlements that wait and reserves room for a claim. What is settled gives its room back now, since
// the store settles before it claims.
func (d *desk) prepare() ([]settled, store.ClaimRequest) {
	p := d.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.gathers() {
		return nil, store.ClaimRequest{}
	}
	d.hurried = false
	n := d.portion()
	items := d.ended[:n:n]
	d.ended = d.ended[n:]
	if len(d.ended) == 0 {
		d.ended = nil
	}
	d.pace(items, time.Now())
	for i := range items {
		l := items[i].lane
		p.inFlight--
		p.bytes -= items[i].bytes
		l.give(1)
		if l.hot && !l.inLine && !l.asking {
			d.rota.push(l)
		}
		p.rest(l)
	}
	if n > 0 {
		p.freed(d)
	}
	request := store.ClaimRequest{Margin: p.opts.Margin + min(2*d.lag, mostLag), MaxBytes: p.opts.MaxBytes - p.bytes}
	if p.stopping || request.MaxBytes <= 0 {
		return items, request
	}
	if p.last == d && p.hungry(d) {
		// Who settles would always be the first to take the room: let another desk have its turn.
		p.last = nil
		d.nudge()
		return items, request
	}
	p.onTime()
	var tightest policy.Rate
	request.Wants, tightest = d.pick(p)
	request.Slack = p.slack(d.lag, tightest)
	if len(request.Wants) > 0 {
		p.last = d
	}
	for _, w := range request.Wants {
		request.Max += w.Max
	}
	p.inFlight += request.Max
	return items, request
}

// birthBytes bounds the bodies of what the settlements of one trip give birth to; one settlement always fits.
const birthBytes = 8 << 20

// portion is how many of the settlements that wait go with the next trip. p.mu is held.
func (d *desk) portion() int {
	n := min(len(d.ended), store.MaxBatch)
	bytes := 0
	for i := range n {
		for _, b := range d.ended[i].Births {
			bytes += len(b.Body)
		}
		if i > 0 && bytes > birthBytes {
			return i
		}
	}
	return n
}

// freed tells other desks with lanes in line, which may have waited for room. p.mu is held.
func (p *Pool) freed(by *desk) {
	for _, d := range p.desks {
		if d != by && d.rota.parked() {
			d.nudge()
		}
	}
}

// hungry reports whether lanes of another desk stand in line. p.mu is held.
func (p *Pool) hungry(but *desk) bool {
	for _, d := range p.desks {
		if d != but && d.rota.parked() {
			return true
		}
	}
	return false
}

func (p *Pool) policy(t topicName) policy.Topic { return p.opts.Policies.Topic(t.namespace, t.name) }

// report logs settlements that were refused.
func (d *desk) report(items []settled, errs []error) {
	for i, err := range errs {
		if err == nil {
			continue
		}
		if items[i].Lane.Hold > 0 {
			d.unhold(items[i].lane)
		}
		d.p.log.Warn("the attempt's outcome was not recorded", "job", items[i].Ref.ID, "topic", items[i].Queue.Topic,
			"lane", items[i].Queue.Lane, "err", err)
	}
}

// giveUp lets go of a trip that could not be made before the end: its jobs come back when their leases lapse.
func (d *desk) giveUp(items []settled, request store.ClaimRequest) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.p.inFlight += len(items) - request.Max // counted as not settled
	for _, w := range request.Wants {
		l := d.p.lanes[w.Queue]
		l.give(w.Max)
		l.asking = false
	}
}
