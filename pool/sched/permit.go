package sched

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// rateState is the state of a topic's rate: the starts that were granted last, and when more may be requested. A
// topic's starts are counted by one shard for all processes, so they are requested before jobs are claimed. A start
// that is not used within the start window is lost to all processes for the rate's window. So a topic requests no more
// than it probably has jobs that can begin now, and at most an eighth of its rate at once. What a claim did not use is
// used by the next, of any lane of the topic.
type rateState struct {
	rate      policy.Rate // for which the rest holds
	grant     *grant      // nil: none
	wanted    int         // starts to request
	requested bool
	retryAt   time.Time // nothing is requested before
}

// grant is a number of starts of a topic.
type grant struct {
	rate policy.Rate // for which it was made
	left int
	ends time.Time // no attempt of the grant may begin later
}

const (
	// PermitRetry is how long a topic that needs starts waits at most before it requests more. The store says when more
	// can be granted, but not that the rate was changed.
	PermitRetry = time.Second
	// maxRequestShare is the part of a rate that is requested at once at most: an eighth.
	maxRequestShare = 8
)

// startsLeft returns how many starts a topic has at hand. What was granted, or put off, under another rate is void.
func (t *Topic) startsLeft(rate policy.Rate, now time.Time) int {
	r := &t.rate
	if r.rate != rate {
		r.rate, r.grant, r.retryAt = rate, nil, time.Time{}
	}
	if r.grant == nil || !now.Before(r.grant.ends) {
		return 0
	}
	return r.grant.left
}

// needPermit has starts requested for a topic whose queued lanes could begin share jobs, while free are left of the
// process's attempts, unless that is under way, or too early.
func (s *Scheduler) needPermit(t *Topic, share, free int, topicPolicy policy.Topic, c *pickState) {
	r := &t.rate
	if r.requested || c.now.Before(r.retryAt) {
		return
	}
	r.wanted, c.onlyCount = 0, true
	for _, sh := range s.shards {
		if q := sh.runnable.byTopic[t]; q != nil {
			r.wanted += q.pickLanes(s, share-r.wanted, free-r.wanted, topicPolicy, c)
		}
	}
	if c.onlyCount = false; r.wanted > 0 {
		r.requested = true
		s.needPermits = append(s.needPermits, t)
	}
}

// PermitCall is one call for starts: for topics of one shard, a request each.
type PermitCall struct {
	Shard    int
	Topics   []*Topic
	Requests []store.PermitRequest
}

// PermitCalls returns the calls for the topics that need starts. A call has up to store.MaxBatch requests. The caller
// reports each answer by Granted.
func (sh *Shard) PermitCalls() (calls []*PermitCall) {
	s := sh.s
	if len(s.needPermits) == 0 {
		return nil
	}
	open := make(map[int]*PermitCall)
	for _, t := range s.needPermits {
		shard := store.ShardOfTopic(len(s.shards), t.name.Namespace, t.name.Name)
		call := open[shard]
		if call == nil || len(call.Requests) == store.MaxBatch {
			call = &PermitCall{Shard: shard}
			calls, open[shard] = append(calls, call), call
		}
		call.Topics = append(call.Topics, t)
		call.Requests = append(call.Requests, store.PermitRequest{
			Namespace: t.name.Namespace, Topic: t.name.Name, Rate: t.rate.rate,
			Starts: min(t.rate.wanted, max(1, t.rate.rate.Starts/maxRequestShare), store.MaxBatch),
			Slack:  s.window.length(sh.callTime, t.rate.rate),
		})
	}
	s.needPermits = nil
	return calls
}

// Granted takes in the answers to a call that began at a time, and wakes all shards. retries are the moments at which
// more starts can be requested: Wake is due for all shards then.
func (s *Scheduler) Granted(call *PermitCall, permits []store.Permit, began, now time.Time) (retries []time.Time) {
	seen := make(map[time.Duration]bool, 1)
	for i, t := range call.Topics {
		if wait := s.addGrant(t, call.Requests[i], permits[i], began, now); wait > 0 && !seen[wait] {
			seen[wait] = true
			retries = append(retries, began.Add(wait))
		}
	}
	s.wakeAll()
	return retries
}

// addGrant notes the answer to a request, and returns after what time since its call more can be requested; zero:
// whenever it is needed.
func (s *Scheduler) addGrant(
	t *Topic, request store.PermitRequest, permit store.Permit, began, now time.Time,
) (wait time.Duration) {
	r := &t.rate
	r.requested = false
	wait = min(permit.Next, PermitRetry)
	if r.rate != request.Rate { // it was changed meanwhile
		return wait
	}
	r.retryAt = began.Add(wait)
	if permit.Starts > 0 {
		r.grant = &grant{rate: request.Rate, left: permit.Starts, ends: began.Add(request.Slack)}
		if !now.Before(r.grant.ends) {
			s.window.widen(now)
		}
	}
	return wait
}
