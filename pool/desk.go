package pool

import (
	"context"
	"time"

	"github.com/ringback/ringback/store"
)

// settled is an attempt that ended and is to be settled.
type settled struct {
	store.Settlement
	lane *lane // known to the pool until prepare takes the settlement: it is in flight there
}

// desk makes the trips to one shard: one at a time, settlements and claims together. Its fields below signal are
// guarded by the pool's mutex.
type desk struct {
	p       *Pool
	shard   int
	signal  chan struct{} // something may be to do
	expired chan struct{} // jobs are to be ended whose time to live is over
	quit    chan struct{} // closed when no more attempts are to be started

	hush     context.CancelFunc // ends the Wait under way; nil when there is none
	rota     rota
	lag      time.Duration // how long trips take, the longest of late
	ended    []settled
	reserved int           // bytes, for the claim under way
	large    *lane         // is to be asked alone, for a body longer than what a claim may bring
	working  int           // attempts of this shard that were claimed and have not ended
	stock    int           // of them, that wait for a worker
	hurried  bool          // what was gathered has waited long enough
	unheard  store.Backoff // of calls for starts of the shard's topics, while they fail
}

func newDesk(p *Pool, shard int) *desk {
	return &desk{
		p: p, shard: shard,
		signal:  make(chan struct{}, 1),
		expired: make(chan struct{}, 1),
		quit:    make(chan struct{}),
		rota:    rota{lines: make(map[*topic]*line)},
		lag:     firstLag,
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
