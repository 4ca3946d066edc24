package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

// terms returns the built-in terms with three retries of a minute.
func terms(change ...func(*policy.Terms)) policy.Terms {
	t := policy.Builtin().Terms(policy.Terms{Ladder: policy.Ladder{time.Minute}, Retries: new(3)})
	t.MaxAgeDerived = false
	for _, c := range change {
		c(&t)
	}
	return t
}

func giveUpOn(patterns ...string) func(*policy.Terms) {
	return func(t *policy.Terms) { t.GiveUpOn = patterns }
}

func TestJudge_CountsFailedAttempts(t *testing.T) {
	failed := policy.Result{Status: 500}
	for retries := range 4 {
		for tries := 1; tries <= retries; tries++ {
			got := policy.Judge(terms(func(t *policy.Terms) { t.Retries = &retries }), failed,
				policy.Progress{FailedAttempts: tries}, 0)
			require.Equal(t, policy.Again, got.Kind, "try %d with %d retries", tries, retries)
		}
		got := policy.Judge(terms(func(t *policy.Terms) { t.Retries = &retries }), failed,
			policy.Progress{FailedAttempts: retries + 1}, 0)
		require.Equal(t, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted}, got, "%d retries", retries)
	}
	last := policy.Judge(terms(), policy.Result{Status: 204}, policy.Progress{FailedAttempts: 100}, 0)
	require.Equal(t, policy.Delivered, last.Kind, "a success is one however late")
	stopped := policy.Judge(terms(), policy.Result{Class: policy.ClassShutdown}, policy.Progress{FailedAttempts: 100},
		0)
	require.Equal(t, policy.Released, stopped.Kind, "our own stop costs nothing")
}

func TestJudge_GivesUpOnPatterns(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		status   int
		dead     bool
	}{
		{[]string{"410"}, 410, true},
		{[]string{"410"}, 411, false},
		{[]string{}, 410, false},
		{[]string{"4xx"}, 400, true},
		{[]string{"4xx"}, 499, true},
		{[]string{"4xx"}, 500, false},
		{[]string{"404", "5xx"}, 503, true},
		{[]string{"404", "5xx"}, 404, true},
		{[]string{"404", "5xx"}, 403, false},
		{[]string{"2xx"}, 200, false}, // give_up_on does not apply to a success
	} {
		got := policy.Judge(terms(giveUpOn(c.patterns...)), policy.Result{Status: c.status},
			policy.Progress{FailedAttempts: 1}, 0)
		require.Equal(t, c.dead, got.Kind == policy.Dead, "%v on %d", c.patterns, c.status)
		if c.dead {
			require.Equal(t, policy.ReasonGaveUp, got.Reason)
		}
	}
	got := policy.Judge(terms(giveUpOn("4xx")), policy.Result{Status: 404}, policy.Progress{FailedAttempts: 99}, 0)
	require.Equal(t, policy.ReasonGaveUp, got.Reason, "giving up comes before being exhausted")
}

func TestJudge_Waits(t *testing.T) {
	for _, c := range []struct {
		name               string
		jitter, random     float64
		retryAfter, wanted time.Duration
	}{
		{"the rung, without randomness", 0.5, 0, 0, time.Minute},
		{"the rung, without jitter", 0, 0.999, 0, time.Minute},
		{"stretched by the share", 0.5, 0.5, 0, 75 * time.Second},
		{"stretched to whole milliseconds, upwards", 0.1, 0.00001, 0, time.Minute + time.Millisecond},
		{"a longer Retry-After", 0.5, 0.5, 5 * time.Minute, 5 * time.Minute},
		{"a shorter Retry-After does not bring it forward", 0.5, 0, time.Second, time.Minute},
		{"a Retry-After between rung and stretched rung", 0.5, 0.5, 70 * time.Second, 75 * time.Second},
		{"a Retry-After of years", 0, 0, 10_000 * time.Hour, policy.MaxRetryAfter},
		{"a negative Retry-After", 0, 0, -time.Hour, time.Minute},
	} {
		got := policy.Judge(terms(func(t *policy.Terms) { t.Jitter = c.jitter }),
			policy.Result{Status: 503, RetryAfter: c.retryAfter}, policy.Progress{FailedAttempts: 1}, c.random)
		require.Equal(t, policy.Again, got.Kind, c.name)
		require.Equal(t, c.wanted, got.Wait, c.name)
	}
}

// A requested wait applies to the whole lane when the status is about the receiver rather than the request.
func TestJudge_PutsACooldownOnTheLane(t *testing.T) {
	for _, c := range []struct {
		name       string
		result     policy.Result
		tries      int
		kind       policy.Kind
		wait, lane time.Duration
	}{
		{"not asked", policy.Result{Status: 503}, 1, policy.Again, time.Minute, 0},
		{"429", policy.Result{
			Status: 429, RetryAfter: 20 * time.Second,
		}, 1, policy.Again, time.Minute, 20 * time.Second},
		{"503", policy.Result{
			Status: 503, RetryAfter: 20 * time.Second,
		}, 1, policy.Again, time.Minute, 20 * time.Second},
		{"408", policy.Result{
			Status: 408, RetryAfter: 20 * time.Second,
		}, 1, policy.Again, time.Minute, 20 * time.Second},
		{"425", policy.Result{
			Status: 425, RetryAfter: 20 * time.Second,
		}, 1, policy.Again, time.Minute, 20 * time.Second},
		{"500", policy.Result{
			Status: 500, RetryAfter: 20 * time.Second,
		}, 1, policy.Again, time.Minute, 20 * time.Second},
		{"599", policy.Result{
			Status: 599, RetryAfter: 20 * time.Second,
		}, 1, policy.Again, time.Minute, 20 * time.Second},
		{"600 is no status of " +
			"servers", policy.Result{Status: 600, RetryAfter: 20 * time.Second}, 1, policy.Again, time.Minute, 0},
		{"404 concerns one " +
			"request", policy.Result{Status: 404, RetryAfter: 2 * time.Hour}, 1, policy.Again, 2 * time.Hour, 0},
		{"an hour", policy.Result{Status: 503, RetryAfter: time.Hour}, 1, policy.Again, time.Hour, policy.MaxLaneWait},
		{"a week", policy.Result{
			Status: 429, RetryAfter: 7 * 24 * time.Hour,
		}, 1, policy.Again, policy.MaxRetryAfter, policy.MaxLaneWait},
		{"the past", policy.Result{Status: 503, RetryAfter: -time.Hour}, 1, policy.Again, time.Minute, 0},
		{"the last retry", policy.Result{Status: 503, RetryAfter: time.Hour}, 4, policy.Dead, 0, policy.MaxLaneWait},
		{"an answer that broke off", policy.Result{
			Status: 503, Class: policy.ClassReset, RetryAfter: time.Hour,
		}, 1, policy.Again, time.Hour, 0},
		{"a success", policy.Result{Status: 202, RetryAfter: time.Hour}, 1, policy.Delivered, 0, 0},
	} {
		got := policy.Judge(terms(), c.result, policy.Progress{FailedAttempts: c.tries}, 0)
		require.Equal(t, c.kind, got.Kind, c.name)
		require.Equal(t, c.wait, got.Wait, c.name)
		require.Equal(t, c.lane, got.LaneWait, c.name)
	}
}

// No retry is scheduled after the expiry.
func TestJudge_SchedulesNoRetryAfterTheExpiry(t *testing.T) {
	hour := terms(func(t *policy.Terms) { t.MaxAge = time.Hour; t.Jitter = 0 }) // with a rung of a minute
	for _, c := range []struct {
		name     string
		progress policy.Progress
		result   policy.Result
		reason   policy.Reason // empty: again
	}{
		{"no expiry", policy.Progress{FailedAttempts: 1}, policy.Result{Status: 500}, ""},
		{"at the expiry", policy.Progress{
			FailedAttempts: 1, Expires: true, ExpiresIn: time.Minute,
		}, policy.Result{Status: 500}, ""},
		{
			"after the expiry",
			policy.Progress{FailedAttempts: 1, Expires: true, ExpiresIn: time.Minute - time.Millisecond},
			policy.Result{Status: 500},
			policy.ReasonExpired,
		},
		{"it has expired", policy.Progress{
			FailedAttempts: 1, Expires: true, ExpiresIn: -1,
		}, policy.Result{Class: policy.ClassReset}, policy.ReasonExpired},
		{
			"the receiver asks for more than is left",
			policy.Progress{FailedAttempts: 1, Expires: true, ExpiresIn: 5 * time.Minute},
			policy.Result{Status: 503, RetryAfter: 6 * time.Minute},
			policy.ReasonExpired,
		},
		{"as old as it may be", policy.Progress{
			FailedAttempts: 1, Age: 59 * time.Minute,
		}, policy.Result{Status: 500}, ""},
		{"too old by then", policy.Progress{FailedAttempts: 1, Age: 59*time.Minute +
			1}, policy.Result{Status: 500}, policy.ReasonMaxAge},
		{
			"its own expiry is named first",
			policy.Progress{FailedAttempts: 1, Age: 2 * time.Hour, Expires: true},
			policy.Result{Status: 500},
			policy.ReasonExpired,
		},
		{"no retry is left anyway", policy.Progress{
			FailedAttempts: 4, Age: 2 * time.Hour, Expires: true,
		}, policy.Result{Status: 500}, policy.ReasonExhausted},
	} {
		got := policy.Judge(hour, c.result, c.progress, 0)
		require.Equal(t, c.reason, got.Reason, c.name)
		require.Equal(t, c.reason != "", got.Kind == policy.Dead, c.name)
		require.Equal(t, min(c.result.RetryAfter, policy.MaxLaneWait), got.LaneWait,
			"its lane is held back all the same: %s", c.name)
	}
	late := policy.Progress{FailedAttempts: 1, Age: 2 * time.Hour, Expires: true, ExpiresIn: -time.Hour}
	require.Equal(t, policy.Delivered, policy.Judge(hour, policy.Result{Status: 200}, late, 0).Kind,
		"a success is one however late")
	require.Equal(t, policy.Released, policy.Judge(hour, policy.Result{Class: policy.ClassShutdown}, late, 0).Kind)
	require.Equal(t, policy.ReasonMaxAge, policy.Judge(terms(func(t *policy.Terms) {
		t.MaxAge, t.Jitter = time.Hour, 1
	}), policy.Result{Status: 500}, policy.Progress{FailedAttempts: 1, Age: 59 * time.Minute}, 0.5).Reason,
		"the stretched wait counts")
}

func TestKind_String(t *testing.T) {
	for kind, name := range map[policy.Kind]string{
		0: "none", policy.Delivered: "delivered", policy.Again: "again", policy.Dead: "dead",
		policy.Released: "released", 99: "none",
	} {
		require.Equal(t, name, kind.String(), "kind %d", kind)
	}
}

// A verdict is one of four. A wait is never shorter than its rung or the requested wait, never longer than both allow,
// and in whole milliseconds if the rung is.
func FuzzJudge(f *testing.F) {
	f.Add(200, "", int64(0), 1, 3, int64(60_000), 0.1, 0.5, false, "", "", int64(0), int64(0))
	f.Add(200, "", int64(0), 1, 3, int64(60_000), 0.1, 0.5, false, "unsuccessful", "success", int64(0), int64(0))
	f.Add(503, "", int64(90_000), 2, 3, int64(1), 1.0, 0.999999, false, "", "", int64(60_000), int64(0))
	f.Add(0, "timeout_body", int64(-5), 1000, 1000, int64(30*24*3600*1000), 0.0, 0.0, false, "", "", int64(0),
		int64(1<<40))
	f.Add(410, "blocked", int64(1<<40), 0, 0, int64(15_000), 0.333, 0.777, false, "", "", int64(1), int64(1))
	f.Add(422, "", int64(0), 1, 3, int64(15_000), 0.333, 0.777, true, "", "", int64(-1), int64(-1))
	f.Fuzz(func(
		t *testing.T, status int, class string, retryAfterMs int64, tries, retries int, rungMs int64,
		jitter, random float64, nonRetryable bool, body, equals string, leftMs, ageMs int64,
	) {
		if !(jitter >= 0 && jitter <= 1 && random >= 0 && random < 1) {
			return // outside of what callers may hand over
		}
		rung := min(max(time.Duration(rungMs%int64(policy.MaxRung/time.Millisecond))*time.Millisecond, policy.MinRung),
			policy.MaxRung)
		retryAfter := time.Duration(retryAfterMs%(1<<40)) * time.Millisecond
		given := policy.Terms{
			Ladder: policy.Ladder{rung}, Retries: &retries, Jitter: jitter, GiveUpOn: []string{"410", "42x", ""},
			Success: policy.Success{BodyEquals: equals}, MaxAge: 24 * time.Hour,
		}
		progress := policy.Progress{
			FailedAttempts: tries, Age: time.Duration(ageMs%(1<<40)) * time.Millisecond,
			Expires: leftMs != 0, ExpiresIn: time.Duration(leftMs%(1<<40)) * time.Millisecond,
		}
		result := policy.Result{
			Status: status, Class: policy.ErrorClass(class), RetryAfter: retryAfter, NonRetryable: nonRetryable,
			Body: []byte(body),
		}
		got := policy.Judge(given, result, progress, random)
		require.Equal(t, got, policy.Judge(given, result, progress, random), "the same question has the same answer")
		require.GreaterOrEqual(t, got.LaneWait, time.Duration(0))
		require.LessOrEqual(t, got.LaneWait, min(max(retryAfter, 0), policy.MaxLaneWait))
		switch got.Kind {
		case policy.Delivered:
			require.True(t, class == "" && status >= 200 && status < 300)
			require.True(t, equals == "" || strings.TrimSpace(body) == strings.TrimSpace(equals))
			require.Equal(t, policy.Verdict{Kind: policy.Delivered}, got)
		case policy.Again:
			require.LessOrEqual(t, tries, retries)
			require.False(t, nonRetryable && class == "" && status >= 400 && status <= 499)
			require.GreaterOrEqual(t, got.Wait, rung)
			require.GreaterOrEqual(t, got.Wait, min(retryAfter, policy.MaxRetryAfter))
			longest := rung + time.Duration(float64(rung)*jitter) + time.Millisecond
			require.LessOrEqual(t, got.Wait, max(longest, policy.MaxRetryAfter))
			require.Zero(t, got.Wait%time.Millisecond)
			require.LessOrEqual(t, progress.Age+got.Wait, given.MaxAge)
			require.True(t, !progress.Expires || got.Wait <= progress.ExpiresIn)
		case policy.Dead:
			require.Contains(t, policy.Reasons(), got.Reason)
			require.Zero(t, got.Wait)
		case policy.Released:
			require.Equal(t, policy.ClassShutdown, policy.ErrorClass(class))
			require.Equal(t, policy.Verdict{Kind: policy.Released}, got)
		default:
			t.Fatalf("verdict %v", got.Kind)
		}
	})
}

// Local shortages cost no retry, but the job still expires.
func TestJudge_LocalResources(t *testing.T) {
	short := policy.Result{Class: policy.ClassLocalResources}
	lives := func(left time.Duration) policy.Progress {
		return policy.Progress{FailedAttempts: 100, Expires: true, ExpiresIn: left}
	}
	for _, c := range []struct {
		name     string
		progress policy.Progress
		random   float64
		wanted   policy.Verdict
	}{
		{"however many " +
			"tries", policy.Progress{FailedAttempts: 100}, 0, policy.Verdict{Kind: policy.Released, Wait: time.Second}},
		{"spread", policy.Progress{}, 0.5, policy.Verdict{Kind: policy.Released, Wait: 1500 * time.Millisecond}},
		{"in time", lives(
			1500 * time.Millisecond,
		), 0.5, policy.Verdict{Kind: policy.Released, Wait: 1500 * time.Millisecond}},
		{"once more before the " +
			"expiry", lives(time.Second), 0.5, policy.Verdict{Kind: policy.Released, Wait: 100 * time.Millisecond}},
		{"no more", lives(99 * time.Millisecond), 0, dead(policy.ReasonExpired)},
		{"expired", lives(-time.Second), 0, dead(policy.ReasonExpired)},
		{"too old soon", policy.Progress{
			Age: time.Hour - 500*time.Millisecond,
		}, 0, policy.Verdict{Kind: policy.Released, Wait: 100 * time.Millisecond}},
		{"too old", policy.Progress{Age: time.Hour}, 0, dead(policy.ReasonMaxAge)},
	} {
		got := policy.Judge(terms(func(t *policy.Terms) { t.MaxAge = time.Hour }), short, c.progress, c.random)
		require.Equal(t, c.wanted, got, c.name)
	}
}

func TestJudge_BelievesConsumers(t *testing.T) {
	failed := policy.Result{Class: policy.ClassConsumer, Error: "no disk"}
	after := func(wait time.Duration) policy.Result {
		result := failed
		result.RetryAfter = wait
		return result
	}
	forbidden := failed
	forbidden.NonRetryable = true
	strict := func(t *policy.Terms) { t.Success = policy.Success{Status: []string{"201"}, BodyEquals: "ok"} }
	for name, c := range map[string]struct {
		result policy.Result
		tries  int
		want   policy.Verdict
	}{
		"accepted":                       {policy.Result{Accepted: true}, 9, delivered},
		"a failure climbs the ladder":    {failed, 1, again},
		"a failure without retries left": {failed, 4, dead(policy.ReasonExhausted)},
		"asks for less than the " +
			"rung": {after(time.Second), 1, policy.Verdict{Kind: policy.Again, Wait: time.Second}},
		"asks for more than a day":         {after(48 * time.Hour), 1, dead(policy.ReasonMaxAge)},
		"asks for a retry without any":     {after(time.Second), 4, dead(policy.ReasonExhausted)},
		"gives the job up":                 {forbidden, 1, dead(policy.ReasonNonRetryable)},
		"gives the job up after all tries": {forbidden, 9, dead(policy.ReasonNonRetryable)},
	} {
		got := policy.Judge(terms(strict), c.result, policy.Progress{FailedAttempts: c.tries}, 0)
		require.Equal(t, c.want, got, name)
	}
	old := terms(func(t *policy.Terms) { t.MaxAge = 1000 * policy.MaxRung })
	got := policy.Judge(old, after(2*policy.MaxRung), policy.Progress{FailedAttempts: 1}, 0)
	require.Equal(t, policy.Verdict{Kind: policy.Again, Wait: policy.MaxRung}, got, "a wait is bounded")

	derived := policy.Builtin().Terms(policy.Terms{})
	month := policy.Progress{Age: policy.MaxRung}
	require.Equal(t, policy.Verdict{}, policy.CheckBefore(derived, month, policy.Preflight{}),
		"it waited long for its first attempt")
	require.Equal(t, policy.Verdict{Kind: policy.Released, Wait: time.Hour},
		policy.CheckExpired(derived, month, time.Hour))
	month.FailedAttempts = 1 // by the attempt that is judged
	shortage := policy.Result{Class: policy.ClassLocalResources}
	require.Equal(t, policy.Released, policy.Judge(derived, shortage, month, 0).Kind, "an attempt that does not count")
	require.Equal(t, dead(policy.ReasonMaxAge), policy.Judge(derived, failed, month, 0))
	month.FailedAttempts = *derived.Retries + 1
	require.Equal(t, policy.Verdict{}, policy.CheckBefore(derived, month, policy.Preflight{}),
		"fewer retries than failed attempts leave one")
	derived.MaxAgeDerived, month.FailedAttempts = false, 0
	require.Equal(t, dead(policy.ReasonMaxAge), policy.CheckBefore(derived, month, policy.Preflight{}))

	for _, deliver := range []policy.Deliver{policy.DeliverPush, policy.DeliverPull, policy.DeliverHandler} {
		own := policy.Topic{Deliver: deliver}.WithDefaults(policy.Builtin()).Terms(policy.Terms{})
		waits := policy.Judge(own, after(policy.MaxRung), policy.Progress{FailedAttempts: 1}, 0)
		old := policy.Progress{FailedAttempts: 1, Age: policy.MaxRung}
		before := policy.CheckBefore(own, old, policy.Preflight{})
		old.FailedAttempts++
		then := policy.Judge(own, failed, old, 0)
		if deliver.Pushes() {
			require.Equal(t, []policy.Verdict{
				dead(policy.ReasonMaxAge), dead(policy.ReasonMaxAge),
				dead(policy.ReasonMaxAge),
			}, []policy.Verdict{waits, before, then})
			continue
		}
		require.Equal(t, policy.Verdict{Kind: policy.Again, Wait: policy.MaxRung}, waits, deliver)
		require.Equal(t, policy.Verdict{}, before, "%s: it is attempted after the wait", deliver)
		require.Equal(t, policy.Verdict{Kind: policy.Again, Wait: own.Ladder[1]}, then, "%s: and its ladder goes on",
			deliver)
	}
}
