package dispatcher_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// queueOf returns a queue of the default namespace.
func queueOf(topic, lane string) job.Queue {
	return job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane}
}

// deleting requests the deletion of the topic orders.
func deleting(purge bool) store.TopicDeletion {
	return store.TopicDeletion{Namespace: job.DefaultNamespace, Name: "orders", Purge: purge, Actor: "mia"}
}

// configure gives the topic orders a policy, a secret and two lanes with settings, one of them with a secret.
func configure(t *testing.T, r *fixture) {
	t.Helper()
	change := func(p *policy.Topic) error { p.Workers, p.Paused, p.URL = 3, true, "https://shop.example/"; return nil }
	_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{}, change)
	require.NoError(t, err)
	_, err = r.AddSecret(t.Context(), queueOf("orders", ""), sign.NewSecret(), store.ChangeOptions{})
	require.NoError(t, err)
	_, err = r.AddSecret(t.Context(), queueOf("orders", "a"), sign.NewSecret(), store.ChangeOptions{})
	require.NoError(t, err)
	_, err = r.ChangeLane(t.Context(), queueOf("orders", "b"), store.ChangeOptions{},
		func(l *policy.Lane) error { l.Paused = true; return nil })
	require.NoError(t, err)
}

// requireConfigured requires what configure has put, or that nothing is left of it.
func requireConfigured(t *testing.T, r *fixture, there bool) {
	t.Helper()
	lanes, err := r.ListLanes(t.Context(), job.DefaultNamespace, "orders", "", "", 10)
	require.NoError(t, err)
	topic, err := r.Topic(t.Context(), job.DefaultNamespace, "orders")
	if there {
		require.NoError(t, err)
		require.Len(t, lanes, 2)
		require.Len(t, topic.Policy.Secrets, 1)
		return
	}
	require.Empty(t, lanes)
	if err != nil {
		require.ErrorIs(t, err, store.ErrNotFound)
	}
	require.Zero(t, topic.Revision)
	require.Equal(t, policy.Topic{}, topic.Policy)
}

func TestDeleteTopic_RemovesPolicySecretsAndLanesOfAnUnusedTopic(t *testing.T) {
	r := start(t, dispatcher.Options{RegisterOnly: true})
	_, err := r.DeleteTopic(t.Context(), deleting(false))
	require.ErrorIs(t, err, store.ErrNotFound)
	configure(t, r)
	_, err = r.ChangeTopic(t.Context(), job.DefaultNamespace, "other", store.ChangeOptions{},
		func(p *policy.Topic) error { p.Workers = 5; return nil })
	require.NoError(t, err)
	wrong := deleting(true)
	wrong.IfRevision = 1 << 60
	_, err = r.DeleteTopic(t.Context(), wrong)
	require.ErrorAs(t, err, new(*store.RevisionError))
	requireConfigured(t, r, true)

	done, err := r.DeleteTopic(t.Context(), deleting(false))
	require.NoError(t, err)
	require.Zero(t, done)
	requireConfigured(t, r, false)
	_, err = r.DeleteTopic(t.Context(), deleting(false))
	require.ErrorIs(t, err, store.ErrNotFound)
	other, err := r.Topic(t.Context(), job.DefaultNamespace, "other")
	require.NoError(t, err)
	require.Equal(t, 5, other.Policy.Workers)
}

func TestDeleteTopic_RequiresAPurgeWhileItHasUnfinishedJobs(t *testing.T) {
	r := start(t, dispatcher.Options{RegisterOnly: true})
	configure(t, r)
	const jobs = 600 // more than a page
	var mine []job.Ref
	for i := range jobs {
		n := job.New{Spec: job.Spec{ID: fmt.Sprint("mine-", i), Queue: queueOf("orders", fmt.Sprint("lane-", i%3))}}
		if i%2 == 0 {
			n.Delay = time.Hour
		}
		mine = append(mine, r.register(t, n).Ref())
	}
	theirs := r.register(t,
		job.New{Spec: job.Spec{ID: "theirs", Queue: queueOf("orders2", "lane-1")}, Delay: time.Hour})

	_, err := r.DeleteTopic(t.Context(), deleting(false))
	var inUse *store.TopicInUseError
	require.ErrorAs(t, err, &inUse)
	require.Equal(t, store.TopicInUseError{Unfinished: jobs}, *inUse)
	requireConfigured(t, r, true)
	require.Equal(t, job.Scheduled, r.get(t, mine[0]).State)

	done, err := r.DeleteTopic(t.Context(), deleting(true))
	require.NoError(t, err)
	require.EqualValues(t, jobs, done.Cancelled)
	requireConfigured(t, r, false)
	require.Equal(t, job.Cancelled, r.get(t, mine[0]).State)
	require.Equal(t, job.Cancelled, r.get(t, mine[1]).State)
	require.Equal(t, job.Scheduled, r.get(t, theirs.Ref()).State, "of another topic")
	stats, err := r.Stats(t.Context(), job.DefaultNamespace, "orders")
	require.NoError(t, err)
	require.EqualValues(t, jobs, stats[0].Cancelled)

	_, err = r.DeleteTopic(t.Context(), deleting(true))
	require.NoError(t, err, "a repeated request is answered alike")
	later := r.register(t, job.New{Spec: job.Spec{ID: "later", Queue: queueOf("orders", "b")}})
	require.Equal(t, job.Ready, r.get(t, later.Ref()).State)
}

// busyTopic is a store in which each cancellation is followed by a registration.
type busyTopic struct {
	store.Store
	n atomic.Int64
}

func (s *busyTopic) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return busyTopicShard{next, s} })
}

type busyTopicShard struct {
	store.Shard
	of *busyTopic
}

func (s busyTopicShard) Cancel(
	ctx context.Context, token store.Token, ref job.Ref, c store.Cancellation,
) (job.Job, error) {
	id := fmt.Sprint("new-", s.of.n.Add(1))
	next := store.NewJob{New: job.New{Spec: job.Spec{ID: id, Queue: queueOf("orders", "a")}, Delay: time.Hour}}
	if _, err := s.Insert(ctx, store.NewToken(), []store.NewJob{next}); err != nil {
		return job.Job{}, err
	}
	return s.Shard.Cancel(ctx, token, ref, c)
}

func TestDeleteTopic_EndsWhileJobsKeepComing(t *testing.T) {
	s := &busyTopic{Store: model()}
	r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
	r.register(t, inAnHour("https://a.example/", nil))
	done, err := r.DeleteTopic(t.Context(), deleting(true))
	var busy *store.TopicInUseError
	require.ErrorAs(t, err, &busy)
	require.EqualValues(t, 1, busy.Unfinished)
	require.EqualValues(t, 10, done.Cancelled)
}

func TestDeleteTopic_PurgesDeadLettersAndWaitsForRunningJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan int)
		r := start(t, dispatcher.Options{
			Deliverer: &receiver{answer: func(ctx context.Context, request job.Request) policy.Result {
				if request.Queue.Topic != "orders" || request.Ref.ID == "dead" {
					return policy.Result{Status: 410}
				}
				return policy.Result{Status: <-answer}
			}},
		})
		dead := r.register(t, job.New{Spec: job.Spec{ID: "dead", Queue: queueOf("orders", "a")}})
		others := r.register(t, job.New{Spec: job.Spec{ID: "others", Queue: queueOf("other", "a")}})
		running := r.register(t, job.New{Spec: job.Spec{ID: "running", Queue: queueOf("orders", "b")}})
		synctest.Wait()
		require.Equal(t, job.Dead, r.get(t, dead.Ref()).State)
		require.Equal(t, job.Running, r.get(t, running.Ref()).State)

		done, err := r.DeleteTopic(t.Context(), deleting(true))
		var inUse *store.TopicInUseError
		require.ErrorAs(t, err, &inUse)
		require.Equal(t, store.TopicInUseError{Unfinished: 1, Running: 1}, *inUse)
		require.Equal(t, store.TopicDeleted{Purged: 1}, done)
		require.True(t, r.get(t, running.Ref()).CancelRequested)
		_, err = r.Get(t.Context(), dead.Ref())
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Equal(t, job.Dead, r.get(t, others.Ref()).State, "of another topic")

		answer <- 503
		synctest.Wait()
		require.Equal(t, job.Cancelled, r.get(t, running.Ref()).State)
		_, err = r.DeleteTopic(t.Context(), deleting(true))
		require.NoError(t, err)
	})
}

// slowCancels is a store whose cancellations take a second of a bubble's time.
type slowCancels struct{ store.Store }

func (s slowCancels) Shards() []store.Shard {
	shards := make([]store.Shard, len(s.Store.Shards()))
	for i, shard := range s.Store.Shards() {
		shards[i] = slowShard{shard}
	}
	return shards
}

type slowShard struct{ store.Shard }

func (s slowShard) Cancel(
	ctx context.Context, token store.Token, ref job.Ref, cancellation store.Cancellation,
) (job.Job, error) {
	time.Sleep(time.Second)
	return s.Shard.Cancel(ctx, token, ref, cancellation)
}

func TestDeleteTopic_EndsBeforeItsDeadlineAndContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := storetest.NewModel(storetest.ModelOptions{})
		r := start(t, dispatcher.Options{Store: slowCancels{engine}, RegisterOnly: true})
		configure(t, r)
		const jobs = 1000 // 32 seconds of cancellations
		for i := range jobs {
			r.register(t,
				job.New{Spec: job.Spec{ID: fmt.Sprint("job-", i), Queue: queueOf("orders", "a")}, Delay: time.Hour})
		}
		var cancelled int64
		for calls := 1; ; calls++ {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			done, err := r.DeleteTopic(ctx, deleting(true))
			require.NoError(t, ctx.Err(), "there is time to answer")
			cancel()
			cancelled += done.Cancelled
			if err == nil {
				require.Equal(t, 2, calls)
				break
			}
			var inUse *store.TopicInUseError
			require.ErrorAs(t, err, &inUse)
			require.Equal(t, jobs-cancelled, inUse.Unfinished)
			requireConfigured(t, r, true)
		}
		require.EqualValues(t, jobs, cancelled)
		requireConfigured(t, r, false)
	})
}
