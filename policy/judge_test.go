package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

// terms are the built-in ones with three retries of a minute.
func terms(change ...func(*policy.Terms)) policy.Terms {
	t := policy.Builtin().Over(policy.Topic{}).Terms(policy.Terms{Ladder: policy.Ladder{time.Minute}, Retries: new(3)})
	for _, c := range change {
		c(&t)
	}
	return t
}

func giveUpOn(patterns ...string) func(*policy.Terms) {
	return func(t *policy.Terms) { t.GiveUpOn = patterns }
}

// Every status that a receiver can send has its verdict.
func TestJudgeOfEveryStatus(t *testing.T) {
	for status := 100; status <= 999; status++ {
		wanted := policy.Verdict{Kind: policy.Again, Wait: time.Minute}
		switch {
		case status >= 200 && status <= 299:
			wanted = policy.Verdict{Kind: policy.Delivered}
		case status == 410:
			wanted = policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}
		}
		require.Equal(t, wanted, policy.Judge(terms(), policy.Result{Status: status}, 1, 0), "status %d", status)
	}
}

// Every class of failed attempts has its verdict, whatever status had come before it failed.
func TestJudgeOfEveryClass(t *testing.T) {
	final := map[policy.ErrorClass]policy.Verdict{
		policy.ClassBlocked:  {Kind: policy.Dead, Reason: policy.ReasonBlocked},
		policy.ClassInvalid:  {Kind: policy.Dead, Reason: policy.ReasonInvalid},
		policy.ClassShutdown: {Kind: policy.Released},
	}
	timeouts := map[policy.ErrorClass]bool{
		policy.ClassTimeoutDial: true, policy.ClassTimeoutTLS: true, policy.ClassTimeoutHeaders: true,
		policy.ClassTimeoutBody: true, policy.ClassTimeoutSend: true,
	}
	for _, class := range []policy.ErrorClass{
		policy.ClassDNS, policy.ClassRefused, policy.ClassUnreachable, policy.ClassReset, policy.ClassTLS, policy.ClassHTTP,
		policy.ClassTooLarge, policy.ClassTimeoutDial, policy.ClassTimeoutTLS, policy.ClassTimeoutHeaders,
		policy.ClassTimeoutBody, policy.ClassTimeoutSend, policy.ClassBlocked, policy.ClassInvalid, policy.ClassShutdown,
		policy.ClassOther,
	} {
		wanted, ok := final[class]
		if !ok {
			wanted = policy.Verdict{Kind: policy.Again, Wait: time.Minute}
		}
		for _, status := range []int{0, 200, 410} {
			got := policy.Judge(terms(), policy.Result{Class: class, Status: status}, 1, 0)
			require.Equal(t, wanted, got, "class %s with status %d", class, status)
		}
		require.Equal(t, timeouts[class], class.Timeout(), "timeout of %s", class)
	}
	require.False(t, policy.ClassNone.Timeout())
}

func TestJudgeCountsTries(t *testing.T) {
	failed := policy.Result{Status: 500}
	for retries := range 4 {
		for tries := 1; tries <= retries; tries++ {
			got := policy.Judge(terms(func(t *policy.Terms) { t.Retries = &retries }), failed, tries, 0)
			require.Equal(t, policy.Again, got.Kind, "try %d with %d retries", tries, retries)
		}
		got := policy.Judge(terms(func(t *policy.Terms) { t.Retries = &retries }), failed, retries+1, 0)
		require.Equal(t, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted}, got, "%d retries", retries)
	}
	last := policy.Judge(terms(), policy.Result{Status: 204}, 100, 0)
	require.Equal(t, policy.Delivered, last.Kind, "a success is one however late")
	stopped := policy.Judge(terms(), policy.Result{Class: policy.ClassShutdown}, 100, 0)
	require.Equal(t, policy.Released, stopped.Kind, "our own stop costs nothing")
}

func TestJudgeGivesUpOnPatterns(t *testing.T) {
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
		{[]string{"2xx"}, 200, false}, // a success is none to give up on
	} {
		got := policy.Judge(terms(giveUpOn(c.patterns...)), policy.Result{Status: c.status}, 1, 0)
		require.Equal(t, c.dead, got.Kind == policy.Dead, "%v on %d", c.patterns, c.status)
		if c.dead {
			require.Equal(t, policy.ReasonGaveUp, got.Reason)
		}
	}
	got := policy.Judge(terms(giveUpOn("4xx")), policy.Result{Status: 404}, 99, 0)
	require.Equal(t, policy.ReasonGaveUp, got.Reason, "giving up comes before being exhausted")
}

func TestJudgeWaits(t *testing.T) {
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
		got := policy.Judge(terms(func(t *policy.Terms) { t.Jitter = c.jitter }), policy.Result{Status: 503, RetryAfter: c.retryAfter}, 1, c.random)
		require.Equal(t, policy.Verdict{Kind: policy.Again, Wait: c.wanted}, got, c.name)
	}
}

func TestBefore(t *testing.T) {
	day := terms(func(t *policy.Terms) { t.MaxAge = 24 * time.Hour })
	for _, c := range []struct {
		name    string
		tries   int
		age     time.Duration
		expired bool
		reason  policy.Reason // empty: go on
	}{
		{"a new job goes on", 0, 0, false, ""},
		{"the last retry goes on", 3, 0, false, ""},
		{"no retry is left, for attempts were lost", 4, 0, false, policy.ReasonExhausted},
		{"as old as it may be", 0, 24 * time.Hour, false, ""},
		{"older than it may be", 0, 24*time.Hour + time.Millisecond, false, policy.ReasonMaxAge},
		{"expired", 0, 0, true, policy.ReasonExpired},
		{"its own expiry is named first", 4, 48 * time.Hour, true, policy.ReasonExpired},
		{"then the age", 4, 48 * time.Hour, false, policy.ReasonMaxAge},
	} {
		got, ok := policy.Before(day, c.tries, c.age, c.expired)
		require.Equal(t, c.reason == "", ok, c.name)
		if !ok {
			require.Equal(t, policy.Verdict{Kind: policy.Dead, Reason: c.reason}, got, c.name)
		} else {
			require.Zero(t, got, c.name)
		}
	}
}

func TestKindNames(t *testing.T) {
	for kind, name := range map[policy.Kind]string{
		0: "none", policy.Delivered: "delivered", policy.Again: "again", policy.Dead: "dead", policy.Released: "released", 99: "none",
	} {
		require.Equal(t, name, kind.String(), "kind %d", kind)
	}
}

// Whatever comes, a verdict is one of the four, a wait is never shorter than its rung or than what the receiver asked
// for, never longer than both allow, and in whole milliseconds where the rung is.
func FuzzJudge(f *testing.F) {
	f.Add(200, "", int64(0), 1, 3, int64(60_000), 0.1, 0.5)
	f.Add(503, "", int64(90_000), 2, 3, int64(1), 1.0, 0.999999)
	f.Add(0, "timeout_body", int64(-5), 1000, 1000, int64(30*24*3600*1000), 0.0, 0.0)
	f.Add(410, "blocked", int64(1<<40), 0, 0, int64(15_000), 0.333, 0.777)
	f.Fuzz(func(t *testing.T, status int, class string, retryAfterMs int64, tries, retries int, rungMs int64, jitter, random float64) {
		if !(jitter >= 0 && jitter <= 1 && random >= 0 && random < 1) {
			return // outside of what callers may hand over
		}
		rung := min(max(time.Duration(rungMs%int64(policy.MaxRung/time.Millisecond))*time.Millisecond, policy.MinRung), policy.MaxRung)
		retryAfter := time.Duration(retryAfterMs%(1<<40)) * time.Millisecond
		given := policy.Terms{Ladder: policy.Ladder{rung}, Retries: &retries, Jitter: jitter, GiveUpOn: []string{"410", "42x", "4xx", ""}}
		result := policy.Result{Status: status, Class: policy.ErrorClass(class), RetryAfter: retryAfter}
		got := policy.Judge(given, result, tries, random)
		require.Equal(t, got, policy.Judge(given, result, tries, random), "the same question has the same answer")
		switch got.Kind {
		case policy.Delivered:
			require.True(t, class == "" && status >= 200 && status < 300)
			require.Zero(t, got.Wait)
		case policy.Again:
			require.LessOrEqual(t, tries, retries)
			require.GreaterOrEqual(t, got.Wait, rung)
			require.GreaterOrEqual(t, got.Wait, min(retryAfter, policy.MaxRetryAfter))
			longest := rung + time.Duration(float64(rung)*jitter) + time.Millisecond
			require.LessOrEqual(t, got.Wait, max(longest, policy.MaxRetryAfter))
			require.Zero(t, got.Wait%time.Millisecond)
		case policy.Dead:
			require.NotEmpty(t, got.Reason)
			require.Zero(t, got.Wait)
		case policy.Released:
			require.Equal(t, policy.ClassShutdown, policy.ErrorClass(class))
		default:
			t.Fatalf("verdict %v", got.Kind)
		}
	})
}
