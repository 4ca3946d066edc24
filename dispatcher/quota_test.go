package dispatcher_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// jobsIn returns n registrations in a namespace, with ids.
func jobsIn(namespace, prefix string, n int) []job.New {
	jobs := make([]job.New, n)
	for i := range jobs {
		jobs[i] = job.New{Spec: job.Spec{
			ID: fmt.Sprint(prefix, i), Queue: job.Queue{Namespace: namespace}, URL: "https://a.example/",
		}, Delay: time.Hour}
	}
	return jobs
}

func perMinute(starts int) policy.Rate { return policy.Rate{Starts: starts, Per: time.Minute} }

// refused counts the results that a quota refused, and returns one of their errors.
func refused(t *testing.T, results []store.RoutedResult) (n int, err *job.QuotaError) {
	t.Helper()
	for _, r := range results {
		if e, ok := errors.AsType[*job.QuotaError](r.Err); ok {
			n, err = n+1, e
		} else {
			require.NoError(t, r.Err)
		}
	}
	return n, err
}

func TestQuota_BoundsUnfinishedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		other := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: 10}}, 0)
		require.NoError(t, err)
		n, quota := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 12)))
		require.Equal(t, 2, n)
		require.Equal(t, "pending", quota.Quota)
		require.Positive(t, quota.RetryAfter)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "b", 1)))
		require.Equal(t, 1, n)
		n, _ = refused(t, other.Register(t.Context(), jobsIn("shop", "c", 1)))
		require.Equal(t, 1, n, "another process counts them, too")
		n, _ = refused(t, d.Register(t.Context(), jobsIn("default", "d", 20)))
		require.Zero(t, n, "another namespace has its own quota")
		totals, err := d.Totals(t.Context(), "shop")
		require.NoError(t, err)
		require.EqualValues(t, 10, totals.Registered, "nothing was stored beyond the quota")

		_, err = d.Cancel(t.Context(), job.Ref{Namespace: "shop", ID: "a0"}, store.Cancellation{})
		require.NoError(t, err)
		time.Sleep(time.Second + time.Millisecond)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "e", 2)))
		require.Equal(t, 1, n)

		_, err = d.PutNamespace(t.Context(), job.Namespace{Name: "shop"}, 0)
		require.NoError(t, err)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "f", 20)))
		require.Zero(t, n)
	})
}

func TestQuota_BoundsTheRateOverAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		other := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		_, err := d.PutNamespace(t.Context(),
			job.Namespace{Name: "shop", Quota: job.Quota{Rate: policy.Rate{Starts: 5, Per: time.Second}}}, 0)
		require.NoError(t, err)
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 3)))
		require.Zero(t, n)
		n, quota := refused(t, other.Register(t.Context(), jobsIn("shop", "b", 3)))
		require.Equal(t, 1, n)
		require.Equal(t, "rate", quota.Quota)
		require.Equal(t, "5/s", quota.Limit)
		require.Positive(t, quota.RetryAfter)
		require.LessOrEqual(t, quota.RetryAfter, 1100*time.Millisecond)
		time.Sleep(quota.RetryAfter)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "c", 5)))
		require.Zero(t, n)
		topics, err := d.Topics(t.Context(), "shop", "", 10)
		require.NoError(t, err)
		require.Len(t, topics, 1, "the count of registrations is no topic")
	})
}

func TestQuota_BoundsWhatIsKept(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		const size, kept, pending = 10_000, 100_000, 30_000
		_, err := d.PutNamespace(t.Context(),
			job.Namespace{Name: "shop", Quota: job.Quota{Bytes: pending, KeptBytes: kept}}, 0)
		require.NoError(t, err)
		var quota *job.QuotaError
		for i := 0; quota == nil; i++ {
			require.Less(t, i, 2*kept/size)
			jobs := jobsIn("shop", fmt.Sprint("a", i, "-"), 2)
			for k := range jobs {
				jobs[k].Body, jobs[k].BodyKind = make([]byte, size), job.BodyText
			}
			n, refused := refused(t, d.Register(t.Context(), jobs))
			if quota = refused; quota != nil {
				require.Equal(t, 2, n)
				break
			}
			for _, j := range jobs {
				_, err := d.Cancel(t.Context(), job.Ref{Namespace: "shop", ID: j.ID}, store.Cancellation{})
				require.NoError(t, err)
			}
			time.Sleep(3 * time.Second) // until the next count
		}
		require.Equal(t, "kept_bytes", quota.Quota)
		require.Contains(t, quota.Error(), "purge ended jobs")
		usage, err := d.NamespaceUsage(t.Context(), "shop")
		require.NoError(t, err)
		require.GreaterOrEqual(t, usage.KeptBytes, int64(kept))
		require.Less(t, usage.KeptBytes, int64(kept+pending))
		require.Zero(t, usage.Pending)

		for i := range 4 {
			ref := job.Ref{Namespace: "shop", ID: fmt.Sprint("a", i, "-0")}
			purged, err := s.Shards()[0].Purge(t.Context(), store.NewToken(), []store.Removal{{Ref: ref}})
			require.NoError(t, err)
			require.NoError(t, purged[0])
		}
		time.Sleep(3 * time.Second)
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "b", 1)))
		require.Zero(t, n, "what was removed makes room")
		require.NoError(t, d.stop())
	})
}

func TestQuota_BoundsSettingsOverAllProcesses(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		one := start(t, dispatcher.Options{Store: shared{s}, RegisterOnly: true})
		other := start(t, dispatcher.Options{Store: shared{s}, RegisterOnly: true})
		put := func(quota job.Quota) {
			_, err := one.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: quota}, 0)
			require.NoError(t, err)
			time.Sleep(5 * time.Second)
		}
		topic := func(d *fixture, name string, change func(*policy.Topic)) error {
			_, err := d.ChangeTopic(t.Context(), "shop", name, store.ChangeOptions{},
				func(p *policy.Topic) error { change(p); return nil })
			return err
		}
		lane := func(d *fixture, name string) error {
			q := job.Queue{Namespace: "shop", Topic: "a", Lane: name}
			_, err := d.ChangeLane(t.Context(), q, store.ChangeOptions{},
				func(l *policy.Lane) error { l.LaneConcurrency = 7; return nil })
			return err
		}
		schedule := func(d *fixture, name string) error {
			_, err := d.PutSchedule(t.Context(), "shop", name, store.ChangeOptions{},
				every(time.Hour, job.Spec{URL: "https://a.example/"}))
			return err
		}
		url := func(p *policy.Topic) { p.URL = "https://shop.example/" }
		refused := func(err error, quota, used string) {
			t.Helper()
			e, ok := errors.AsType[*job.QuotaError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, []string{quota, used}, []string{e.Quota, e.Used})
			require.NotEmpty(t, e.Remedy)
		}
		put(job.Quota{Settings: 3})
		require.NoError(t, topic(one, "a", url))
		require.NoError(t, lane(one, "x"))
		require.NoError(t, schedule(one, "daily"))
		for _, d := range []*fixture{one, other} {
			refused(topic(d, "b", url), "settings", "3")
			refused(lane(d, "y"), "settings", "3")
			refused(schedule(d, "weekly"), "settings", "3")
			require.NoError(t, topic(d, "a", func(p *policy.Topic) { p.Workers++ }), "a change adds none")
			require.NoError(t, schedule(d, "daily"))
			require.NoError(t, lane(d, "x"))
		}
		usage, err := other.NamespaceUsage(t.Context(), "shop")
		require.NoError(t, err)
		require.EqualValues(t, 3, usage.Settings)
		require.NoError(t, one.DeleteSchedule(t.Context(), "shop", "daily", 0, nil))
		time.Sleep(3 * time.Second)
		require.NoError(t, topic(other, "b", url), "what was removed makes room")
		require.NoError(t, topic(one, "c", func(p *policy.Topic) { p.Paused = true }), "a pause is not refused")

		usage, err = other.NamespaceUsage(t.Context(), "shop")
		require.NoError(t, err)
		put(job.Quota{SettingsBytes: usage.SettingsBytes + 100})
		large := func(p *policy.Topic) { p.Headers = map[string][]string{"X-Large": {strings.Repeat("x", 200)}} }
		e, ok := errors.AsType[*job.QuotaError](topic(other, "a", large))
		require.True(t, ok)
		require.Equal(t, "settings_bytes", e.Quota)
		require.NoError(t, topic(other, "a", func(p *policy.Topic) { p.Paused = true }))
		require.NoError(t, topic(other, "a", func(p *policy.Topic) { p.URL = "" }))
		require.NoError(t, one.stop())
		require.NoError(t, other.stop())
		require.NoError(t, s.Close())
	})
}
