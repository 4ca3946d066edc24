package sched

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// Jobs are claimed before a worker is free for them: a worker begins its next attempt without an exchange, an exchange
// carries more, and a worker goes on with the lane whose connection it has. How many is measured: what the topic ends
// in prefetchTime, or in the time of three exchanges, so that receivers that answer slowly, or hang, have few or none.
const (
	// maxPrefetch bounds the jobs of a topic that wait for a worker.
	maxPrefetch = 1024
	// prefetchTime is the least time whose attempts are prefetched.
	prefetchTime = 50 * time.Millisecond
	// maxBatchedSettlements is how many settlements are batched at most while workers have prefetched jobs.
	maxBatchedSettlements = 128
	// maxTopicsToBatch is with how many queued topics at most settlements are batched.
	maxTopicsToBatch = 8
	// MinPrefetchAge is how long a job may wait for a worker at least before another process may have it.
	MinPrefetchAge = 250 * time.Millisecond
)

// measureRate derives the topic's prefetchTarget from the attempts that have ended since the last time. It is zero
// while an attempt lasts longer than half of MinPrefetchAge on average: an exchange is short beside it, and prefetched
// jobs would wait for too long.
func (sh *Shard) measureRate(t *Topic, now time.Time) {
	ahead := max(3*sh.callTime, prefetchTime)
	past := now.Sub(t.measuredAt)
	if past < ahead { // attempts that end together are not a rate
		return
	}
	ended := int64(t.endedSinceMeasured)
	t.prefetchTarget = int(min(maxPrefetch, ended*int64(ahead)/int64(past)))
	if int64(t.busy)*int64(past) > ended*int64(MinPrefetchAge)/2 {
		t.prefetchTarget = 0
	}
	t.endedSinceMeasured, t.measuredAt = 0, now
}

// prefetchRoom returns how many more jobs of the shard a topic with queued lanes, whose workers have room, may have
// prefetched: at most half of what the process's workers do not use, in equal parts for the shards that queue lanes of
// the topic, since the one that settles would take all room again. It is 0
//   - under a rate, whose starts count from their claim,
//   - while a lane with a rate is the first of its queue,
//   - while slow lanes, or lanes that time out, are queued: they share only a part of the workers,
//   - while the bodies take more than half of MaxBytes.
func (sh *Shard) prefetchRoom(t *Topic, topicPolicy policy.Topic, room int) int {
	s, sharing := sh.s, 0
	if t.prefetchTarget == 0 || topicPolicy.Rate.Limited() || s.bytes.total > s.opts.MaxBytes/2 {
		return 0
	}
	for _, other := range s.shards { // prefetched jobs of one shard would take the place of lanes of all
		q := other.runnable.byTopic[t]
		if q == nil {
			continue
		}
		sharing++
		if q.blocksPrefetch || q.lanes[healthSlow].len()+q.lanes[healthTimingOut].len() > 0 {
			return 0
		}
	}
	free := s.limit.current - s.inFlight - max(0, room) - s.prefetched
	limit := min(t.prefetchTarget, max(0, free/2))
	part := (limit + sharing - 1) / max(1, sharing)
	return max(0, min(limit-t.prefetched, part-t.prefetchedOf[sh]))
}

// queue lets a claimed job wait for a worker. The caller calls updateReady of its lane.
func (s *Scheduler) queue(j *Job, now time.Time) {
	l := j.Lane
	j.queuedAt = now
	l.prefetched.push(j)
	l.shard.withPrefetch[l] = struct{}{}
	s.countPrefetched(l, 1)
}

func (s *Scheduler) countPrefetched(l *Lane, n int) {
	if l.topic.prefetched += n; l.topic.prefetchedOf == nil {
		l.topic.prefetchedOf = make(map[*Shard]int)
	}
	l.topic.prefetchedOf[l.shard] += n
	l.shard.prefetched += n
	s.prefetched += n
}

// updateReady queues a lane for its topic's workers if it has a prefetched job and a free slot.
func (s *Scheduler) updateReady(l *Lane) {
	if !l.ready && l.prefetched.len() > 0 && l.running < l.slots {
		l.ready = true
		l.topic.ready.push(l, !l.backlogged && l.prefetched.len() == 1)
	}
}

// startNext starts the next prefetched job of a topic with a policy; nil: there is none of a lane with a free slot.
func (s *Scheduler) startNext(t *Topic, topicPolicy policy.Topic, now time.Time) *Job {
	for t.ready.len() > 0 {
		l := t.ready.pop()
		l.ready = false
		if j := s.startOf(l, topicPolicy, now); j != nil {
			return j
		}
	}
	return nil
}

// startOf starts the next prefetched job of a lane; nil: there is none, or the lane has no free slot.
func (s *Scheduler) startOf(l *Lane, topicPolicy policy.Topic, now time.Time) *Job {
	limits := l.settings.Limits(topicPolicy)
	if l.prefetched.len() == 0 || l.running >= min(l.slots, limits.Concurrency) {
		return nil
	}
	j := l.prefetched.pop()
	j.Cancelled = limits.Paused || now.Before(l.cooldownUntil)
	if l.prefetched.len() == 0 {
		delete(l.shard.withPrefetch, l)
	}
	s.countPrefetched(l, -1)
	s.addRunning(j, now)
	s.updateReady(l)
	return j
}

// Next returns the job that a worker goes on with after another: the next of the same lane, whose connection is idle
// now, for up to maxLaneBatch jobs in a row, else one of the lane whose turn it is. The worker leaves the topic when it
// is nil: there is no job, or the topic has more workers than it may. A row ends when a lane without
// a backlog waits: such lanes take every second turn.
func (s *Scheduler) Next(after *Job, now time.Time) *Job {
	l := after.Lane
	t := l.topic
	if topicPolicy := s.opts.Policy(t.name); !s.stopping && t.busy <= topicPolicy.Workers {
		if after.inRow < maxLaneBatch-1 && t.ready.woken.len() == 0 {
			if j := s.startOf(l, topicPolicy, now); j != nil {
				j.inRow = after.inRow + 1
				return j
			}
		}
		if j := s.startNext(t, topicPolicy, now); j != nil {
			return j
		}
	}
	t.busy--
	return nil
}

// ShouldBatch reports whether n settlements should wait for more: the workers have as much to go on with. They have not
// where a queued topic has nothing prefetched.
func (sh *Shard) ShouldBatch(n int) bool {
	if sh.s.stopping || n == 0 || n >= min(sh.prefetched/2, maxBatchedSettlements) {
		return false
	}
	topics := 0
	for q := range sh.runnable.topics.all() {
		if topics++; topics > maxTopicsToBatch || q.topic.prefetched == 0 {
			return false
		}
	}
	return true
}

// DropPrefetched takes out all jobs that wait for a worker, or those that have waited too long: for MinPrefetchAge, or
// longer where the store is slow. The caller releases them: their workers hang, and another process may have some.
func (sh *Shard) DropPrefetched(all bool, now time.Time) (jobs []*Job) {
	before := now
	if !all {
		before = now.Add(-max(MinPrefetchAge, 4*sh.callTime))
	}
	for l := range sh.withPrefetch {
		for l.prefetched.len() > 0 && !l.prefetched.first().queuedAt.After(before) {
			jobs = append(jobs, l.prefetched.pop())
			sh.s.countPrefetched(l, -1)
			l.topic.prefetchTarget, l.topic.endedSinceMeasured, l.topic.measuredAt = 0, 0, now
		}
		if l.prefetched.len() == 0 {
			delete(sh.withPrefetch, l)
		}
	}
	return jobs
}

// EndCooldown lets prefetched jobs of a queue go on: the settlement with the cooldown was refused.
func (l *Lane) EndCooldown() { l.cooldownUntil = time.Time{} }
