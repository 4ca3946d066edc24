package sched

import (
	"container/list"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// TopicName names a topic in a namespace.
type TopicName struct{ Namespace, Name string }

// Options configures a Scheduler.
type Options struct {
	Shards   int // of the store
	Workers  int // attempts in flight at most, all topics together
	MaxBytes int // of bodies that are not sent yet
	// Policy returns a topic's policy, complete with defaults.
	Policy func(TopicName) policy.Topic
	// IsFull reports whether nothing of a topic is claimed now, as if all its workers were in use; nil: never.
	IsFull func(TopicName) bool
	// Deliver returns how this process delivers a topic; nil: by push.
	Deliver func(TopicName) policy.Deliver
	// NewBreaker returns a closed breaker.
	NewBreaker func(policy.Breaker) Breaker
	// Wake is called for a shard that may have a new exchange to make. It must not block or call the Scheduler.
	Wake func(shard int)
}

// Scheduler holds the scheduling state of one process. It is not safe for concurrent use.
type Scheduler struct {
	opts   Options
	shards []*Shard

	stopping      bool
	inFlight      int // jobs asked for or claimed, until their settlement is on its way
	prefetched    int // of them, those that wait for a worker
	limit         limiter
	bytes         byteBudget
	awaitingBytes bool // a lane waits for room for a body
	topics        map[TopicName]*Topic
	lanes         map[job.Queue]*Lane
	idle          list.List // of *Lane, the longest idle first
	byHealth      healthCounts
	running       list.List // of *Job: attempts under way for less than SlowAfter, the oldest first
	hanging       int       // attempts under way for longer than that
	lastClaimer   *Shard
	needPermits   []*Topic
	window        startWindow
}

// New returns a Scheduler that knows no queue yet.
func New(opts Options) *Scheduler {
	s := &Scheduler{
		opts: opts, topics: make(map[TopicName]*Topic), lanes: make(map[job.Queue]*Lane),
		limit: limiter{max: opts.Workers, current: opts.Workers},
	}
	for n := range opts.Shards {
		s.shards = append(s.shards, &Shard{
			s: s, n: n, callTime: initialCallTime,
			runnable: fairQueue{byTopic: make(map[*Topic]*topicQueue)}, withPrefetch: make(map[*Lane]struct{}),
		})
	}
	return s
}

// Shard returns the state of shard n, in [0, Options.Shards).
func (s *Scheduler) Shard(n int) *Shard { return s.shards[n] }

// Stop ends claiming and starting: Pick and Next return nothing from now on.
func (s *Scheduler) Stop() { s.stopping = true }

// InFlight returns how many jobs are asked for or claimed and not being settled yet.
func (s *Scheduler) InFlight() int { return s.inFlight }

// TopicInFlight is InFlight for one topic, without the prefetched jobs, which do not count towards its workers.
func (s *Scheduler) TopicInFlight(name TopicName) int {
	t := s.topics[name]
	if t == nil {
		return 0
	}
	return t.inFlight - t.prefetched
}

// Limit returns how many attempts may be in flight now: fewer than Options.Workers after a shortage.
func (s *Scheduler) Limit() int { return s.limit.current }

// maxBusyLanes bounds the lanes that are queued or in flight.
const maxBusyLanes = 65_536

// Crowded reports whether no more lanes should be taken on.
func (s *Scheduler) Crowded() bool { return len(s.lanes)-s.idle.Len() > maxBusyLanes }

// wakeAll wakes every shard.
func (s *Scheduler) wakeAll() {
	for _, sh := range s.shards {
		s.opts.Wake(sh.n)
	}
}

// Shard is the scheduling state of one shard of the store.
type Shard struct {
	s *Scheduler
	n int

	runnable      fairQueue
	callTime      time.Duration // of calls to the store, the longest of late
	reservedBytes int           // for the claim under way
	largeLane     *Lane         // to be claimed from alone, because its next body is longer than a claim's room
	prefetched    int
	withPrefetch  map[*Lane]struct{} // lanes with prefetched jobs
}

const (
	// initialCallTime is the assumed duration of the first call, which opens connections.
	initialCallTime = 100 * time.Millisecond
	// maxExtraLease bounds what slow calls add to a lease.
	maxExtraLease = 30 * time.Second
)

// RecordCall notes how long a call to the store took.
func (sh *Shard) RecordCall(took time.Duration) { sh.callTime = max(took, sh.callTime-sh.callTime/8) }

// ExtraLease returns by how much leases are extended while the store is slow: their jobs could never be attempted
// otherwise.
func (sh *Shard) ExtraLease() time.Duration { return min(2*sh.callTime, maxExtraLease) }

// Prefetched returns how many claimed jobs wait for a worker.
func (sh *Shard) Prefetched() int { return sh.prefetched }

// wakeOthers wakes the other shards with queued lanes, which may have waited for room.
func (sh *Shard) wakeOthers() {
	for _, other := range sh.s.shards {
		if other != sh && other.HasWaiting() {
			sh.s.opts.Wake(other.n)
		}
	}
}

// othersWaiting reports whether lanes of another shard are queued.
func (sh *Shard) othersWaiting() bool {
	for _, other := range sh.s.shards {
		if other != sh && other.HasWaiting() {
			return true
		}
	}
	return false
}

// MarkRunnable notes that queues have claimable jobs, and reports whether one of them is newly queued.
func (sh *Shard) MarkRunnable(queues []job.Queue) (added bool) {
	for _, q := range queues {
		l := sh.useLane(q)
		switch {
		case l.claiming:
			l.markedWhileClaiming = true
		case !l.queued && sh.runnable.isFull(l.topic):
			sh.s.markIdle(l) // the carrier notifies again within a second
		case !l.queued:
			l.runnable, l.likely = true, 1
			sh.runnable.push(l)
			added = true
		}
	}
	return added
}

// HasWaiting reports whether lanes are queued that another process could serve. A topic without starts has none.
func (sh *Shard) HasWaiting() bool { return sh.runnable.hasWaiting() }

// Waiting returns up to n queues that another process could serve, about as they take turns.
func (sh *Shard) Waiting(n int) []job.Queue { return sh.runnable.firstWaiting(n) }

// RunnableQueues returns all queues of the shard that may have claimable jobs.
func (sh *Shard) RunnableQueues() (queues []job.Queue) {
	for _, l := range sh.s.lanes {
		if l.shard == sh && l.runnable {
			queues = append(queues, l.queue)
		}
	}
	return queues
}

// Settle takes jobs of lanes, one of each that is named, out of what is in flight: the store settles before it claims,
// so the next Pick may use their room.
func (sh *Shard) Settle(lanes []*Lane, now time.Time) {
	s := sh.s
	for _, l := range lanes {
		sh.measureRate(l.topic, now)
		s.inFlight--
		l.addInFlight(-1)
		if l.runnable && !l.queued && !l.claiming {
			sh.runnable.push(l)
		}
		s.markIdle(l)
	}
	if len(lanes) > 0 {
		sh.wakeOthers()
	}
}

// Pick chooses queues to claim from and reserves room for their jobs. The request lacks its Margin. more reports that
// nothing was found yet, but not all queues were looked at. The caller reports the answer by Claimed or Abandon.
func (sh *Shard) Pick(now time.Time) (request store.ClaimRequest, more bool) {
	s := sh.s
	if s.stopping || now.Before(s.limit.resumeAt) {
		return request, false
	}
	if s.lastClaimer == sh && sh.othersWaiting() {
		// The shard that settles would always take the freed room: let another one claim first.
		s.lastClaimer = nil
		s.opts.Wake(sh.n)
		return request, false
	}
	s.window.narrow(now)
	var tightest policy.Rate
	request.MaxBytes = s.claimBytes()
	request.Queues, tightest = sh.pickQueues(now)
	request.Slack = s.window.length(sh.callTime, tightest)
	if len(request.Queues) == 0 {
		return request, sh.runnable.topicsLeft > 0 && s.inFlight < s.limit.current
	}
	s.lastClaimer = sh
	for _, q := range request.Queues {
		request.Max += q.Max
	}
	s.inFlight += request.Max
	sh.reserveBytes(request.MaxBytes)
	return request, false
}

// Abandon takes back what Pick reserved for the queues of a claim without an answer.
func (sh *Shard) Abandon(request store.ClaimRequest) {
	sh.releaseBytes()
	for _, q := range request.Queues {
		l := sh.s.lanes[q.Queue]
		sh.s.inFlight -= q.Max
		l.addInFlight(-q.Max)
		l.claiming = false
	}
}
