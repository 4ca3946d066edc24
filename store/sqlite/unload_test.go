package sqlite

import (
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// idleLook is how long lanes with nothing pending stay in memory at least.
const idleLook = time.Minute

// loadedLanes returns the number of lanes in memory.
func loadedLanes(t *testing.T, s *Store) (n int) {
	t.Helper()
	require.NoError(t, s.db.Submit(t.Context(), &op{Verb: "look", Run: func(u *unit.Unit) error {
		n = len(u.Mem.Queues)
		return nil
	}}))
	return n
}

func TestSweep_UnloadsLanesThatAreIdleForAMinute(t *testing.T) {
	s, c := openWithClock(t, options(t))
	const lanes = 20
	entries := make([]store.NewJob, lanes)
	for i := range entries {
		entries[i] = newJob(fmt.Sprint("job-", i), 0)
		entries[i].Queue = job.Queue{Namespace: lane.Namespace, Topic: lane.Topic, Lane: fmt.Sprint("lane-", i)}
	}
	insert(t, s, entries...)
	for _, e := range entries {
		claimed, err := s.Claim(t.Context(), store.NewToken(), store.ClaimRequest{
			Queues: []store.QueueClaim{{Queue: e.Queue, Max: 1, Timeout: time.Hour}}, Max: 1, MaxBytes: 1 << 20,
		})
		require.NoError(t, err)
		if e.ID != "job-0" { // which stays claimed
			settle(t, s, settlementOf(claimed.Jobs[0], policy.Verdict{Kind: policy.Delivered}))
		}
	}
	sweep := func() {
		_, err := s.Sweep(t.Context(), store.NewToken(), 100)
		require.NoError(t, err)
	}
	c.pass(idleLook)
	sweep()
	require.Equal(t, lanes, loadedLanes(t, s), "they were used a moment ago")
	require.Empty(t, takeWakeups(t, s), "none has jobs any more")
	c.pass(idleLook)
	again := newJob("again", time.Hour)
	again.Queue = entries[1].Queue
	insert(t, s, again)
	_, err := s.Cancel(t.Context(), store.NewToken(), again.Ref(), store.Cancellation{})
	require.NoError(t, err)
	sweep()
	require.Equal(t, 2, loadedLanes(t, s), "one has a job, one was used since the last look")
	c.pass(idleLook)
	sweep()
	c.pass(idleLook)
	sweep()
	require.Equal(t, 1, loadedLanes(t, s))

	// An unloaded lane is read when it is needed.
	later := newJob("later", 0)
	later.Queue = entries[2].Queue
	insert(t, s, later)
	require.Equal(t, 2, loadedLanes(t, s))
	claimed, err := s.Claim(t.Context(), store.NewToken(), store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: later.Queue, Max: 1, Timeout: time.Hour}}, Max: 1, MaxBytes: 1 << 20,
	})
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
}

func TestSweep_RemovesEveryLaneAndTopicThatIsUnused(t *testing.T) {
	o := options(t)
	o.Limits.KeepDelivered.Max = new(int64(0)) // so that a job is gone with its end
	o.Limits.IDWindow = new(time.Duration(0))
	s, c := openWithClock(t, o)
	const topics, limit = 30, 10
	for i := range topics {
		e := newJob(fmt.Sprint("job-", i), 0)
		e.Queue = job.Queue{Namespace: lane.Namespace, Topic: fmt.Sprint("topic-", i), Lane: "lane"}
		insert(t, s, e)
		_, err := s.Cancel(t.Context(), store.NewToken(), e.Ref(), store.Cancellation{})
		require.NoError(t, err)
	}
	rows := func() (lanes, kept int64) {
		inWriter(t, s, func() {
			require.NoError(t, s.db.Conn().QueryText(t.Context(), "SELECT (SELECT count(*) FROM queues), (SELECT "+
				"count(*) FROM topics WHERE name <> '')", func(v []driver.Value) error {
				lanes, kept = db.Int(v[0]), db.Int(v[1])
				return nil
			}))
		})
		return lanes, kept
	}
	// However seldom it is called: idle lanes are unloaded, but not before they are removed.
	for range 3 {
		c.pass(idleLook)
		swept, err := s.Sweep(t.Context(), store.NewToken(), limit)
		require.NoError(t, err)
		require.Equal(t, loadedLanes(t, s) > 0, swept.More)
	}
	lanes, kept := rows()
	require.Zero(t, lanes)
	require.Zero(t, kept)
}

func TestSweep_IsNotCalledAgainForTopicsThatStayInUse(t *testing.T) {
	s, c := openWithClock(t, options(t))
	const topics, limit = 8, 5
	for i := range topics {
		e := newJob(fmt.Sprint("job-", i), 0)
		e.Queue = job.Queue{Namespace: lane.Namespace, Topic: fmt.Sprint("topic-", i), Lane: "lane"}
		_, err := store.PutLane(t.Context(), s, store.NewToken(),
			store.Lane{Queue: e.Queue, Settings: policy.Lane{Paused: true}})
		require.NoError(t, err)
		inWriter(t, s, func() {
			require.NoError(t, s.commitAlone(func(u *unit.Unit) error {
				_, err := u.Topic(memory.TopicName{Namespace: e.Namespace, Name: e.Topic})
				return err
			}))
		})
	}
	sweep := func() bool {
		swept, err := s.Sweep(t.Context(), store.NewToken(), limit)
		require.NoError(t, err)
		return swept.More
	}
	require.True(t, sweep(), "not all could be looked at")
	require.False(t, sweep())
	require.False(t, sweep())
	_, err := store.PutLane(t.Context(), s, store.NewToken(),
		store.Lane{Queue: job.Queue{Namespace: lane.Namespace, Topic: "topic-3", Lane: "lane"}})
	require.NoError(t, err)
	c.pass(idleLook)
	for sweep() {
	}
	inWriter(t, s, func() { require.Len(t, s.mem.Topics, topics-1) })
}
