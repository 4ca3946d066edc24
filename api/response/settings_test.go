package response

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// decoded returns the members of an object.
func decoded(t *testing.T, write func(o *Buffer)) (members map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(written(t, write)), &members))
	return members
}

func TestTopic_ShowsDefaultsAndNoSecrets(t *testing.T) {
	set := policy.Topic{
		Secrets:    []policy.Secret{{ID: "one", Value: "whsec_hidden"}},
		ClientCert: &policy.ClientCert{Chain: "chain", Key: "hidden"},
		Headers:    map[string][]string{"Authorization": {"hidden"}},
		OnDelivered: &policy.Callback{
			URL:     "https://a.example/",
			Headers: map[string][]string{"X-Api-Key": {"hidden"}}, Retries: new(0),
		},
		OnBacklog: &policy.Backlog{
			Callback:  policy.Callback{URL: "https://b.example/", Method: "PUT"},
			OlderThan: time.Minute,
		},
		Success: policy.Success{Status: []string{"2xx"}},
	}.WithDefaults(policy.Builtin())
	got := decoded(t, func(o *Buffer) { o.Topic(&store.Topic{Name: "orders", Revision: 3}, set) })
	require.EqualValues(t, "orders", got["topic"])
	require.EqualValues(t, 3, got["revision"])
	require.Len(t, got["ladder"], 9)
	require.Equal(t, []any{"2xx"}, got["success"].(map[string]any)["status"])
	require.Equal(t,
		map[string]any{
			"url": "https://a.example/", "method": "POST", "headers": map[string]any{"X-Api-Key": Redacted},
			"retries": 0.0, "timeout": nil, "include": []any{},
		}, got["on_delivered"])
	require.Nil(t, got["on_dead"])
	require.Equal(t, map[string]any{
		"url": "https://b.example/", "method": "PUT", "headers": nil, "retries": nil, "timeout": nil,
		"include": []any{}, "older_than": "1m", "more_than": nil,
	}, got["on_backlog"])
	require.Equal(t, map[string]any{"chain": "chain", "key": Redacted}, got["client_cert"])
	require.Equal(t, map[string]any{"Authorization": Redacted}, got["headers"])
	require.NotContains(t, written(t, func(o *Buffer) { o.Topic(&store.Topic{}, set) }), "hidden")
}

func TestLane_ShowsUnsetSettings(t *testing.T) {
	queue := job.Queue{Topic: "orders", Lane: "a"}
	require.Equal(t, map[string]any{
		"topic": "orders", "lane": "a", "revision": 0.0, "url": nil, "headers": nil, "lane_concurrency": nil,
		"lane_rate": nil, "ordered": false, "managed_by": nil, "paused": false, "paused_at": nil, "paused_by": nil,
		"subscribe": nil, "subscribe_labels": nil, "pause_note": nil,
		"updated_at": nil, "updated_by": nil, "durability": nil,
	}, decoded(t, func(o *Buffer) { o.Lane(&store.Lane{Queue: queue}) }))
	set := policy.Lane{
		LaneConcurrency: 2, LaneRate: policy.Rate{Starts: 5, Per: time.Second},
		Secrets: []policy.Secret{{Value: "hidden"}},
		Paused:  true, Pause: policy.Pause{At: at, By: "mia", Note: "moves"},
	}
	require.Equal(t, map[string]any{
		"topic": "orders", "lane": "a", "revision": 7.0, "url": nil, "headers": nil, "lane_concurrency": 2.0,
		"lane_rate": units.FormatRate(set.LaneRate), "ordered": set.Ordered, "managed_by": nil, "paused": true,
		"paused_at": "2026-03-01T12:00:00.000Z", "paused_by": "mia", "pause_note": "moves",
		"subscribe": nil, "subscribe_labels": nil, "updated_at": nil, "updated_by": nil, "durability": nil,
	}, decoded(t, func(o *Buffer) { o.Lane(&store.Lane{Queue: queue, Revision: 7, Settings: set}) }))
}

func TestSecret_ShowsNoValue(t *testing.T) {
	requireExact(t, `{"id":"one","created_at":"2026-03-01T12:00:00.000Z","created_by":"anna"}`,
		written(t, func(o *Buffer) {
			o.Members(&policy.Secret{ID: "one", CreatedAt: at, CreatedBy: "anna", Value: "whsec_1"})
		}))
}

func TestLaneStats_ShowTheStateOfTheBreaker(t *testing.T) {
	for name, c := range map[string]struct {
		open    bool
		until   time.Time
		breaker string
		want    any
	}{
		"closed":                  {false, time.Time{}, "closed", nil},
		"closed, in a cooldown":   {false, at.Add(time.Second), "closed", "2026-03-01T12:00:01.000Z"},
		"closed, after one":       {false, at, "closed", nil},
		"open":                    {true, at.Add(time.Second), "open", "2026-03-01T12:00:01.000Z"},
		"open, a probe may start": {true, at, "half_open", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := decoded(t, func(o *Buffer) {
				o.LaneStats(&store.LaneStats{Lane: "a", Ready: 2, BreakerOpen: c.open, CooldownUntil: c.until}, at)
			})
			require.Equal(t, c.breaker, got["breaker"])
			require.Equal(t, c.want, got["cooldown_until"])
			require.EqualValues(t, 2, got["ready"])
		})
	}
}

func TestTopicStats_ShowNoDueTimeWithoutWaitingJobs(t *testing.T) {
	want := `{"registered":6,"scheduled":0,"ready":1,"running":0,"delivered":2,"dead":3,"cancelled":0,` +
		`"oldest_due_at":null,"breakers_open":1,"lanes_failing":0,"unfinished_bytes":0}`
	require.Equal(t, want, written(t, func(o *Buffer) {
		o.Members(&store.TopicStats{Registered: 6, Ready: 1, Delivered: 2, Dead: 3, OpenBreakers: 1})
	}))
	require.Equal(t, "2026-03-01T12:00:00.000Z",
		decoded(t, func(o *Buffer) { o.Members(&store.TopicStats{OldestDue: at}) })["oldest_due_at"])
}
