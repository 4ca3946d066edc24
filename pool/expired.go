package pool

import (
	"cmp"
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool/sched"
	"github.com/ringback/ringback/store"
)

const (
	// expiredEvery is how often a process looks for expired jobs: those that wait in throttled queues. Others are
	// checked when they are claimed. Each process makes these calls, also when idle.
	expiredEvery = 5 * time.Second
	// expiredJobs and expiredBytes bound the jobs ended in one call, which has their callbacks, too.
	expiredJobs  = 128
	expiredBytes = 4 << 20
	// expiredLease is the lease of expired jobs, longer than two calls to an available store.
	expiredLease = 30 * time.Second
)

// endExpired ends the shard's expired jobs until claimCtx ends. Jobs that it has claimed are settled until flushCtx
// ends.
func (s *shardLoop) endExpired(claimCtx, flushCtx context.Context) {
	ticker := time.NewTicker(expiredEvery)
	defer ticker.Stop()
	for {
		for claimCtx.Err() == nil && s.endExpiredBatch(claimCtx, flushCtx) {
		}
		select {
		case <-ticker.C:
		case <-claimCtx.Done():
			return
		}
	}
}

// endExpiredBatch ends a bounded number of jobs; false: no more, or an error of the store.
func (s *shardLoop) endExpiredBatch(claimCtx, flushCtx context.Context) bool {
	p := s.p
	var claimed []store.ClaimedJob
	var began time.Time
	token := p.owner.NewToken()
	err := s.exchanges.Retry(claimCtx, "claim expired jobs", func(ctx context.Context) (err error) {
		began = time.Now()
		claimed, err = s.store.ClaimExpired(ctx, token, store.ClaimExpiredRequest{
			Max: expiredJobs, MaxBytes: expiredBytes, Lease: expiredLease,
		})
		return err
	})
	if err != nil {
		if claimCtx.Err() == nil {
			p.log.Error("claiming expired jobs failed, retrying", "shard", s.shard, "err", err)
		}
		return false
	}
	if len(claimed) == 0 {
		return false
	}
	p.opts.Policies.Refresh(claimCtx)
	urls := s.laneURLs(flushCtx, claimed)
	items := make([]settlement, len(claimed))
	for i := range claimed {
		items[i] = settlement{Settlement: s.expire(flushCtx, &claimed[i], urls[claimed[i].Queue], began)}
	}
	s.settle(flushCtx, store.NewToken(), items)
	return true
}

// expire returns the settlement of an expired job. If its policy now allows a longer life, the job is released until
// its due time.
func (s *shardLoop) expire(
	ctx context.Context, claimedJob *store.ClaimedJob, laneURL string, began time.Time,
) store.Settlement {
	p := s.p
	topic := p.topicPolicy(sched.TopicName{Namespace: claimedJob.Namespace, Name: claimedJob.Topic})
	terms := topic.Terms(claimedJob.Terms)
	e := AttemptEvent{
		Namespace: claimedJob.Namespace, Topic: claimedJob.Topic, Job: claimedJob, Terms: terms,
		URL:     cmp.Or(claimedJob.URL, laneURL, topic.URL),
		Verdict: policy.CheckExpired(terms, progressOf(claimedJob, began), claimedJob.DueAt.Sub(claimedJob.Now())),
	}
	if e.Verdict.Kind != policy.Released {
		p.recorder.Ended(ctx, e, nil)
	}
	return p.recorder.Settlement(&e, nil)
}

// laneURLs returns the URLs in the settings of those lanes whose jobs have none.
func (s *shardLoop) laneURLs(ctx context.Context, claimed []store.ClaimedJob) map[job.Queue]string {
	urls := make(map[job.Queue]string)
	var queues []job.Queue
	for i := range claimed {
		q := claimed[i].Queue
		if _, asked := urls[q]; !asked && claimed[i].URL == "" {
			urls[q] = ""
			queues = append(queues, q)
		}
	}
	if len(queues) == 0 {
		return urls
	}
	var lanes []store.Lane
	err := s.exchanges.Retry(ctx, "read lane settings", func(ctx context.Context) (err error) {
		lanes, err = store.GetLanes(ctx, s.store, queues)
		return err
	})
	if err != nil {
		s.p.log.Warn("lane settings not readable, callbacks of expired jobs show the topic's URL",
			"shard", s.shard, "err", err)
		return urls
	}
	for _, lane := range lanes {
		urls[lane.Queue] = lane.Settings.URL
	}
	return urls
}
