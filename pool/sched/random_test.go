package sched

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// process is a Scheduler with a store of counters, and with workers that do what a test draws.
type process struct {
	*rapid.T

	s           *Scheduler
	now         time.Time
	topicPolicy policy.Topic
	queues      []job.Queue
	waiting     map[job.Queue]int
	held        map[*Job]bool // claimed and not ended
	alone       bool          // no other process has jobs
	running     []*Job
	ended       [][]*Lane
	woken       int
}

func newProcess(t *rapid.T) *process {
	p := &process{
		T: t, now: time.UnixMilli(1_700_000_000_000), waiting: make(map[job.Queue]int),
		held: make(map[*Job]bool),
	}
	p.topicPolicy = policy.Topic{
		Workers: rapid.IntRange(1, 12).Draw(t, "workers"), LaneConcurrency: rapid.IntRange(1, 8).Draw(t, "concurrency"),
	}.WithDefaults(policy.Builtin())
	shards := rapid.IntRange(1, 2).Draw(t, "shards")
	p.ended = make([][]*Lane, shards)
	p.s = New(Options{
		Shards: shards, Workers: rapid.IntRange(1, 64).Draw(t, "all workers"), MaxBytes: 1000,
		Policy:     func(TopicName) policy.Topic { return p.topicPolicy },
		NewBreaker: func(policy.Breaker) Breaker { return neverOpen{} },
		Wake:       func(int) { p.woken++ },
	})
	for topic := range rapid.IntRange(1, 3).Draw(t, "topics") {
		for lane := range rapid.IntRange(1, 4).Draw(t, "lanes") {
			p.queues = append(p.queues,
				job.Queue{Namespace: "default", Topic: fmt.Sprint(topic), Lane: fmt.Sprint(lane)})
		}
	}
	return p
}

type neverOpen struct{}

func (neverOpen) Fail() bool   { return false }
func (neverOpen) Closed() bool { return true }

func (p *process) shardOf(q job.Queue) int { return int(q.Lane[0]) % len(p.ended) }

// add makes jobs due.
func (p *process) add() {
	q := rapid.SampledFrom(p.queues).Draw(p.T, "queue")
	p.waiting[q] += rapid.IntRange(1, 40).Draw(p.T, "jobs")
	p.s.Shard(p.shardOf(q)).MarkRunnable([]job.Queue{q})
}

// exchange settles and claims as package pool does.
func (p *process) exchange(shard int, fails bool) {
	sh := p.s.Shard(shard)
	sh.RecordCall(time.Millisecond)
	sh.Settle(p.ended[shard], p.now)
	p.ended[shard] = nil
	request, _ := sh.Pick(p.now)
	if len(request.Queues) == 0 {
		return
	}
	require.LessOrEqual(p, p.s.InFlight(), p.s.Limit())
	if fails {
		sh.Abandon(request)
		for _, q := range request.Queues {
			sh.MarkRunnable([]job.Queue{q.Queue})
		}
		return
	}
	c, bytes := Claim{Request: request, FirstCall: p.now}, 0
	for _, q := range request.Queues {
		status := store.QueueStatus{Queue: q.Queue}
		room := p.room(q)
		for n := 0; p.waiting[q.Queue] > 0; n++ {
			body := p.body(q.Queue)
			if status.Blocked = n == room; status.Blocked {
				break
			}
			if n == q.Max || len(c.Jobs) > 0 && bytes+body > request.MaxBytes {
				status.More = true
				break
			}
			bytes += body
			p.waiting[q.Queue]--
			c.Jobs = append(c.Jobs, &Job{Lane: p.s.Lane(q.Queue), Body: body})
		}
		c.Statuses = append(c.Statuses, status)
	}
	for _, j := range c.Jobs {
		p.held[j] = true
	}
	start, rejected := sh.Claimed(c, p.now)
	if rejected != nil {
		p.release(rejected)
	}
	p.running = append(p.running, start...)
}

// room is how many jobs the store gives of a queue: beyond the lane's concurrency only while no other process has some.
func (p *process) room(q store.QueueClaim) int {
	lane, held := p.s.Lane(q.Queue), 0
	for j := range p.held {
		if j.Lane == lane {
			held++
		}
	}
	if q.Ahead > 0 {
		require.Equal(p, healthOK, lane.health)
		require.Equal(p, p.topicPolicy.LaneConcurrency, lane.slots)
		require.LessOrEqual(p, held+q.Max, lane.slots+q.Ahead)
	} else {
		require.LessOrEqual(p, held+q.Max, lane.slots)
	}
	room := p.topicPolicy.LaneConcurrency - held
	if p.alone {
		room += q.Ahead
	}
	return max(0, room)
}

// body is the length of a queue's bodies: some are longer than a claim's room, one is longer than the budget.
func (p *process) body(q job.Queue) int { return []int{1, 10, 300, 2000}[int(q.Lane[0]-'0')] }

// release ends a job without a request: it is due again.
func (p *process) release(j *Job) {
	p.s.EndAttempt(j, AttemptResult{}, p.now)
	p.settle(j)
	q := j.Lane.queue
	p.waiting[q]++
	p.s.Shard(p.shardOf(q)).MarkRunnable([]job.Queue{q})
}

func (p *process) settle(j *Job) {
	delete(p.held, j)
	shard := p.shardOf(j.Lane.queue)
	p.ended[shard] = append(p.ended[shard], j.Lane)
}

// end ends an attempt and has its worker go on.
func (p *process) end(n int, result policy.Result) {
	j := p.running[n]
	p.running = append(p.running[:n:n], p.running[n+1:]...)
	p.s.EndAttempt(j, AttemptResult{
		Result: &result, Breaker: p.topicPolicy.Breaker,
		Concurrency: p.topicPolicy.LaneConcurrency,
	}, p.now)
	p.settle(j)
	if next := p.s.Next(j, p.now); next != nil {
		p.running = append(p.running, next)
	}
}

// check compares all counts with the jobs.
func (p *process) check() {
	s := p.s
	settling, busy, prefetched, reserved := 0, make(map[*Topic]int), 0, 0
	for _, items := range p.ended {
		settling += len(items)
	}
	for _, j := range p.running {
		busy[j.Lane.topic]++
	}
	require.Equal(p, len(p.held)+settling, s.inFlight)
	inFlight, byHealth, bytes := 0, healthCounts{}, 0
	for _, l := range s.lanes {
		inFlight += l.inFlight
		byHealth[l.health] += l.inFlight
		bytes += l.bytes
		prefetched += l.prefetched.len()
		require.LessOrEqual(p, l.running, p.topicPolicy.LaneConcurrency)
	}
	require.Equal(p, s.inFlight, inFlight)
	require.Equal(p, s.byHealth, byHealth)
	require.Equal(p, len(p.held)-len(p.running), prefetched)
	require.Equal(p, prefetched, s.prefetched)
	for _, sh := range s.shards {
		reserved += sh.reservedBytes
	}
	require.Zero(p, reserved)
	require.Equal(p, bytes, s.bytes.total+s.bytes.oversized)
	require.LessOrEqual(p, s.bytes.total, s.opts.MaxBytes)
	for _, t := range s.topics {
		require.Equal(p, busy[t], t.busy)
		require.LessOrEqual(p, t.busy, p.topicPolicy.Workers)
	}
}

// TestScheduler_RandomSequences checks the counts and limits after every step, and that all jobs end in the end.
func TestScheduler_RandomSequences(t *testing.T) {
	results := []policy.Result{
		{Status: 200},
		{Status: 200},
		{Status: 429},
		{Class: policy.ClassTimeoutHeaders},
		{Status: 200, Duration: 2 * SlowAfter},
	}
	rapid.Check(t, func(t *rapid.T) {
		p := newProcess(t)
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { p.check() },
			"add": func(*rapid.T) {
				p.add()
			},
			"exchange": func(t *rapid.T) {
				p.exchange(rapid.IntRange(0, len(p.ended)-1).Draw(t, "shard"),
					rapid.IntRange(0, 9).Draw(t, "fails") == 0)
			},
			"end": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "ended") {
					if n := len(p.running); n > 0 {
						p.end(rapid.IntRange(0, n-1).Draw(t, "job"), rapid.SampledFrom(results).Draw(t, "result"))
					}
				}
			},
			"quick": func(*rapid.T) {
				for range 6 {
					p.add()
				}
				for range 12 {
					p.now = p.now.Add(5 * time.Millisecond)
					for range len(p.running) {
						p.end(0, policy.Result{Status: 200})
						p.check()
					}
					for shard := range p.ended {
						p.exchange(shard, false)
					}
				}
			},
			"wait": func(t *rapid.T) {
				p.now = p.now.Add(rapid.SampledFrom([]time.Duration{
					time.Millisecond, 20 * time.Millisecond,
					SlowAfter,
				}).Draw(t, "time"))
				p.s.MarkHanging(p.now)
			},
			"others": func(t *rapid.T) { p.alone = rapid.Bool().Draw(t, "alone") },
			"drop": func(*rapid.T) {
				for shard := range p.ended {
					for _, j := range p.s.Shard(shard).DropPrefetched(false, p.now) {
						p.release(j)
					}
				}
			},
			"shortage": func(*rapid.T) {
				if p.s.Shortage(p.now); p.s.Limit() < p.s.opts.Workers {
					p.s.Grow()
				}
			},
		})
		for range 5000 { // all receivers answer from now on
			p.now = p.now.Add(time.Second)
			p.s.Grow()
			for shard := range p.ended {
				p.exchange(shard, false)
			}
			for len(p.running) > 0 {
				p.end(0, policy.Result{Status: 200})
			}
		}
		p.check()
		require.Zero(t, p.s.InFlight())
		require.Zero(t, p.s.bytes)
		for q, n := range p.waiting {
			require.Zero(t, n, "%v is starved", q)
		}
	})
}
