package sched

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// serve makes a claim that brings one job of each queue. Lanes with a backlog have more, as their status says. It ends
// the jobs and returns the lanes.
func (f *fixture) serve(backlog map[string]store.QueueStatus) (lanes []string) {
	request, _ := f.sh.Pick(f.now)
	c := Claim{Request: request, FirstCall: f.now}
	var served []*Lane
	for _, q := range request.Queues {
		l := f.s.Lane(q.Queue)
		lanes, served = append(lanes, q.Queue.Lane), append(served, l)
		c.Statuses = append(c.Statuses, backlog[q.Queue.Lane])
		c.Jobs = append(c.Jobs, &Job{Lane: l, Body: 1})
	}
	start, _ := f.sh.Claimed(c, f.now)
	for len(start) > 0 {
		f.s.Sent(start[0])
		f.end(start[0], policy.Result{Status: 200})
		next := f.s.Next(start[0], f.now)
		if start = start[1:]; next != nil {
			start = append(start, next)
		}
	}
	f.sh.Settle(served, f.now)
	return lanes
}

// backlogged returns a fixture whose lanes, so many, have been served and have more jobs.
func backlogged(t *testing.T, lanes int, status store.QueueStatus) (f *fixture, backlog map[string]store.QueueStatus) {
	f, backlog = newFixture(t, Options{Workers: 8, MaxBytes: 1_000_000}, policy.Topic{}),
		make(map[string]store.QueueStatus)
	for n := range lanes {
		name := "b" + strconv.Itoa(n)
		backlog[name] = status
		f.sh.MarkRunnable([]job.Queue{queue("a", name)})
	}
	for served := make(map[string]bool); len(served) < lanes; {
		for _, name := range f.serve(backlog) {
			served[name] = true
		}
	}
	return f, backlog
}

func TestPick_WokenLaneComesBeforeBacklog(t *testing.T) {
	for name, status := range map[string]store.QueueStatus{
		"more jobs": {More: true}, "all slots in use": {Blocked: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, backlog := backlogged(t, 1000, status)
			for range 3 { // first it is unknown, then its receiver has answered
				f.sh.MarkRunnable([]job.Queue{queue("a", "woken")})
				require.Contains(t, append(f.serve(backlog), f.serve(backlog)...), "woken")
			}
		})
	}
}

func TestPick_WokenLanesLeaveHalfToBacklog(t *testing.T) {
	f, backlog := backlogged(t, 100, store.QueueStatus{More: true})
	woken := make([]job.Queue, 100)
	for n := range woken {
		woken[n] = queue("a", "w"+strconv.Itoa(n))
	}
	turns := make(map[bool]int)
	for range 200 {
		f.sh.MarkRunnable(woken)
		for _, name := range f.serve(backlog) {
			turns[backlog[name].More]++
		}
	}
	require.InDelta(t, turns[true], turns[false], float64(turns[true])/4, "%v", turns)
}

func TestPick_LaneThatWaitsForRoomTakesOneTurn(t *testing.T) {
	f, backlog := backlogged(t, 4, store.QueueStatus{More: true})
	f.sh.MarkRunnable([]job.Queue{queue("a", "large")})
	f.serve(backlog) // its receiver answers, as the others' do
	f.sh.MarkRunnable([]job.Queue{queue("a", "large")})
	large := f.s.Lane(queue("a", "large"))
	large.nextBody = 2_000_000 // to be claimed alone
	f.sh.runnable.byTopic[large.topic].lanes[healthOK].lastWoken = true
	require.ElementsMatch(t, []string{"b0", "b1", "b2", "b3"}, f.serve(backlog))
	require.Equal(t, []string{"large"}, f.serve(backlog))
}
