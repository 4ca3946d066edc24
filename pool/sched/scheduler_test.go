package sched

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// fixture is a Scheduler of one shard whose claims a test answers.
type fixture struct {
	*testing.T

	s     *Scheduler
	sh    *Shard
	now   time.Time
	woken int
}

func newFixture(t *testing.T, opts Options, topicPolicy policy.Topic) *fixture {
	f := &fixture{T: t, now: time.UnixMilli(1_700_000_000_000)}
	topicPolicy = topicPolicy.WithDefaults(policy.Builtin())
	opts.Shards, opts.MaxBytes = 1, max(opts.MaxBytes, 1000)
	opts.Policy = func(TopicName) policy.Topic { return topicPolicy }
	opts.NewBreaker = func(policy.Breaker) Breaker { return neverOpen{} }
	opts.Wake = func(int) { f.woken++ }
	f.s = New(opts)
	f.sh = f.s.Shard(0)
	return f
}

func queue(topic, lane string) job.Queue {
	return job.Queue{Namespace: "default", Topic: topic, Lane: lane}
}

// claim makes a claim that brings jobs with bodies of so many bytes from the queues named by topic, and more of all.
func (f *fixture) claim(bodies map[string]int) (names []string, start []*Job) {
	request, _ := f.sh.Pick(f.now)
	c := Claim{Request: request, FirstCall: f.now}
	for _, q := range request.Queues {
		names = append(names, q.Queue.Topic)
		c.Statuses = append(c.Statuses, store.QueueStatus{Queue: q.Queue, More: true})
		if body, ok := bodies[q.Queue.Topic]; ok {
			for range q.Max {
				c.Jobs = append(c.Jobs, &Job{Lane: f.s.Lane(q.Queue), Body: body})
			}
		}
	}
	if len(request.Queues) > 0 {
		start, _ = f.sh.Claimed(c, f.now)
	}
	return names, start
}

// quickly is the end of a delivered attempt.
var quickly = AttemptResult{Result: &policy.Result{Status: 200}, Concurrency: 64, Breaker: policy.Builtin().Breaker}

func (f *fixture) end(j *Job, result policy.Result) {
	f.s.EndAttempt(j, AttemptResult{Result: &result, Concurrency: 8, Breaker: policy.Builtin().Breaker}, f.now)
}

func TestShortage_PauseStartsAgainAfterASuccess(t *testing.T) {
	f := newFixture(t, Options{Workers: 100}, policy.Topic{})
	f.sh.MarkRunnable([]job.Queue{queue("a", "x")})
	_, start := f.claim(map[string]int{"a": 1})
	for _, want := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause} {
		pause, _ := f.s.Shortage(f.now)
		require.Equal(t, want, pause)
		_, more := f.sh.Pick(f.now)
		require.False(t, more)
		f.now = f.now.Add(pause)
	}
	f.end(start[0], policy.Result{Status: 200})
	pause, _ := f.s.Shortage(f.now)
	require.Equal(t, firstPause, pause)
}

func TestShortage_KeepsRoomBesideHangingAttempts(t *testing.T) {
	f := newFixture(t, Options{Workers: 100}, policy.Topic{})
	var jobs []*Job
	for lane := range 8 {
		f.sh.MarkRunnable([]job.Queue{queue("a", strconv.Itoa(lane))})
	}
	_, jobs = f.claim(map[string]int{"a": 1})
	require.Len(t, jobs, 8*initialSlots)
	f.now = f.now.Add(SlowAfter)
	require.Zero(t, f.s.MarkHanging(f.now))
	for _, j := range jobs[:10] {
		f.end(j, policy.Result{Status: 200})
		f.sh.Settle([]*Lane{j.Lane}, f.now)
	}
	f.s.Shortage(f.now)
	require.Equal(t, 7, f.s.Limit(), "six hang, and none does not")
}

func TestBytes_SendingWakesWaitingShards(t *testing.T) {
	f := newFixture(t, Options{Workers: 100, MaxBytes: 1000}, policy.Topic{})
	f.sh.MarkRunnable([]job.Queue{queue("a", "x")})
	_, jobs := f.claim(map[string]int{"a": 250})
	require.Len(t, jobs, initialSlots)
	f.sh.MarkRunnable([]job.Queue{queue("a", "y")})
	names, _ := f.claim(nil)
	require.Empty(t, names, "the topic holds what it may")
	f.woken = 0
	f.s.Sent(jobs[0])
	require.Equal(t, 1, f.woken)
	f.s.Sent(jobs[1])
	require.Equal(t, 1, f.woken, "nobody waits any more")
	names, _ = f.claim(nil)
	require.Equal(t, []string{"a"}, names)
}

func TestBytes_LaneSkippedTwiceIsClaimedAlone(t *testing.T) {
	f := newFixture(t, Options{Workers: 100, MaxBytes: 100_000}, policy.Topic{})
	for _, topic := range []string{"small", "large"} {
		f.sh.MarkRunnable([]job.Queue{queue(topic, "x")})
	}
	var alone []*Job
	for range 6 {
		names, jobs := f.claim(map[string]int{"small": 1})
		if len(names) == 1 && names[0] == "large" {
			return
		}
		alone = append(alone, jobs...)
		for _, j := range jobs {
			f.end(j, policy.Result{Status: 200})
			f.sh.Settle([]*Lane{j.Lane}, f.now)
		}
	}
	require.Fail(t, "its next body is longer than the room that others leave", "%d small ones", len(alone))
}

func TestPick_ContinuesAfterTheLastPick(t *testing.T) {
	f := newFixture(t, Options{Workers: 8 * maxScans}, policy.Topic{Workers: 1})
	full := make(map[string]int)
	for n := range maxScans + 100 {
		full[strconv.Itoa(n)] = 1
	}
	for topic := range full {
		f.sh.MarkRunnable([]job.Queue{queue(topic, "x")})
	}
	for f.s.InFlight() < len(full) {
		f.claim(full)
	}
	f.sh.MarkRunnable([]job.Queue{queue("free", "x")})
	picks := 0
	for more := true; more; picks++ {
		var request store.ClaimRequest
		if request, more = f.sh.Pick(f.now); len(request.Queues) > 0 {
			require.Equal(t, "free", request.Queues[0].Queue.Topic)
			return
		}
	}
	require.Fail(t, "the topic behind very many full ones is not found", "%d picks", picks)
}

func TestPick_StartsEachRoundWithAnotherTopic(t *testing.T) {
	f := newFixture(t, Options{Workers: 1000}, policy.Topic{Workers: 2})
	topics := []string{"a", "b", "c"}
	first := make(map[string]bool)
	for range topics {
		for _, topic := range topics {
			f.sh.MarkRunnable([]job.Queue{queue(topic, "x")})
		}
		names, jobs := f.claim(map[string]int{"a": 1, "b": 1, "c": 1})
		require.Len(t, names, 3)
		first[names[0]] = true
		for _, j := range jobs {
			f.end(j, policy.Result{Status: 200})
			f.sh.Settle([]*Lane{j.Lane}, f.now)
		}
	}
	require.Len(t, first, 3)
}

func TestPick_WithoutRunnableQueuesHasNothingMore(t *testing.T) {
	f := newFixture(t, Options{Workers: 10}, policy.Topic{})
	request, more := f.sh.Pick(f.now)
	require.Empty(t, request.Queues)
	require.False(t, more)
}

// prefetchBeyondSlots returns a lane's two running jobs, which is its limit, while others of it wait for a worker.
func (f *fixture) prefetchBeyondSlots() []*Job {
	f.sh.MarkRunnable([]job.Queue{queue("a", "x")})
	_, jobs := f.claim(map[string]int{"a": 1})
	require.Len(f, jobs, 2)
	topic := jobs[0].Lane.Topic()
	topic.prefetchTarget, topic.measuredAt = 10, f.now
	for _, j := range jobs {
		f.endAtLimit(j)
		require.Nil(f, f.s.Next(j, f.now))
		f.sh.Settle([]*Lane{j.Lane}, f.now)
	}
	_, jobs = f.claim(map[string]int{"a": 1})
	require.Len(f, jobs, 2, "of those that were claimed")
	require.Greater(f, f.s.InFlight(), 2)
	return jobs
}

func (f *fixture) endAtLimit(j *Job) {
	f.s.EndAttempt(j,
		AttemptResult{Result: &policy.Result{Status: 200}, Concurrency: 2, Breaker: policy.Builtin().Breaker}, f.now)
}

func TestPrefetch_LaneAtItsConcurrencyBeginsNoMoreThanItsSlots(t *testing.T) {
	f := newFixture(t, Options{Workers: 1000}, policy.Topic{Workers: 8, LaneConcurrency: 2})
	jobs := f.prefetchBeyondSlots()
	f.endAtLimit(jobs[0])
	require.NotNil(t, f.s.Next(jobs[0], f.now), "the slot is taken over at once")
	require.Nil(t, f.s.Next(jobs[0], f.now), "and no other")
}

func TestPrefetch_KeepsToALimitThatWasLoweredSinceTheClaim(t *testing.T) {
	f := newFixture(t, Options{Workers: 1000}, policy.Topic{Workers: 8, LaneConcurrency: 2})
	jobs := f.prefetchBeyondSlots()
	jobs[0].Lane.settings = &LaneSettings{Lane: store.Lane{Settings: policy.Lane{LaneConcurrency: 1}}}
	f.endAtLimit(jobs[0])
	require.Nil(t, f.s.Next(jobs[0], f.now), "one still runs")
	f.endAtLimit(jobs[1])
	require.NotNil(t, f.s.Next(jobs[1], f.now))
}

func TestPrefetch_ClaimBeginsNoJobOfALaneInCooldown(t *testing.T) {
	f := newFixture(t, Options{Workers: 1000}, policy.Topic{Workers: 4, LaneConcurrency: 4})
	f.sh.MarkRunnable([]job.Queue{queue("a", "x")})
	_, jobs := f.claim(map[string]int{"a": 1})
	require.Len(t, jobs, initialSlots)
	result := AttemptResult{Result: &policy.Result{Status: 200}, Concurrency: 4, Breaker: policy.Builtin().Breaker}
	f.s.EndAttempt(jobs[0], result, f.now)
	require.Nil(t, f.s.Next(jobs[0], f.now))
	f.sh.Settle([]*Lane{jobs[0].Lane}, f.now)
	f.sh.MarkRunnable([]job.Queue{queue("a", "y")})
	request, _ := f.sh.Pick(f.now)
	require.Len(t, request.Queues, 2)
	result.Cooldown = time.Minute
	f.s.EndAttempt(jobs[1], result, f.now) // during the call
	require.Nil(t, f.s.Next(jobs[1], f.now))
	claim := Claim{Request: request, FirstCall: f.now}
	for _, q := range request.Queues {
		claim.Statuses = append(claim.Statuses, store.QueueStatus{Queue: q.Queue})
		claim.Jobs = append(claim.Jobs, &Job{Lane: f.s.Lane(q.Queue), Body: 1})
	}
	start, _ := f.sh.Claimed(claim, f.now)
	require.Len(t, start, 2)
	for _, j := range start {
		require.Equal(t, j.Lane == jobs[1].Lane, j.Cancelled,
			"what the claim brought of a lane in cooldown is put back")
	}
}

func TestNext_GoesOnWithItsLaneForOneTurn(t *testing.T) {
	f := newFixture(t, Options{Workers: 1000}, policy.Topic{Workers: 1, LaneConcurrency: 64})
	x, y := queue("a", "x"), queue("a", "y")
	f.sh.MarkRunnable([]job.Queue{x})
	_, jobs := f.claim(map[string]int{"a": 1})
	require.Len(t, jobs, 1)
	topic := jobs[0].Lane.Topic()
	topic.prefetchTarget, topic.measuredAt = 64, f.now
	f.s.EndAttempt(jobs[0], quickly, f.now)
	f.sh.MarkRunnable([]job.Queue{y})
	f.sh.Settle([]*Lane{jobs[0].Lane}, f.now)
	require.Nil(t, f.s.Next(jobs[0], f.now))
	_, jobs = f.claim(map[string]int{"a": 1})
	require.Len(t, jobs, 1)
	for _, of := range []job.Queue{x, y} {
		for range 2*maxLaneBatch - f.s.Lane(of).prefetched.len() {
			f.s.queue(&Job{Lane: f.s.Lane(of)}, f.now)
		}
		f.s.Lane(of).slots = 64
		f.s.updateReady(f.s.Lane(of))
	}
	var turns []string
	for j := jobs[0]; j != nil; j = f.s.Next(j, f.now) {
		f.s.EndAttempt(j, quickly, f.now)
		if lane := j.Lane.queue.Lane; len(turns) == 0 || j.inRow == 0 {
			turns = append(turns, lane)
		} else {
			require.Equal(t, turns[len(turns)-1], lane)
		}
		require.Less(t, j.inRow, maxLaneBatch)
	}
	require.Subset(t, [][]string{{"x", "y", "x", "y", "x"}, {"y", "x", "y", "x", "y"}}, [][]string{turns})
}

func TestNext_ServesAWokenLaneBeforeItGoesOn(t *testing.T) {
	f := newFixture(t, Options{Workers: 1000}, policy.Topic{Workers: 1, LaneConcurrency: 64})
	x, y, z := queue("a", "x"), queue("a", "y"), queue("a", "z")
	f.sh.MarkRunnable([]job.Queue{x, y, z})
	first := &Job{Lane: f.s.Lane(x)}
	first.Lane.slots, first.Lane.topic.busy = 64, 1
	for lane, jobs := range map[job.Queue]int{x: 3, y: 3, z: 1} { // y had more in the store, z has no other job
		f.s.Lane(lane).backlogged = lane != z
		for range jobs {
			f.s.queue(&Job{Lane: f.s.Lane(lane)}, f.now)
		}
		f.s.updateReady(f.s.Lane(lane))
	}
	var served string
	for j := f.s.Next(first, f.now); j != nil; j = f.s.Next(j, f.now) {
		served += j.Lane.queue.Lane
		f.s.EndAttempt(j, quickly, f.now)
	}
	require.Equal(t, "z", served[:1])
	require.Contains(t, []string{"xxxyyy", "yyyxxx"}, served[1:])
}
