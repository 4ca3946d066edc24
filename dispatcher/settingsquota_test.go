package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// startWithSettings starts a process on a store with a namespace shop that has a quota of settings.
func startWithSettings(t *testing.T, s store.Store, settings int64) *fixture {
	t.Helper()
	d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
	_, err := d.PutNamespace(t.Context(),
		job.Namespace{Name: "shop", Quota: job.Quota{Settings: settings}}, 0)
	require.NoError(t, err)
	return d
}

func putURL(t *testing.T, d *fixture, topic string) error {
	t.Helper()
	_, err := d.ChangeTopic(t.Context(), "shop", topic, store.ChangeOptions{},
		func(p *policy.Topic) error { p.URL = "https://shop.example/"; return nil })
	return err
}

func putHourly(t *testing.T, d *fixture, schedule string, dry bool) error {
	t.Helper()
	_, err := d.PutSchedule(t.Context(), "shop", schedule, store.ChangeOptions{},
		store.DryRun(every(time.Hour, job.Spec{URL: "https://a.example/"}), dry))
	return err
}

func requireFull(t *testing.T, err error, used string) {
	t.Helper()
	e, ok := errors.AsType[*job.QuotaError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []string{"settings", used}, []string{e.Quota, e.Used})
}

func settingsOf(t *testing.T, d *fixture) int64 {
	t.Helper()
	time.Sleep(2 * time.Second)
	usage, err := d.NamespaceUsage(t.Context(), "shop")
	require.NoError(t, err)
	return usage.Settings
}

func TestSettingsQuota_IsNotUsedByADryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWithSettings(t, model(), 1)
		require.NoError(t, putHourly(t, d, "daily", true))
		require.NoError(t, putHourly(t, d, "daily", false))
		requireFull(t, putHourly(t, d, "weekly", true), "1")
	})
}

func TestSettingsQuota_IsGivenBackOnceAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		d := startWithSettings(t, s, 2)
		other := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		failed := errors.New("it is there")
		change := every(time.Hour, job.Spec{URL: "https://a.example/"})
		_, err := d.PutSchedule(t.Context(), "shop", "a", store.ChangeOptions{}, func(s *store.Schedule) error {
			if s.Revision != 0 {
				return failed
			}
			require.NoError(t, putHourly(t, other, "a", false))
			return change(s)
		})
		require.ErrorIs(t, err, failed)
		require.NoError(t, putHourly(t, d, "b", false))
		time.Sleep(2 * time.Second)
		requireFull(t, putHourly(t, d, "c", false), "2")
	})
}

func TestSettingsQuota_RefusesNoPause(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := startWithSettings(t, s, 1)
		require.NoError(t, putURL(t, d, "a"))
		q := job.Queue{Namespace: "shop", Topic: "b", Lane: "x"}
		registered := d.Register(t.Context(), []job.New{{Spec: job.Spec{Queue: q, URL: "https://a.example/"}}})
		require.NoError(t, registered[0].Err)
		pause := func(l *policy.Lane) error { l.Paused = true; return nil }
		_, err := d.ChangeLane(t.Context(), q, store.ChangeOptions{}, pause)
		require.NoError(t, err, "of a lane whose topic has no policy")
		_, err = d.ChangeTopic(t.Context(), "shop", "c", store.ChangeOptions{},
			func(p *policy.Topic) error { p.Paused = true; return nil })
		require.NoError(t, err)
		require.EqualValues(t, 1, settingsOf(t, d), "pauses are not counted")

		requireFull(t, putURL(t, d, "b"), "1")
		requireFull(t, putURL(t, d, "c"), "1")
		_, err = d.ChangeLane(t.Context(), q, store.ChangeOptions{},
			func(l *policy.Lane) error { l.LaneConcurrency = 7; return nil })
		requireFull(t, err, "1")
		require.NoError(t, d.stop())
	})
}

func TestSettingsQuota_HasRoomAsSoonAsSettingsAreRemoved(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := startWithSettings(t, s, 2)
		require.NoError(t, putURL(t, d, "a"))
		require.NoError(t, putHourly(t, d, "daily", false))
		requireFull(t, putURL(t, d, "b"), "2")
		time.Sleep(time.Millisecond)
		require.NoError(t, d.DeleteSchedule(t.Context(), "shop", "daily", 0, nil))
		require.NoError(t, putURL(t, d, "b"))
		require.NoError(t, d.stop())
	})
}

// slowLanes delays and counts the lists of lanes.
type slowLanes struct {
	store.Store
	takes time.Duration
	lists atomic.Int64
}

func (s *slowLanes) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return slowLanesShard{next, s} })
}

type slowLanesShard struct {
	store.Shard
	*slowLanes
}

func (s slowLanesShard) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) ([]store.Document, int64, error) {
	s.lists.Add(1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	return s.Shard.ListDocuments(ctx, after, limit)
}

func TestSettingsQuota_CountsManyTopicsOnManyShardsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards, topics = 16, 100
		s := &slowLanes{Store: sharded(shards), takes: 10 * time.Millisecond} // 16 s one after the other
		d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		for i := range topics {
			require.NoError(t, putURL(t, d, fmt.Sprint("t", i)))
		}
		_, err := d.PutNamespace(t.Context(),
			job.Namespace{Name: "shop", Quota: job.Quota{Settings: topics}}, 0)
		require.NoError(t, err)
		requireFull(t, putURL(t, d, "more"), fmt.Sprint(topics))
		for range 3 {
			usage, err := d.NamespaceUsage(t.Context(), "shop")
			require.NoError(t, err)
			require.EqualValues(t, topics, usage.Settings)
		}
		require.EqualValues(t, shards*topics, s.lists.Load())
	})
}
