package sqlite

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

func putLane(t *testing.T, s *Store, settings policy.Lane) store.Lane {
	t.Helper()
	put, err := store.PutLane(t.Context(), s, store.NewToken(), store.Lane{Queue: lane, Settings: settings})
	require.NoError(t, err)
	return put
}

func TestPutLane_NeverReusesARevision(t *testing.T) {
	o := options(t)
	s, c := openWithClock(t, o)
	first := putLane(t, s, policy.Lane{Paused: true})
	require.Equal(t, c.ms.Load(), first.Revision, "it follows the clock")
	second := putLane(t, s, policy.Lane{URL: "http://a.example"})
	require.Equal(t, first.Revision+1, second.Revision)
	require.Zero(t, putLane(t, s, policy.Lane{}).Revision)
	require.NoError(t, s.Close())

	s, _ = openWithClockAt(t, o, c.ms.Load()-time.Hour.Milliseconds())
	require.Greater(t, putLane(t, s, policy.Lane{Paused: true}).Revision, second.Revision)
	_, err := store.PutLane(t.Context(), s, store.NewToken(), store.Lane{Queue: lane, Revision: second.Revision})
	require.ErrorIs(t, err, store.ErrVersion)
}

func TestLaneSettings_ApplyWhereverTheQueueIsLoaded(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	putLane(t, s, policy.Lane{LaneConcurrency: 2, Secrets: []policy.Secret{{ID: "s", Value: "whsec_sealed"}}})
	insert(t, s, newJobs("job", 5, 0)...) // its queue is new
	require.Len(t, claimJobs(t, s, 5), 2)
	require.NoError(t, s.Close())

	s = openStore(t, o) // its queue is pending
	require.Len(t, claimJobs(t, s, 5), 2)
	for _, e := range newJobs("job", 5, 0) {
		_, err := s.Cancel(t.Context(), store.NewToken(), e.Ref(), store.Cancellation{})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())

	s = openStore(t, o) // its queue is not in memory
	for _, id := range []string{"job-0002", "job-0003", "job-0004"} {
		revive(t, s, id, 0)
	}
	require.Len(t, claimJobs(t, s, 5), 2)
	_, err := store.PutTopic(t.Context(), s, store.Topic{
		Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true},
	})
	require.NoError(t, err)
	putLane(t, s, policy.Lane{LaneConcurrency: 3})
	require.Empty(t, claimJobs(t, s, 5), "a pause of either holds")
	_, err = store.PutTopic(t.Context(), s, store.Topic{Namespace: lane.Namespace, Name: lane.Topic})
	require.NoError(t, err)
	require.Len(t, claimJobs(t, s, 5), 1)

	found, err := store.GetLanes(t.Context(), s,
		[]job.Queue{{Namespace: "default", Topic: "orders", Lane: "other"}, lane})
	require.NoError(t, err)
	require.Zero(t, found[0].Revision)
	require.Equal(t, 3, found[1].Settings.LaneConcurrency)
	putLane(t, s, policy.Lane{Secrets: []policy.Secret{{ID: "s", Value: "whsec_sealed"}}})
	found, err = store.GetLanes(t.Context(), s, []job.Queue{lane})
	require.NoError(t, err)
	require.EqualValues(t, "whsec_sealed", found[0].Settings.Secrets[0].Value)
}

func TestLaneSettings_UnreadableLimitsPauseTheirLaneAlone(t *testing.T) {
	o := options(t)
	var log testkit.Log
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := openStore(t, o)
	others := newJobs("other", 12, 0)
	for i := range others {
		others[i].Lane = "other"
	}
	put := putLane(t, s, policy.Lane{LaneConcurrency: 1})
	insert(t, s, append(newJobs("job", 2, 0), others...)...)
	shell(t, o.Path, "UPDATE settings SET limits = 'no JSON' WHERE kind = 'lane'")
	require.NoError(t, s.Close())

	requirePaused := func(logged int) {
		t.Helper()
		for range 2 {
			request := claimRequest(1)
			request.Queues = append(request.Queues,
				store.QueueClaim{Queue: others[0].Queue, Max: 1, Timeout: time.Minute})
			request.Max = 2
			got, err := s.Claim(t.Context(), store.NewToken(), request)
			require.NoError(t, err)
			require.Len(t, got.Jobs, 1)
			require.Equal(t, others[0].Queue, got.Jobs[0].Queue)
			require.True(t, got.Queues[0].Blocked)
			require.Equal(t, put.Revision, got.Queues[0].LaneDocument.Revision)
			settle(t, s, settlementOf(got.Jobs[0], policy.Verdict{Kind: policy.Delivered}))
		}
		require.GreaterOrEqual(t, strings.Count(log.String(), "limits unreadable"), logged)
	}
	s = openStore(t, o)
	requirePaused(1)
	_, err := store.PutTopic(t.Context(), s,
		store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{LaneConcurrency: 9}})
	require.NoError(t, err)
	requirePaused(1)
	insert(t, s, newJobs("new", 1, 0)...)
	found, err := store.GetLanes(t.Context(), s, []job.Queue{lane})
	require.NoError(t, err)
	require.Equal(t, 1, found[0].Settings.LaneConcurrency, "the settings themselves are readable")
	for _, e := range append(newJobs("job", 2, 0), newJobs("new", 1, 0)...) {
		_, err := s.Cancel(t.Context(), store.NewToken(), e.Ref(), store.Cancellation{})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())

	s = openStore(t, o) // its queue is not in memory
	requirePaused(2)
	revive(t, s, "job-0000", 0)
	requirePaused(3)
	putLane(t, s, policy.Lane{LaneConcurrency: 1})
	require.Len(t, claimJobs(t, s, 2), 1)
}

func TestFault_UndoesChangesOfLanesAndTopics(t *testing.T) {
	s, _ := openWithClock(t, options(t))
	insert(t, s, newJobs("job", 5, 0)...)
	again := func(what string, middle db.Statement, do func(store.Token) error) {
		t.Helper()
		token := store.NewToken()
		for _, id := range []string{middle.Text(), commitSQL} {
			times := failOnce(s, id)
			require.ErrorIs(t, do(token), store.ErrUnavailable, what)
			require.Zero(t, *times, what)
			verify(t, s)
		}
		for range 2 {
			require.NoError(t, do(token), what)
			verify(t, s)
		}
	}
	again("put a lane", table.UpdateMeta, func(token store.Token) error {
		_, err := store.PutLane(t.Context(), s, token, store.Lane{Queue: lane, Settings: policy.Lane{Paused: true}})
		if err != nil {
			require.Len(t, claimJobs(t, s, 1), 1, "settings that were not stored do not hold")
		} else {
			require.Empty(t, claimJobs(t, s, 1))
		}
		return err
	})
	again("remove a lane's settings", table.DeleteDocument, func(token store.Token) error {
		_, err := store.PutLane(t.Context(), s, token, store.Lane{Queue: lane})
		return err
	})
	require.NotEmpty(t, claimJobs(t, s, 1))
	rate := policy.Rate{Starts: 3, Per: time.Minute}
	again("permit", table.UpdateGrants, func(token store.Token) error {
		permits, err := s.Permit(t.Context(), token,
			[]store.PermitRequest{permitRequest(2, rate), permitRequest(2, rate)})
		if err == nil {
			require.Equal(t, []int{2, 1}, []int{permits[0].Starts, permits[1].Starts})
			require.Equal(t, time.Minute, permits[1].Next)
		}
		return err
	})
	again("alarm", table.InsertOutbox, func(token store.Token) error {
		changed, err := s.Alarm(t.Context(), token, store.Alarm{
			Namespace: lane.Namespace, Topic: lane.Topic, Raised: true, Outbox: []store.NewJob{newJob("child", 0)},
		})
		if err == nil {
			require.True(t, changed)
		}
		return err
	})
	require.Len(t, carry(t, s).Outbox, 1)
	jobs := claimJobs(t, s, 1)
	settle(t, s, settlementOf(jobs[0], policy.Verdict{Kind: policy.Dead}))
	again("purge", table.DeleteFirstAttempt, func(token store.Token) error {
		errs, err := s.Purge(t.Context(), token, []store.Removal{{Ref: jobs[0].Ref()}, {Ref: jobs[0].Ref()}})
		if err == nil {
			require.NoError(t, errs[0])
			require.ErrorIs(t, errs[1], store.ErrNotFound)
		}
		return err
	})
}

func TestFullDisk_RefusesChangesOfLanesAndTopicsUntilThereIsSpace(t *testing.T) {
	s := openStore(t, options(t))
	insert(t, s, newJobs("job", 2, 0)...)
	large := policy.Lane{Headers: map[string][]string{"X-Large": {string(make([]byte, 30_000))}}, Paused: true}
	outbox := newLargeJobs("child", 1, 30_000)
	rate := policy.Rate{Starts: store.CountedStarts, Per: time.Hour}
	calls := map[string]func() error{
		"PutLane": func() error {
			_, err := store.PutLane(t.Context(), s, store.NewToken(), store.Lane{Queue: lane, Settings: large})
			return err
		},
		"Alarm": func() error {
			_, err := s.Alarm(t.Context(), store.NewToken(), store.Alarm{
				Namespace: lane.Namespace, Topic: lane.Topic, Raised: true, Outbox: outbox,
			})
			return err
		},
		"Permit": func() error {
			var asks []store.PermitRequest
			for i := range 100 {
				asks = append(asks, permitRequest(1, rate))
				asks[i].Topic = newJobs("some-topic-with-a-long-name", 100, 0)[i].ID
			}
			_, err := s.Permit(t.Context(), store.NewToken(), asks)
			return err
		},
	}
	for name, call := range calls {
		limitPages(t, s, 0)
		err := call()
		require.ErrorIs(t, err, store.ErrUnavailable, name)
		require.ErrorContains(t, err, "the disk under the database is full", name)
		verify(t, s)
		limitPages(t, s, -1)
	}
	require.Len(t, claimJobs(t, s, 1), 1, "the lane is not paused")
	for name, call := range calls {
		require.NoError(t, call(), name)
	}
	require.Empty(t, claimJobs(t, s, 1))
	require.Len(t, carry(t, s).Outbox, 1)
}

func TestPermit_GrantsAndAlarmsSurviveTheProcessAndExpire(t *testing.T) {
	o := options(t)
	s, c := openWithClock(t, o)
	rate := policy.Rate{Starts: 3, Per: time.Minute}
	permit := func(s *Store, ask store.PermitRequest) store.Permit {
		permits, err := s.Permit(t.Context(), store.NewToken(), []store.PermitRequest{ask})
		require.NoError(t, err)
		return permits[0]
	}
	raise := func(s *Store, raised bool) bool {
		changed, err := s.Alarm(t.Context(), store.NewToken(), store.Alarm{
			Namespace: lane.Namespace, Topic: lane.Topic, Raised: raised,
		})
		require.NoError(t, err)
		return changed
	}
	require.Equal(t, 3, permit(s, permitRequest(3, rate)).Starts)
	require.False(t, raise(s, false))
	require.True(t, raise(s, true))
	c.pass(20 * time.Second)
	c.jump(time.Hour)
	carry(t, s)

	s, c = openCopyWithClock(t, o, c)
	require.False(t, raise(s, true))
	refused := permit(s, permitRequest(2, rate))
	require.Equal(t, store.Permit{At: clock.Time(c.ms.Load()), Next: 40 * time.Second}, refused)
	require.Equal(t, 7, permit(s, permitRequest(7, policy.Rate{})).Starts, "no rate bounds nothing")
	c.pass(time.Minute)
	_, err := s.Sweep(t.Context(), store.NewToken(), 10)
	require.NoError(t, err)
	inWriter(t, s, func() {
		for _, topic := range s.mem.Topics {
			require.Nil(t, topic.Grants)
		}
	})
	require.True(t, raise(s, false))
	topics, err := s.TopicStats(t.Context(), store.StatsFilter{Namespace: lane.Namespace, Limit: store.MaxBatch})
	require.NoError(t, err)
	require.Empty(t, topics, "a topic without jobs is not counted")
}

func TestRevive_RefusesOnlyTheUnreadableJob(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	insert(t, s, newJobs("job", 3, 0)...)
	for _, h := range claimJobs(t, s, 3) {
		settle(t, s, settlementOf(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}))
	}
	shell(t, o.Path, "UPDATE jobs SET "+unreadableSpec+" WHERE id = 'job-0001'")
	items := []store.Revival{
		{Ref: ref("job-0000"), From: job.Dead},
		{Ref: ref("job-0001")},
		{Ref: ref("job-0002"), From: job.Cancelled},
	}
	revived, err := s.Revive(t.Context(), store.NewToken(), items)
	require.NoError(t, err)
	require.NoError(t, revived[0].Err)
	require.ErrorIs(t, revived[1].Err, store.ErrUnavailable)
	require.ErrorContains(t, revived[2].Err, "the job is dead")
	errs, err := s.Purge(t.Context(), store.NewToken(),
		[]store.Removal{{Ref: ref("job-0000")}, {Ref: ref("job-0001")}, {Ref: ref("job-0002")}})
	require.NoError(t, err)
	require.ErrorContains(t, errs[0], "the job is ready")
	require.NoError(t, errs[1], "what cannot be read can be removed")
	require.NoError(t, errs[2])
}

func TestRevive_ReturnsBodiesWithinABound(t *testing.T) {
	s := openStore(t, options(t))
	const jobs, size = 14, 700 << 10
	var items []store.Revival
	for _, e := range newLargeJobs("job", jobs, size) {
		insert(t, s, e)
		_, err := s.Cancel(t.Context(), store.NewToken(), e.Ref(), store.Cancellation{})
		require.NoError(t, err)
		items = append(items, store.Revival{Ref: e.Ref(), Delay: time.Hour})
	}
	items = append([]store.Revival{{Ref: items[0].Ref, From: job.Dead}}, items...) // refused, so it takes no room
	token := store.NewToken()
	for range 2 {
		revived, err := s.Revive(t.Context(), token, items)
		require.NoError(t, err)
		require.Error(t, revived[0].Err)
		var whole []bool
		for _, r := range revived[1:] {
			require.NoError(t, r.Err)
			require.Equal(t, job.Scheduled, r.Job.State)
			require.Equal(t, lane, r.Job.Queue)
			whole = append(whole, len(r.Job.Body) == size)
		}
		const fit = reviveBodies / size
		require.Equal(t, append(slices.Repeat([]bool{true}, fit), make([]bool, jobs-fit)...), whole)
	}
	require.Len(t, get(t, s, items[jobs].Ref.ID).Body, size, "it is stored all the same")
}

func TestPutTopic_SharesNothingWithACallerThatHasLeft(t *testing.T) {
	s := openStore(t, options(t))
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		busy := make(chan struct{})
		go func() {
			_ = s.db.Submit(context.Background(),
				&op{Verb: "stall", Run: func(*unit.Unit) error { close(busy); <-ctx.Done(); return nil }})
		}()
		<-busy
		go cancel() // the writer takes the put as its caller leaves
		_, err := store.PutLane(ctx, s, store.NewToken(), store.Lane{Queue: lane, Settings: policy.Lane{Paused: true}})
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	}
}
