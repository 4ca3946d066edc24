package pool

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/pool/sched"
	"github.com/ringback/ringback/store"
)

// startClaimed hands the jobs of a claim to workers.
func (s *shardLoop) startClaimed(
	workCtx, flushCtx context.Context, request store.ClaimRequest, claimed store.ClaimResult, at callTimes,
) {
	p := s.p
	if len(request.Queues) == 0 {
		return
	}
	fresh := p.opts.Policies.Sync(flushCtx, claimed.Revision)
	claim := sched.Claim{
		Request: request, Statuses: claimed.Queues, Settings: s.changedSettings(claimed.Queues), FirstCall: at.first,
		Jobs: make([]*sched.Job, len(claimed.Jobs)),
	}
	attempts := make([]attempt, len(claimed.Jobs))
	p.mu.Lock()
	var lane *sched.Lane
	for i := range claimed.Jobs {
		claimedJob, a := &claimed.Jobs[i], &attempts[i]
		if i == 0 || claimedJob.Queue != claimed.Jobs[i-1].Queue { // jobs are grouped by lane
			lane = p.scheduler.Lane(claimedJob.Queue)
		}
		*a = attempt{
			shard: s, job: claimedJob, claimStarted: at.last,
			leaseEnds: at.last.Add(claimedJob.LeaseFor), policyStale: !fresh,
		}
		a.schedJob = sched.Job{Value: a, Lane: lane, Body: len(claimedJob.Body), Rated: claimedJob.Rated}
		claim.Jobs[i] = &a.schedJob
	}
	s.working += len(attempts)
	start, rejected := s.scheduler.Claimed(claim, time.Now())
	p.armHangTimer()
	stopping := p.stopping
	p.mu.Unlock()
	s.wake()
	if rejected != nil {
		attemptOf(rejected).release(workCtx)
	}
	for _, j := range start {
		if a := attemptOf(j); stopping {
			a.release(workCtx)
		} else {
			p.assign(workCtx, a)
		}
	}
}

// changedSettings returns the lanes' settings that changed since the claim's request; nil: none.
func (s *shardLoop) changedSettings(queues []store.QueueStatus) []*sched.LaneSettings {
	var changed []*sched.LaneSettings
	for i := range queues {
		if queues[i].LaneDocument == nil {
			continue
		}
		if changed == nil {
			changed = make([]*sched.LaneSettings, len(queues))
		}
		lane, err := queues[i].LaneDocument.Lane()
		own := &sched.LaneSettings{Lane: lane, Err: err}
		if err != nil {
			s.p.log.Error("lane settings not readable, holding the lane: put its settings again, then resume it",
				"topic", lane.Queue.Topic, "lane", lane.Queue.Lane, "err", err)
		}
		if len(own.Settings.Secrets) > 0 {
			own.Signer, own.Err = s.p.opts.Policies.Signer(own.Lane)
		}
		changed[i] = own
	}
	return changed
}

// markRunnable marks queues as having claimable jobs.
func (s *shardLoop) markRunnable(queues []job.Queue) {
	s.p.mu.Lock()
	s.newWaiting = s.scheduler.MarkRunnable(queues) || s.newWaiting
	s.p.mu.Unlock()
	s.wake()
}
