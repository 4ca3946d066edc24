package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestCheckBefore_EndsJobsByTheirTerms(t *testing.T) {
	day := terms(func(t *policy.Terms) { t.MaxAge = 24 * time.Hour })
	for _, c := range []struct {
		name     string
		failures int
		lost     int
		age      time.Duration
		expired  bool
		reason   policy.Reason // empty: go on
	}{
		{"a new job goes on", 0, 0, 0, false, ""},
		{"the last retry goes on", 3, 0, 0, false, ""},
		{"the retries were lowered: one attempt is left", 9, 0, 0, false, ""},
		{"so it is after losses that cost nothing", 9, 2, 0, false, ""},
		{"no retry is left, for attempts were lost", 4, 3, 0, false, policy.ReasonExhausted},
		{"as old as it may be", 0, 0, 24 * time.Hour, false, ""},
		{"older than it may be", 0, 0, 24*time.Hour + time.Millisecond, false, policy.ReasonMaxAge},
		{"expired", 0, 0, 0, true, policy.ReasonExpired},
		{"its own expiry is named first", 4, 3, 48 * time.Hour, true, policy.ReasonExpired},
		{"then the age", 4, 3, 48 * time.Hour, false, policy.ReasonMaxAge},
	} {
		progress := policy.Progress{
			FailedAttempts: c.failures, ConsecutiveLost: c.lost, Age: c.age, Expires: c.expired,
			ExpiresIn: -time.Millisecond,
		}
		var want policy.Verdict
		expired := policy.Verdict{Kind: policy.Released, Wait: time.Hour}
		if c.reason != "" {
			want = dead(c.reason)
			expired = want
		}
		require.Equal(t, want, policy.CheckBefore(day, progress, policy.Preflight{}), c.name)
		require.Equal(t, expired, policy.CheckExpired(day, progress, time.Hour), c.name)
	}
	require.Equal(t, released, policy.CheckExpired(day, policy.Progress{}, -time.Hour), "it is due")
}

func TestCheckBefore_MakesNoAttemptThatCannotSucceed(t *testing.T) {
	const (
		wrongOrigin = "the secret header X-Key was set for another origin than that of the URL"
	)
	var (
		wait  = policy.Verdict{Kind: policy.Released, Wait: time.Second}
		stale = policy.Verdict{
			Kind: policy.Released, Wait: time.Second,
			Note: "the topic's policy could not be read",
		}
		short = policy.Verdict{
			Kind: policy.Released, Wait: time.Second,
			Note: "the lease would have ended before the attempt",
		}
		unreadable = policy.Verdict{Kind: policy.Released, Wait: 10 * time.Second, LaneWait: 10 * time.Second}
		shared     = policy.Verdict{Kind: policy.Released, Wait: 10 * time.Second}
	)
	invalid := func(note string) policy.Verdict {
		return policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonInvalid, Note: note}
	}
	for _, c := range []struct {
		name string
		over bool // the job has lost its retries
		p    policy.Preflight
		want policy.Verdict
	}{
		{"nothing", false, policy.Preflight{}, policy.Verdict{}},
		{"stale policy", false, policy.Preflight{PolicyStale: true}, policy.Verdict{}},
		{"shared lane", false, policy.Preflight{SharedLane: true}, policy.Verdict{}},
		{"no URL: it fails", false, policy.Preflight{
			NoURL: true, WrongOriginHeader: "X-Key", SecretsUnreadable: true,
			Uncounted: true,
		}, policy.Verdict{}},
		{"no URL yet", false, policy.Preflight{NoURL: true, PolicyStale: true}, stale},
		{"exhausted", true, policy.Preflight{NoURL: true, WrongOriginHeader: "X-Key", SecretsUnreadable: true}, dead(
			policy.ReasonExhausted,
		)},
		{"perhaps exhausted", true, policy.Preflight{PolicyStale: true}, stale},
		{
			"settings unreadable", true,
			policy.Preflight{SettingsUnreadable: true, LaneStopped: true, PolicyStale: true},
			unreadable,
		},
		{"settings unreadable, shared", true, policy.Preflight{SettingsUnreadable: true, SharedLane: true}, shared},
		{"lane stopped", true, policy.Preflight{LaneStopped: true, NoURL: true}, released},
		{"lane stopped by an older " +
			"policy", true, policy.Preflight{LaneStopped: true, PolicyStale: true, NoURL: true}, wait},
		{"short lease", false, policy.Preflight{LeaseTooShort: true, WrongOriginHeader: "X-Key"}, short},
		{"wrong-origin header", false, policy.Preflight{WrongOriginHeader: "X-Key", SecretsUnreadable: true}, invalid(
			wrongOrigin,
		)},
		{
			"wrong-origin header by an older URL", false,
			policy.Preflight{WrongOriginHeader: "X-Key", PolicyStale: true},
			stale,
		},
		{"secrets unreadable", false, policy.Preflight{SecretsUnreadable: true, Late: true}, unreadable},
		{"secrets unreadable, shared", false, policy.Preflight{SecretsUnreadable: true, SharedLane: true}, shared},
		{"another rate", false, policy.Preflight{RateChanged: true, Uncounted: true}, released},
		{"late", false, policy.Preflight{Late: true}, released},
		{"not counted", false, policy.Preflight{Uncounted: true}, wait},
	} {
		progress := policy.Progress{}
		if c.over {
			progress.FailedAttempts, progress.ConsecutiveLost = 100, 102
		}
		require.Equal(t, c.want, policy.CheckBefore(terms(), progress, c.p), c.name)
	}
	// Judge may have let it fail once more under a policy that was out of date, and so without end.
	failed := policy.Progress{FailedAttempts: 100}
	require.Equal(t, stale, policy.CheckBefore(terms(), failed, policy.Preflight{PolicyStale: true}))
	require.Equal(t, policy.Verdict{}, policy.CheckBefore(terms(), failed, policy.Preflight{}))
}

func TestTerms_UnlimitedEndNoJob(t *testing.T) {
	year := policy.Progress{FailedAttempts: 1000, Age: 365 * 24 * time.Hour}
	own := terms()
	v := policy.Judge(own.Unlimited(), policy.Result{Status: 500}, year, 0)
	require.Equal(t, policy.Again, v.Kind)
	require.Equal(t, policy.Dead, policy.Judge(own, policy.Result{Status: 500}, year, 0).Kind, "its own are unchanged")
}
