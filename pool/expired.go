package pool

import (
	"cmp"
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

const (
	// expiredJobs and expiredBytes bound how many jobs are ended in one call, since their births go with it.
	expiredJobs  = 128
	expiredBytes = 4 << 20
	// expiredLease is longer than two calls to the store, as long as it is not away.
	expiredLease = 30 * time.Second
)

// EndExpired has the shard's jobs ended that wait though their time to live is over: those that their queue keeps back,
// since others are judged when they are claimed. It returns at once.
func (p *Pool) EndExpired(shard int) {
	select {
	case p.desks[shard].expired <- struct{}{}:
	default: // it is under way, or will be
	}
}

// endExpired ends jobs after each call of EndExpired, until ctx ends. Jobs that it has claimed are settled until flush ends.
func (d *desk) endExpired(ctx, flush context.Context) {
	for {
		select {
		case <-d.expired:
			for ctx.Err() == nil && d.endSome(ctx, flush) {
			}
		case <-ctx.Done():
			return
		}
	}
}

// endSome ends a bounded number of jobs; false when there are no more, or the store refused.
func (d *desk) endSome(ctx, flush context.Context) bool {
	p := d.p
	p.opts.Policies.Refresh(ctx)
	var held []store.ClaimedJob
	var began time.Time
	token := store.NewToken()
	err := d.persist(ctx, "claim expired jobs", func(ctx context.Context) (err error) {
		began = time.Now()
		held, err = p.opts.Store.ClaimExpired(ctx, d.shard, token, store.ClaimExpiredRequest{
			Max: expiredJobs, MaxBytes: expiredBytes, Lease: expiredLease,
		})
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			p.log.Error("expired jobs could not be claimed, retrying with the next round", "shard", d.shard, "err", err)
		}
		return false
	}
	if len(held) == 0 {
		return false
	}
	urls := d.laneURLs(flush, held)
	items := make([]settled, len(held))
	for i := range held {
		items[i] = settled{Settlement: d.expire(flush, &held[i], urls[held[i].Queue], began)}
	}
	d.settle(flush, store.NewToken(), items)
	return true
}

// expire is the settlement of a job whose time to live is over. By a policy that has become longer it goes on waiting,
// until it was due.
func (d *desk) expire(ctx context.Context, h *store.ClaimedJob, laneURL string, began time.Time) store.Settlement {
	p := d.p
	topic := p.policy(topicName{h.Namespace, h.Topic})
	terms := topic.Terms(h.Terms)
	item := store.Settlement{Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease}
	var goesOn bool
	if item.Verdict, goesOn = policy.CheckBefore(terms, progressOf(h, began)); goesOn {
		item.Verdict = policy.Verdict{Kind: policy.Released, Wait: max(0, h.DueAt.Sub(h.Now()))}
		return item
	}
	item.Outbox = p.opts.Births(End{
		Held: h, URL: cmp.Or(h.URL, laneURL, topic.URL), Terms: terms, Verdict: item.Verdict,
	})
	p.opts.Observer.Ended(Ended{Namespace: h.Namespace, Topic: h.Topic, Verdict: item.Verdict})
	p.lines.attempt(ctx, h, item.Verdict, job.Attempt{})
	return item
}

// laneURLs are the URLs that lanes have of their own, of those whose jobs name none.
func (d *desk) laneURLs(ctx context.Context, held []store.ClaimedJob) map[job.Queue]string {
	urls := make(map[job.Queue]string)
	var queues []job.Queue
	for i := range held {
		q := held[i].Queue
		if _, asked := urls[q]; !asked && held[i].URL == "" {
			urls[q] = ""
			queues = append(queues, q)
		}
	}
	if len(queues) == 0 {
		return urls
	}
	var lanes []store.Lane
	err := d.persist(ctx, "read lane settings", func(ctx context.Context) (err error) {
		lanes, err = d.p.opts.Store.GetLanes(ctx, d.shard, queues)
		return err
	})
	if err != nil {
		d.p.log.Warn("lane settings not readable, callbacks of expired jobs name their topic's URL", "shard", d.shard, "err", err)
		return urls
	}
	for _, lane := range lanes {
		urls[lane.Queue] = lane.Settings.URL
	}
	return urls
}
