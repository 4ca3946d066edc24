package policy_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestDefaultLadder_HasNineRungsOver25Hours(t *testing.T) {
	ladder := policy.DefaultLadder()
	var names []string
	for _, rung := range ladder {
		names = append(names, rung.String())
	}
	require.Equal(t, []string{"15s", "3m0s", "10m0s", "30m0s", "30m0s", "1h0m0s", "2h0m0s", "6h0m0s", "15h0m0s"}, names)
	require.Equal(t, 25*time.Hour+13*time.Minute+15*time.Second, ladder.Span(9))
	ladder[0] = 0
	require.Equal(t, 15*time.Second, policy.DefaultLadder()[0], "a caller's change reached the built-in ladder")
}

func TestLadder_Rung(t *testing.T) {
	ladder := policy.Ladder{time.Second, time.Minute, time.Hour}
	for failed, wanted := range map[int]time.Duration{
		-1: time.Second, 0: time.Second, 1: time.Second, 2: time.Minute, 3: time.Hour, 4: time.Hour, 1000: time.Hour,
	} {
		require.Equal(t, wanted, ladder.Rung(failed), "after %d", failed)
	}
	require.Equal(t, policy.MinRung, policy.Ladder(nil).Rung(1), "no ladder is no hot loop")
}

func TestLadder_Span(t *testing.T) {
	ladder := policy.Ladder{time.Second, time.Minute}
	for retries, wanted := range map[int]time.Duration{
		0: 0, 1: time.Second, 2: 61 * time.Second, 3: 121 * time.Second, 12: 661 * time.Second,
	} {
		require.Equal(t, wanted, ladder.Span(retries), "%d retries", retries)
	}
	longest := make(policy.Ladder, policy.MaxRungs)
	for i := range longest {
		longest[i] = policy.MaxRung
	}
	require.Equal(t, 1000*policy.MaxRung, longest.Span(1000), "the longest span still fits")
	require.Equal(t, 3*policy.MinRung, policy.Ladder(nil).Span(3))
}

// Each field is resolved by itself: job, then topic, then built-in.
func TestTerms_ResolvesFieldByField(t *testing.T) {
	base := policy.Builtin()
	own := policy.Ladder{time.Second, time.Minute}
	topics := policy.Ladder{time.Hour, time.Hour, time.Hour}
	for _, c := range []struct {
		name    string
		topic   policy.Topic
		job     policy.Terms
		ladder  policy.Ladder
		retries int
		timeout time.Duration
	}{
		{"unset", policy.Topic{}, policy.Terms{}, policy.DefaultLadder(), 9, 10 * time.Second},
		{"the topic's ladder sets its " +
			"retries", policy.Topic{Ladder: topics}, policy.Terms{}, topics, 3, 10 * time.Second},
		{"the topic's retries stay with its " +
			"ladder", policy.Topic{Ladder: topics, Retries: new(7)}, policy.Terms{}, topics, 7, 10 * time.Second},
		{"the topic's retries over the built-in " +
			"ladder", policy.Topic{Retries: new(2)}, policy.Terms{}, policy.DefaultLadder(), 2, 10 * time.Second},
		{"the job's ladder sets its " +
			"retries", policy.Topic{Retries: new(7)}, policy.Terms{Ladder: own}, own, 2, 10 * time.Second},
		{"the job's retries stay with its " +
			"ladder", policy.Topic{}, policy.Terms{Ladder: own, Retries: new(5)}, own, 5, 10 * time.Second},
		{"the job's retries over the topic's " +
			"ladder", policy.Topic{Ladder: topics}, policy.Terms{Retries: new(0)}, topics, 0, 10 * time.Second},
		{"the topic's " +
			"timeout", policy.Topic{Timeout: time.Second}, policy.Terms{}, policy.DefaultLadder(), 9, time.Second},
		{
			"the job's timeout",
			policy.Topic{Timeout: time.Second},
			policy.Terms{Timeout: time.Minute},
			policy.DefaultLadder(), 9, time.Minute,
		},
	} {
		got := c.topic.WithDefaults(base).Terms(c.job)
		require.Equal(t, c.ladder, got.Ladder, c.name)
		require.Equal(t, c.retries, *got.Retries, c.name)
		require.Equal(t, c.timeout, got.Timeout, c.name)
		require.Equal(t, c.ladder.Span(c.retries)+24*time.Hour, got.MaxAge, c.name)
		require.InDelta(t, 0.1, got.Jitter, 0, c.name)
		require.Equal(t, []string{"410"}, got.GiveUpOn, c.name)
	}
}

func TestTerms_TakesTheRestFromTheTopic(t *testing.T) {
	topic := policy.Topic{MaxAge: time.Hour, Jitter: new(0.0), GiveUpOn: []string{}}.WithDefaults(policy.Builtin())
	got := topic.Terms(policy.Terms{Jitter: 0.9, MaxAge: time.Minute, GiveUpOn: []string{"4xx"}})
	require.Equal(t, time.Hour, got.MaxAge)
	require.Zero(t, got.Jitter)
	require.Empty(t, got.GiveUpOn, "an empty list is set")

	topic.Success = policy.Success{Status: []string{"202"}}
	require.Equal(t, topic.Success, topic.Terms(policy.Terms{Success: policy.Success{Status: []string{"5xx"}}}).Success)
}

// The job's callbacks override the topic's.
func TestTerms_ResolvesCallbacks(t *testing.T) {
	own, topics := &policy.Callback{URL: "http://job.example/"}, &policy.Callback{URL: "http://topic.example/"}
	topic := policy.Topic{OnDead: topics}.WithDefaults(policy.Builtin())
	got := topic.Terms(policy.Terms{})
	require.Equal(t, topics, got.OnDead)
	require.Nil(t, got.OnDelivered)
	got = topic.Terms(policy.Terms{OnDead: own, OnDelivered: own})
	require.Equal(t, own, got.OnDead)
	require.Equal(t, own, got.OnDelivered)
}

func TestWithDefaults_FillsUnsetFields(t *testing.T) {
	base := policy.Builtin()
	require.Equal(t, base, policy.Topic{}.WithDefaults(base))

	full := policy.Topic{
		Ladder: policy.Ladder{time.Second}, Retries: new(0), Jitter: new(0.0), Timeout: time.Second,
		MaxAge: time.Minute, Workers: 1, LaneConcurrency: 2, Ordered: true, Deliver: policy.DeliverPull,
		URL: "http://topic.example/", Headers: map[string][]string{}, GiveUpOn: []string{},
		Rate: policy.Rate{Starts: 1, Per: time.Second}, LaneRate: policy.Rate{Starts: 2, Per: time.Minute},
		Success:       policy.Success{BodyEquals: "success"},
		Breaker:       policy.Breaker{Failures: new(0), Open: time.Minute},
		OnDelivered:   &policy.Callback{URL: "http://owner.example/delivered"},
		OnDead:        &policy.Callback{URL: "http://owner.example/dead"},
		OnBacklog:     &policy.Backlog{OlderThan: time.Minute},
		Secrets:       []policy.Secret{{ID: "s1", Value: "whsec_x"}},
		ClientCert:    &policy.ClientCert{Chain: "chain", Key: "key"},
		KeepDelivered: policy.Retention{For: new(time.Duration(0)), Max: new(int64(0)), MaxBytes: new(int64(0))},
		KeepDead:      policy.Retention{For: new(time.Minute), Max: new(int64(1)), MaxBytes: new(int64(2))},
		IDWindow:      new(time.Duration(0)), ManagedBy: "shop", Paused: true, Pause: policy.Pause{Note: "why"},
	}
	for field, value := range reflect.ValueOf(full).Fields() {
		require.False(t, value.IsZero(), "%s is set", field.Name)
	}
	require.Equal(t, full, full.WithDefaults(base), "set fields are kept, also zeros")
	require.Equal(t, full, policy.Topic{ManagedBy: "shop", Paused: true, Pause: full.Pause}.WithDefaults(full))
	require.Empty(t, policy.Topic{Secrets: []policy.Secret{}}.WithDefaults(full).Secrets, "an empty list is set")
	require.Equal(t, policy.Breaker{Failures: new(0), Open: time.Hour},
		policy.Topic{Breaker: policy.Breaker{Open: time.Hour}}.WithDefaults(full).Breaker,
		"the breaker is filled field by field")
	require.Equal(t, full.Rate,
		policy.Topic{Rate: policy.Rate{Starts: 5}}.WithDefaults(full).Rate, "half a rate is none")
	require.Equal(t, policy.Retention{For: new(time.Hour), Max: new(int64(1)), MaxBytes: new(int64(2))},
		policy.Topic{KeepDead: policy.Retention{For: new(time.Hour)}}.WithDefaults(full).KeepDead,
		"bounds are filled one by one")
}

// Paused is not inherited.
func TestWithDefaults_DoesNotInheritPaused(t *testing.T) {
	base := policy.Builtin()
	base.Paused = true
	require.False(t, policy.Topic{}.WithDefaults(base).Paused)
}

func TestBuiltin_IsComplete(t *testing.T) {
	got := policy.Builtin()
	require.Equal(t, 9, *got.Terms(policy.Terms{}).Retries)
	require.NotNil(t, got.IDWindow)
	for _, keep := range []policy.Retention{got.KeepDelivered, got.KeepDead} {
		require.NotNil(t, keep.For)
		require.NotNil(t, keep.Max)
		require.NotNil(t, keep.MaxBytes)
	}
	require.Positive(t, got.Timeout)
	require.Positive(t, got.Workers)
	require.Positive(t, got.LaneConcurrency)
	require.False(t, got.Paused)
	require.False(t, got.Rate.Limited() || got.LaneRate.Limited(), "nothing bounds how often attempts start")
	require.True(t, got.Success.IsZero(), "2xx")
	require.Equal(t, policy.Breaker{Failures: new(10), Open: 30 * time.Second}, got.Breaker)
	require.Nil(t, got.OnDelivered)
	require.Nil(t, got.OnDead)
	require.Nil(t, got.OnBacklog)
	require.Empty(t, got.Secrets)
	require.Nil(t, got.ClientCert)
	*got.Jitter = 1
	require.InDelta(t, 0.1, *policy.Builtin().Jitter, 0, "a caller's change reached the built-in policy")
}

// A stored policy round-trips: nil and empty, nil and zero stay distinct where they differ.
func TestTopic_RoundTripsJSON(t *testing.T) {
	for name, topic := range map[string]policy.Topic{
		"unset":           {},
		"built-in":        policy.Builtin(),
		"nothing to give": {GiveUpOn: []string{}, Retries: new(0), Jitter: new(0.0), IDWindow: new(time.Duration(0))},
		"keeps nothing":   {KeepDead: policy.Retention{Max: new(int64(0))}},
		"success and " +
			"rate": {Success: policy.Success{BodyContains: "ok"}, Rate: policy.Rate{Starts: 5, Per: 90 * time.Second}},
		"never opens": {Breaker: policy.Breaker{Failures: new(0)}},
		"callbacks": {
			OnDelivered: &policy.Callback{
				URL: "http://owner.example/", Method: "PUT", Retries: new(0), Include: []string{policy.IncludeBody},
			},
			OnDead: &policy.Callback{
				URL: "http://owner.example/", Headers: map[string][]string{"X-A": {"1"}}, Timeout: time.Second,
			},
			OnBacklog: &policy.Backlog{
				Callback: policy.Callback{URL: "http://owner.example/"}, OlderThan: time.Minute, MoreThan: 7,
			},
		},
		"secrets": {
			Secrets: []policy.Secret{{ID: "s1", CreatedAt: time.UnixMilli(1_700_000_000_000).
				UTC(), Value: "whsec_topsecret"}},
			ClientCert: &policy.ClientCert{Chain: "chain", Key: "topsecret"},
		},
		"headers": {Headers: map[string][]string{"X-A": {"1", "2"}}, Paused: true, URL: "http://topic.example/"},
	} {
		text, err := json.Marshal(topic)
		require.NoError(t, err)
		var got policy.Topic
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, topic, got, "%s: %s", name, text)
	}
}
