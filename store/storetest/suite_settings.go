package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// fullLane sets every setting of a lane.
func fullLane() policy.Lane {
	made := time.Date(2026, 3, 1, 12, 30, 15, int(250*time.Millisecond), time.UTC)
	return policy.Lane{
		URL:     "https://lane.example/hooks?a=1",
		Headers: map[string][]string{"X-Tenant": {"42", "43"}, "X-Name": {"Zoë \"'"}}, Secrets: []policy.Secret{
			{ID: "new", CreatedAt: made, Value: "whsec_\"'&<>ü"},
			{ID: "old", CreatedAt: made.Add(-long), Value: "whsec_old"},
		},
		LaneConcurrency: 7, LaneRate: policy.Rate{Starts: 5, Per: 1500 * time.Millisecond}, Paused: true,
	}
}

// reported returns the settings of the lane that a claim with a known revision reports.
func (s *suite) reported(q job.Queue, known int64) *store.Lane {
	s.Helper()
	request := claimOf(q)
	request.Queues[0].LaneRevision = known
	return s.decodeLane(s.claim(request).Queues[0].LaneDocument)
}

// decodeLane decodes the settings that a claim reports.
func (s *suite) decodeLane(doc *store.Document) *store.Lane {
	s.Helper()
	if doc == nil {
		return nil
	}
	lane, err := doc.Lane()
	require.NoError(s, err)
	return &lane
}

var settingsCases = []testCase{
	{"are stored as given, for lanes with and without jobs", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		for _, q := range []job.Queue{s.laneQueue(0), s.laneQueue(1)} {
			put := s.putLane(q, fullLane())
			require.NotZero(s, put.Revision)
			require.Equal(s, store.Lane{Queue: q, Settings: fullLane(), Revision: put.Revision}, plain(put))
			require.Equal(s, plain(put), plain(s.getLane(q)))
		}
		sparse := s.putLane(s.laneQueue(2), policy.Lane{URL: "http://sparse.example/"})
		lanes, err := store.GetLanes(s.Context(), s.shard(),
			[]job.Queue{s.laneQueue(2), s.laneQueue(3), s.laneQueue(0)})
		require.NoError(s, err)
		require.Len(s, lanes, 3)
		require.Equal(s, plain(sparse), plain(lanes[0]))
		require.Equal(s, store.Lane{Queue: s.laneQueue(3)}, plain(lanes[1]), "no settings")
		require.Equal(s, plain(s.getLane(s.laneQueue(0))), plain(lanes[2]))
		lanes, err = store.GetLanes(s.Context(), s.shard(), nil)
		require.NoError(s, err)
		require.Empty(s, lanes)
	}},
	{"refuses another revision than the stored one", func(s *suite) {
		_, err := store.PutLane(s.Context(), s.shard(), store.NewToken(),
			store.Lane{Queue: s.queue, Settings: fullLane(), Revision: 99})
		require.ErrorIs(s, err, store.ErrVersion)
		require.Zero(s, s.getLane(s.queue).Revision)
		begun := store.Lane{Queue: s.queue, Settings: fullLane(), Revision: store.MustNotExist}
		_, err = store.PutLane(s.Context(), s.shard(), store.NewToken(), begun)
		require.NoError(s, err, "nothing is stored yet")
		_, err = store.PutLane(s.Context(), s.shard(), store.NewToken(), begun)
		require.ErrorIs(s, err, store.ErrVersion, "they are stored now")
		first := s.putLane(s.queue, policy.Lane{LaneConcurrency: 1})
		first.Settings.LaneConcurrency = 2
		second, err := store.PutLane(s.Context(), s.shard(), store.NewToken(), first)
		require.NoError(s, err)
		require.Greater(s, second.Revision, first.Revision)
		for _, settings := range []policy.Lane{first.Settings, {}} {
			_, err = store.PutLane(s.Context(), s.shard(), store.NewToken(),
				store.Lane{Queue: s.queue, Settings: settings, Revision: first.Revision})
			require.ErrorIs(s, err, store.ErrVersion)
		}
		require.Equal(s, plain(second), plain(s.getLane(s.queue)))
	}},
	{"empty settings are removed, and revisions keep growing", func(s *suite) {
		first := s.putLane(s.queue, fullLane())
		_, err := store.PutLane(s.Context(), s.shard(), store.NewToken(),
			store.Lane{Queue: s.queue, Revision: first.Revision})
		require.NoError(s, err)
		require.Equal(s, store.Lane{Queue: s.queue}, plain(s.getLane(s.queue)))
		_, err = store.PutLane(s.Context(), s.shard(), store.NewToken(), first)
		require.ErrorIs(s, err, store.ErrVersion, "the settings were removed")
		second := s.putLane(s.queue, fullLane())
		require.Greater(s, second.Revision, first.Revision)
		require.Greater(s, s.putLane(s.queue, policy.Lane{Paused: true}).Revision, second.Revision)
	}},
	{"a claim returns settings of another revision than the request's", func(s *suite) {
		for i, q := range []job.Queue{s.laneQueue(0), s.laneQueue(1)} { // with a job and without
			if i == 0 {
				s.insertNew(s.entry("a", delayed(long)))
			}
			require.Nil(s, s.reported(q, 0), "no settings")
			first := s.putLane(q, fullLane())
			require.Equal(s, plain(first), plain(*s.reported(q, 0)))
			require.Nil(s, s.reported(q, first.Revision))
			second := s.putLane(q, policy.Lane{URL: "http://second.example/"})
			require.Equal(s, plain(second), plain(*s.reported(q, first.Revision)))
			require.Nil(s, s.reported(q, second.Revision))
			s.putLane(q, policy.Lane{})
			require.Equal(s, store.Lane{Queue: q}, plain(*s.reported(q, second.Revision)), "settings were removed")
			require.Nil(s, s.reported(q, 0))
		}
	}},
	{"a claim returns the settings of each queue", func(s *suite) {
		s.insertNew(s.entry("a", in(s.laneQueue(1))))
		put := s.putLane(s.laneQueue(1), policy.Lane{URL: "http://lane.example/"})
		got := s.claim(claimOf(s.laneQueue(0), s.laneQueue(1), s.laneQueue(2)))
		require.Nil(s, got.Queues[0].LaneDocument)
		require.Equal(s, plain(put), plain(*s.decodeLane(got.Queues[1].LaneDocument)))
		require.Nil(s, got.Queues[2].LaneDocument)
		require.Len(s, got.Jobs, 1)
		item := settlement(got.Jobs[0], delivered)
		next := claimOf(s.laneQueue(1))
		_, got, err := s.shard().Settle(s.Context(), store.NewToken(), []store.Settlement{item}, &next)
		require.NoError(s, err)
		require.Equal(s, plain(put), plain(*s.decodeLane(got.Queues[0].LaneDocument)))
	}},
	{"a paused lane accepts jobs, and notifies when it is resumed", func(s *suite) {
		s.putLane(s.queue, policy.Lane{Paused: true, URL: "http://lane.example/"})
		s.insertNew(s.entry("a"), s.entry("b", in(s.laneQueue(1))))
		s.waitNotified(s.laneQueue(1))
		require.Len(s, s.claim(claimOf(s.laneQueue(1))).Jobs, 1, "another lane is not paused")
		s.drainWakeups()
		if s.Advance != nil {
			s.Advance(2 * store.RenotifyAfter)
		}
		s.requireNotNotified("a paused lane")
		s.requireBlocked("while the lane is paused")
		s.put(policy.Topic{Paused: true})
		s.putLane(s.queue, policy.Lane{URL: "http://lane.example/"})
		s.requireBlocked("while the topic is paused")
		s.put(policy.Topic{})
		s.waitNotified(s.queue)
		s.putLane(s.queue, policy.Lane{Paused: true})
		s.requireBlocked("while the lane is paused again")
		s.drainWakeups()
		s.putLane(s.queue, policy.Lane{})
		s.waitNotified(s.queue)
		s.claimAll("a")
	}},
	{"a lane's concurrency replaces its topic's", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 2})
		for i := range 8 {
			s.insertNew(s.entry(fmt.Sprint(i)), s.entry(fmt.Sprintf("other-%d", i), in(s.laneQueue(1))))
		}
		s.putLane(s.queue, policy.Lane{LaneConcurrency: 1})
		got := s.claim(claimOf(s.queue, s.laneQueue(1)))
		require.Len(s, got.Jobs, 3)
		require.True(s, got.Queues[0].Blocked)
		s.requireBlocked("at the lane's limit")
		s.drainWakeups()
		s.putLane(s.queue, policy.Lane{LaneConcurrency: 4})
		s.waitNotified(s.queue)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 3)
		s.putLane(s.queue, policy.Lane{})
		s.settleOne(got.Jobs[0], delivered)
		s.requireBlocked("at the topic's limit again")
	}},
	{"a lane's rate replaces its topic's until it is removed", func(s *suite) {
		s.put(policy.Topic{LaneRate: policy.Rate{Starts: 2, Per: long}})
		for i := range 9 {
			s.insertNew(s.entry(fmt.Sprint(i)), s.entry(fmt.Sprintf("other-%d", i), in(s.laneQueue(1))))
		}
		s.putLane(s.queue, policy.Lane{LaneRate: policy.Rate{Starts: 5, Per: long}})
		got := s.claim(claimOf(s.queue, s.laneQueue(1)))
		require.Len(s, got.Jobs, 7)
		s.putLane(s.laneQueue(1), policy.Lane{LaneRate: policy.Rate{Starts: 3, Per: long}})
		require.Len(s, s.claim(claimOf(s.laneQueue(1))).Jobs, 1)
		s.putLane(s.queue, policy.Lane{})
		s.requireBlocked("five starts count against the topic's two")
		s.put(policy.Topic{LaneRate: policy.Rate{Starts: 6, Per: long}})
		s.waitNotified(s.queue)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
	}},
	{"settings put before the first job apply to it", func(s *suite) {
		s.putLane(s.queue, policy.Lane{Paused: true, LaneConcurrency: 1})
		s.insertNew(s.entry("a"), s.entry("b"))
		s.requireBlocked("a lane paused before its first job")
		s.putLane(s.queue, policy.Lane{LaneConcurrency: 1})
		s.waitNotified(s.queue)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
	}},
	{"a repeated token returns the first result and changes nothing", func(s *suite) {
		token := store.NewToken()
		put := func() (store.Lane, error) {
			return store.PutLane(s.Context(), s.shard(), token, store.Lane{Queue: s.queue, Settings: fullLane()})
		}
		first, err := put()
		require.NoError(s, err)
		other := s.putLane(s.queue, policy.Lane{Paused: true})
		second, err := put()
		require.NoError(s, err)
		require.Equal(s, first.Revision, second.Revision)
		require.Equal(s, plain(other), plain(s.getLane(s.queue)))
	}},
	{"ListLanes returns lanes with settings by name, in pages", func(s *suite) {
		var wanted []store.Lane
		for i := range 7 {
			lane := s.putLane(s.laneQueue(6-i), policy.Lane{LaneConcurrency: i + 1})
			if i != 3 {
				wanted = append(wanted, plain(lane))
			}
		}
		s.putLane(s.laneQueue(3), policy.Lane{})
		s.insertNew(s.entry("a", in(s.laneQueue(8)), delayed(long)))
		s.putLane(s.queueOf(s.queue.Namespace, "other", 0), policy.Lane{Paused: true})
		s.putLane(s.queueOf("other", s.queue.Topic, 0), policy.Lane{Paused: true})
		slices.Reverse(wanted)
		for _, limit := range []int{1, 2, 100} {
			var all []store.Lane
			for after := ""; ; {
				page, err := store.ListLanes(s.Context(), s.shard(), s.queue.Namespace, s.queue.Topic, after, limit)
				require.NoError(s, err)
				require.LessOrEqual(s, len(page), limit)
				if len(page) == 0 {
					break
				}
				for _, lane := range page {
					all = append(all, plain(lane))
				}
				require.Greater(s, page[0].Queue.Lane, after)
				after = page[len(page)-1].Queue.Lane
			}
			require.Equal(s, wanted, all, "limit %d", limit)
		}
		none, err := store.ListLanes(s.Context(), s.shard(), s.queue.Namespace, "unknown", "", 10)
		require.NoError(s, err)
		require.Empty(s, none)
	}},
	{"settings survive a restart", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		s.insertNew(s.entry("a"))
		used, unused := s.putLane(s.queue, fullLane()), s.putLane(s.laneQueue(1), fullLane())
		removed := s.putLane(s.laneQueue(2), fullLane())
		s.putLane(s.laneQueue(2), policy.Lane{})
		s.Store = s.Reopen()
		require.Equal(s, plain(used), plain(s.getLane(s.queue)))
		require.Equal(s, plain(unused), plain(s.getLane(s.laneQueue(1))))
		require.Equal(s, store.Lane{Queue: s.laneQueue(2)}, plain(s.getLane(s.laneQueue(2))))
		s.requireBlocked("a lane paused before the restart")
		require.Nil(s, s.reported(s.queue, used.Revision))
		require.Greater(s, s.putLane(s.laneQueue(2), fullLane()).Revision, removed.Revision)
		page, err := store.ListLanes(s.Context(), s.shard(), s.queue.Namespace, s.queue.Topic, "", 10)
		require.NoError(s, err)
		require.Len(s, page, 3)
	}},
}

// plain returns a lane without its durability.
func plain(l store.Lane) store.Lane {
	l.Durability = nil
	return l
}
