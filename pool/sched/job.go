package sched

import (
	"container/list"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Job is the scheduling state of a claimed job until its attempt has ended. Its caller sets the first group of fields.
type Job struct {
	Value any // the caller's
	Lane  *Lane
	Body  int  // bytes of its body
	Rated bool // its claim counted as a start of its lane's rate

	// Claimed sets the others.
	Settings  *LaneSettings  // its lane's own, at the claim; nil: none
	Deliver   policy.Deliver // how it was claimed to be delivered
	StartBy   time.Time      // the attempt may not begin later, because of a rate; zero: at any time
	GrantRate policy.Rate    // its topic's rate at the claim
	Cancelled bool           // its lane is in cooldown or paused since it was claimed

	grant          *grant    // of its topic's starts; nil: that has no rate
	queuedAt       time.Time // when it began to wait for a worker
	startedAt      time.Time
	inRow          int // jobs of its lane that its worker had before it
	running        bool
	runningElement *list.Element // in Scheduler.running
	hanging        bool          // under way for longer than SlowAfter
	bytes          int           // of its body, while they are counted
	oversized      bool          // it has the place beyond the byte budget
}

// Claim is the answer to a request of Pick.
type Claim struct {
	Request  store.ClaimRequest
	Statuses []store.QueueStatus // for each queue of the request; none: nothing is known of the queues
	Settings []*LaneSettings     // for each queue whose lane has other settings than were known; else nil
	Jobs     []*Job              // those of a queue side by side
	// FirstCall is when the claim was first sent: that call may be the one that took effect.
	FirstCall time.Time
}

// Claimed takes in a claim. start are the jobs that workers begin with now; rejected is one whose body does not fit,
// nil: all do. The caller releases the rejected job, and all jobs after Stop.
func (sh *Shard) Claimed(c Claim, now time.Time) (start []*Job, rejected *Job) {
	s := sh.s
	sh.releaseBytes()
	jobs := c.Jobs
	for i, j := range jobs {
		j.Lane.claimed++
		if !s.takeBytes(j, c.Request.MaxBytes, i == 0) {
			rejected = j
		}
	}
	for i, q := range c.Request.Queues {
		l := s.lanes[q.Queue]
		unused, status := q.Max-l.claimed, store.QueueStatus{}
		if i < len(c.Statuses) {
			status = c.Statuses[i]
		}
		s.inFlight -= unused
		l.addInFlight(-unused)
		if l.grant != nil {
			l.grant.left += unused
		}
		if i < len(c.Settings) && c.Settings[i] != nil {
			l.settings = c.Settings[i]
		}
		sh.updateLane(l, status)
	}
	for _, j := range jobs {
		l := j.Lane
		j.Settings, j.Deliver, j.grant = l.settings, l.deliver, l.grant
		if l.grant != nil {
			j.StartBy, j.GrantRate = l.grant.ends, l.grant.rate
		}
		// A lane's rate counts from the call that took effect.
		if by := c.FirstCall.Add(c.Request.Slack); j.Rated && (j.StartBy.IsZero() || by.Before(j.StartBy)) {
			j.StartBy = by
		}
	}
	if rejected != nil {
		jobs = jobs[1:]
	}
	if s.stopping {
		start = jobs
	} else {
		start = s.assign(jobs, now)
	}
	s.wakeForBytes() // what was reserved and not needed
	return start, rejected
}

// assign queues claimed jobs for their topics' workers and returns those that idle or new workers begin with.
func (s *Scheduler) assign(jobs []*Job, now time.Time) (start []*Job) {
	for _, j := range jobs {
		s.queue(j, now)
	}
	for _, j := range jobs { // when all of a lane are queued: whether it has one alone decides its turn
		s.updateReady(j.Lane)
	}
	start = make([]*Job, 0, len(jobs))
	var served *Topic
	for _, j := range jobs {
		t := j.Lane.topic
		if t == served || t.ready.len() == 0 {
			continue
		}
		served = t
		for topicPolicy := s.opts.Policy(t.name); t.busy < topicPolicy.Workers; t.busy++ {
			next := s.startNext(t, topicPolicy, now)
			if next == nil {
				break
			}
			start = append(start, next)
		}
	}
	return start
}

// updateLane notes the status of a queue after a claim.
func (sh *Shard) updateLane(l *Lane, status store.QueueStatus) {
	l.claiming = false
	switch {
	case status.BreakerOpen:
		l.slots = 1 // it recovers slowly
	case l.breaker != nil && !l.breaker.Closed():
		l.breaker = nil // another process had the probe
	}
	if l.likely = 1; status.More {
		l.likely = max(1, 2*l.claimed)
	}
	switch {
	case status.More || l.markedWhileClaiming:
		l.runnable = true
	case status.Blocked && l.inFlight > 0:
		l.runnable = true // its own settlements may unblock it
	default:
		l.runnable = false
	}
	switch {
	case status.More || status.Blocked && l.claimed > 0: // a lane that fills its slots may have more jobs
		l.backlogged = true
	case !status.Blocked:
		l.backlogged = false
	}
	l.leftOut++
	if l.claimed > 0 || !status.More || status.Blocked {
		l.leftOut = 0
	}
	if l.leftOut == leftOutMax {
		// Its next body is longer than the room that earlier queues of the claims left.
		l.leftOut, l.nextBody = 0, sh.s.claimBytes()+1
	}
	blocked := status.Blocked && !l.markedWhileClaiming
	l.markedWhileClaiming, l.claimed = false, 0
	if l.runnable && !blocked {
		sh.runnable.push(l)
	}
	sh.s.markIdle(l)
}

// leftOutMax is how many claims in a row may bring no job of a lane that has some before it is claimed from alone.
const leftOutMax = 2

// AttemptResult is the result of a claimed job's attempt.
type AttemptResult struct {
	// Result shows the receiver's state; nil: no request was made.
	Result *policy.Result
	// Shortage: the process was out of local resources, so that Result shows nothing of the receiver.
	Shortage    bool
	Probe       bool           // the job was its lane's probe
	Breaker     policy.Breaker // by the policy of the attempt
	Concurrency int            // the lane's limit, by the policy of the attempt
	Cooldown    time.Duration  // that the receiver asked for, or the lane needs
	Cause       store.CooldownCause
}

// EndAttempt takes in the result of a job's attempt, whether a request was made or not, and returns what it changes for
// the job's lane in all processes.
func (s *Scheduler) EndAttempt(j *Job, r AttemptResult, now time.Time) store.LaneChange {
	l := j.Lane
	change := store.LaneChange{Cooldown: r.Cooldown, Cause: r.Cause}
	s.removeRunning(j)
	if r.Result == nil && j.grant != nil {
		j.grant.left++ // for the next claim
	}
	if r.Result != nil && !r.Shortage {
		s.limit.pause = 0
		l.topic.endedSinceMeasured++
		l.updateSlots(*r.Result, r.Concurrency)
		own := l.updateBreaker(*r.Result, r.Probe, r.Breaker)
		if change.Breaker = own.Breaker; own.Cooldown > change.Cooldown {
			change.Cooldown, change.Cause = own.Cooldown, store.CooldownBreaker
		}
	}
	s.freeBytes(j)
	if until := now.Add(change.Cooldown); change.Cooldown > 0 && until.After(l.cooldownUntil) {
		l.cooldownUntil = until
	}
	s.updateReady(l)
	return change
}
