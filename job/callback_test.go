package job

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

// good returns a valid callback with every field at its limit.
func good() *policy.Callback {
	return &policy.Callback{
		URL: "https://a.example/callback", Method: "PUT", Headers: map[string][]string{"authorization": {"Bearer x"}},
		Retries: new(MaxRetries),
		Timeout: MaxTimeout, Include: []string{policy.IncludeBody, policy.IncludeHeaders, policy.IncludeQuery},
	}
}

func TestValidate_AcceptsValidCallbacks(t *testing.T) {
	n := New{Spec: Spec{Terms: policy.Terms{
		OnDelivered: good(),
		OnDead:      &policy.Callback{URL: "http://a.example", Retries: new(0)},
	}}}
	require.Empty(t, Validate(n, now))
	require.Empty(t, ValidateTopic(policy.Topic{
		OnDelivered: good(), OnDead: good(),
		OnBacklog: &policy.Backlog{Callback: *good(), OlderThan: time.Second, MoreThan: 1},
	}))
	for _, b := range []policy.Backlog{{OlderThan: MaxAhead}, {MoreThan: 1 << 60}} {
		b.Callback = *good()
		require.Empty(t, ValidateTopic(policy.Topic{OnBacklog: &b}))
	}
}

func TestValidate_NamesInvalidFieldsOfACallback(t *testing.T) {
	bad := &policy.Callback{
		URL: "ftp://a.example", Method: "HEAD", Retries: new(-1), Timeout: MinTimeout - 1,
		Include: []string{"body", "cookies", "", "query"}, Headers: map[string][]string{
			"Host": {"x"}, "X A": {"x"},
			"webhook-id": {"x"}, "CONTENT-type": {"a/b"}, "Content_Type": {"a/b"}, "X-A": nil,
		},
	}
	var fields []string
	for _, at := range []string{"/on_delivered", "/on_dead", "/on_backlog"} {
		for _, name := range []string{
			"url", "method", "retries", "timeout", "include", "headers/Host", "headers/X A", "headers/webhook-id",
			"headers/CONTENT-type", "headers/Content_Type", "headers/X-A",
		} {
			fields = append(fields, at+"/"+name)
		}
	}
	faults := ValidateTopic(policy.Topic{
		OnDelivered: bad, OnDead: bad,
		OnBacklog: &policy.Backlog{Callback: *bad, OlderThan: time.Second - 1, MoreThan: -1},
	})
	require.ElementsMatch(t, append(fields, "/on_backlog/older_than", "/on_backlog/more_than"), fieldsOf(faults))
	for _, f := range faults {
		require.NotEmpty(t, f.Detail, f.Field)
	}

	onJob := Validate(New{Spec: Spec{Terms: policy.Terms{OnDelivered: bad, OnDead: bad}}}, now)
	require.ElementsMatch(t,
		slices.DeleteFunc(fields, func(f string) bool { return strings.HasPrefix(f, "/on_backlog") }), fieldsOf(onJob))

	bad.Include = []string{"body", "cookies"}
	require.Contains(t,
		fieldsOf(Validate(New{Spec: Spec{Terms: policy.Terms{OnDead: bad}}}, now)), "/on_dead/include/1")
}

func TestValidateTopic_RequiresACallbacksURLAndABacklogsLimit(t *testing.T) {
	require.Equal(t, []string{"/on_dead/url"},
		fieldsOf(Validate(New{Spec: Spec{Terms: policy.Terms{OnDead: &policy.Callback{}}}}, now)))
	require.Equal(t, []string{"/on_backlog/url", "/on_backlog"},
		fieldsOf(ValidateTopic(policy.Topic{OnBacklog: &policy.Backlog{}})))
	require.Equal(t, []string{"/on_backlog"},
		fieldsOf(ValidateTopic(policy.Topic{OnBacklog: &policy.Backlog{Callback: *good()}})))
}

func TestValidateTopic_BoundsSuccessAndBreaker(t *testing.T) {
	large := strings.Repeat("a", policy.MaxSuccessBody)
	require.Empty(t, ValidateTopic(policy.Topic{
		Success: policy.Success{
			Status:     []string{"200", "2xx", "3xx", "404", "599", "5xx"},
			BodyEquals: large, BodyContains: large,
		},
		Breaker: policy.Breaker{Failures: new(0), Open: policy.MinOpen},
	}))
	require.Empty(t,
		ValidateTopic(policy.Topic{Breaker: policy.Breaker{Failures: new(policy.MaxFailures), Open: policy.MaxOpen}}))
	require.ElementsMatch(t, []string{
		"/success/status/0", "/success/status/1", "/success/status/2", "/success/status/4",
		"/success/status/5", "/success/body_equals", "/success/body_contains", "/breaker/failures", "/breaker/open",
	}, fieldsOf(ValidateTopic(policy.Topic{
		Success: policy.Success{
			Status: []string{"1xx", "199", "600", "200", "2XX", ""}, BodyEquals: large + "a", BodyContains: large + "a",
		},
		Breaker: policy.Breaker{Failures: new(policy.MaxFailures + 1), Open: policy.MaxOpen + 1},
	})))
	require.Equal(t, []string{"/success/status"},
		fieldsOf(ValidateTopic(policy.Topic{Success: policy.Success{Status: []string{}}})))
	require.Equal(t, []string{"/success/status"},
		fieldsOf(ValidateTopic(policy.Topic{Success: policy.Success{Status: make([]string, 101)}}))[:1])
	require.ElementsMatch(t, []string{"/breaker/failures", "/breaker/open"}, fieldsOf(ValidateTopic(policy.Topic{
		Breaker: policy.Breaker{Failures: new(-1), Open: policy.MinOpen - 1},
	})))
}

func TestValidateLane_NamesInvalidFields(t *testing.T) {
	require.Empty(t, ValidateLane(policy.Lane{}))
	require.Empty(t, ValidateLane(policy.Lane{
		URL: "https://a.example/", Headers: map[string][]string{"x-a": {"1"}}, LaneConcurrency: MaxShare,
		LaneRate: policy.Rate{Starts: 1, Per: time.Second}, Secrets: []policy.Secret{{ID: "s"}},
	}))
	faults := ValidateLane(policy.Lane{
		URL: "x", Headers: map[string][]string{"Te": {"x"}},
		LaneConcurrency: MaxShare + 1,
	})
	require.ElementsMatch(t, []string{"/url", "/headers/Te", "/lane_concurrency"}, fieldsOf(faults))
	require.Equal(t, []string{"/lane_concurrency"}, fieldsOf(ValidateLane(policy.Lane{LaneConcurrency: -1})))
}

// generation returns a job after n revivals.
func generation(id string, n int) Job {
	return Job{Spec: Spec{ID: id}, Progress: Progress{Generation: n, CreatedAt: now}}
}

func TestValidate_ReservesIDsAndTopics(t *testing.T) {
	require.Equal(t, []string{"/id", "/topic"}, fieldsOf(Validate(New{Spec: Spec{ID: CallbackID(generation("a",
		0)), Queue: Queue{Topic: CallbackTopic}}}, now)))
	faults := Validate(New{Spec: Spec{Labels: map[string]string{LabelTopic: "x"}}}, now)
	require.Equal(t, []string{"/labels/" + LabelTopic}, fieldsOf(faults))
}

func TestCallbackID_IsValidForTheLongestID(t *testing.T) {
	longest := strings.Repeat("a", 64)
	seen := make(map[string]bool)
	for _, n := range []int{0, 1, 9, 10, 1 << 31} {
		id := CallbackID(generation(longest, n))
		require.True(t, IsID(id), id)
		require.False(t, seen[id])
		seen[id] = true
	}
	require.NotEqual(t, CallbackID(generation("a", 11)), CallbackID(generation("a1", 1)))
	later := generation("a", 1)
	later.CreatedAt = later.CreatedAt.Add(time.Millisecond)
	require.NotEqual(t, CallbackID(generation("a", 1)), CallbackID(later), "the same id may come again")
	for id, good := range map[string]bool{
		"rb:" + strings.Repeat("a", 93): true, "rb:" + strings.Repeat("a", 94): false,
		strings.Repeat("a", 65): false, "rb:a.b": false,
		"rb:" + strings.Repeat("a", 80) + "/": false, "rb:": true, "rc:" + strings.Repeat("a", 62): false,
	} {
		require.Equal(t, good, IsID(id), id)
	}
}
