package dispatcher_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// A dry run makes all checks of the change, and writes nothing.
func TestDryRun_ChecksAndWritesNothing(t *testing.T) {
	engine := storetest.NewModel(storetest.ModelOptions{})
	d, err := dispatcher.New(
		dispatcher.Options{Store: engine, RegisterOnly: true, Logger: quiet, CheckURL: func(url string) error {
			if url == "http://10.0.0.1/" {
				return errors.New("is blocked")
			}
			return nil
		}},
	)
	require.NoError(t, err)
	lane := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "a"}
	for url, ok := range map[string]bool{"http://a.example/": true, "http://10.0.0.1/": false} {
		topic, err := d.ReplaceTopic(
			t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
			store.DryRun(func(p *policy.Topic) error {
				p.URL = url
				return nil
			}, true),
		)
		require.Equal(t, ok, err == nil, "%v", err)
		settings, err := d.ReplaceLane(t.Context(), lane, store.ChangeOptions{},
			store.DryRun(func(l *policy.Lane) error { l.URL = url; return nil }, true))
		require.Equal(t, ok, err == nil, "%v", err)
		hourly, err := d.PutSchedule(
			t.Context(), job.DefaultNamespace, "hourly", store.ChangeOptions{},
			store.DryRun(func(s *store.Schedule) error {
				s.Spec = schedule.Spec{Every: 3600e9}
				s.Job = job.Spec{URL: url}
				return nil
			}, true),
		)
		require.Equal(t, ok, err == nil, "%v", err)
		if ok {
			require.Equal(t, url, topic.Policy.URL)
			require.Equal(t, url, settings.Settings.URL)
			require.Equal(t, url, hourly.Job.URL)
			require.Zero(t, topic.Revision+settings.Revision+hourly.Revision)
		}
	}
	topics, err := d.Topics(t.Context(), job.DefaultNamespace, "", 10)
	require.NoError(t, err)
	require.Empty(t, topics)
	schedules, err := d.ListSchedules(t.Context(), job.DefaultNamespace, "", 10)
	require.NoError(t, err)
	require.Empty(t, schedules)
	_, err = d.ReplaceTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{IfRevision: 7},
		store.DryRun(func(*policy.Topic) error { return nil }, true))
	require.ErrorAs(t, err, new(*store.RevisionError))
}
