package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

// Notes about responses with a successful status that are not a success.
const (
	notEqual   = "response body does not equal success.body_equals"
	notContain = "response body does not contain success.body_contains"
	utf16      = ": it is in UTF-16: save or send it as UTF-8"
)

func TestSuccess_LooksAtTheBodyAsItCame(t *testing.T) {
	own := terms()
	own.Success = policy.Success{BodyContains: "acme"}
	result := policy.Result{Status: 200, Body: []byte("[redacted] took it"), Received: []byte("acme took it")}
	require.Equal(t, policy.Delivered, policy.Judge(own, result, policy.Progress{}, 0).Kind)
	result.Received = nil
	require.Equal(t, policy.Again, policy.Judge(own, result, policy.Progress{}, 0).Kind)
}

func TestSuccess_MatchesStatusAndBody(t *testing.T) {
	for _, c := range []struct {
		name    string
		success policy.Success
		status  int
		body    string
		ok      bool
		note    string
	}{
		{"2xx, no body rule", policy.Success{}, 299, "whatever", true, ""},
		{"4xx, no body rule", policy.Success{}, 404, "", false, ""},
		{"a status that is asked for", policy.Success{Status: []string{"201", "3xx"}}, 302, "", true, ""},
		{"a status that is not asked for", policy.Success{Status: []string{"201", "3xx"}}, 200, "", false, ""},

		{"the body", policy.Success{BodyEquals: "success"}, 200, "success", true, ""},
		{"the body and white space", policy.Success{BodyEquals: "success"}, 200, " \r\n\tsuccess\n", true, ""},
		{"a byte order mark", policy.Success{BodyEquals: "success"}, 200, "\xef\xbb\xbfsuccess\r\n", true, ""},
		{"a byte order mark in the policy", policy.Success{BodyEquals: "\ufeffsuccess"}, 200, "success", true, ""},
		{"UTF-16", policy.Success{BodyEquals: "ok"}, 200, "\xff\xfeo\x00k\x00", false, notEqual + utf16},
		{"UTF-16 does not hold it", policy.Success{BodyContains: "ok"}, 200, "o\x00k\x00", false, notContain + utf16},
		{"white space in the policy", policy.Success{BodyEquals: " success\n"}, 200, "success", true, ""},
		{"unsuccessful is none", policy.Success{BodyEquals: "success"}, 200, "unsuccessful", false, notEqual},
		{"upper case is none", policy.Success{BodyEquals: "success"}, 200, "SUCCESS", false, notEqual},
		{"no body", policy.Success{BodyEquals: "success"}, 204, "", false, notEqual},
		{"the body with another status", policy.Success{BodyEquals: "success"}, 500, "success", false, ""},

		{"holds it", policy.Success{BodyContains: `"ok":true`}, 200, `{"a":1,"ok":true}`, true, ""},
		{"does not hold it", policy.Success{BodyContains: `"ok":true`}, 200, `{"ok":false}`, false, notContain},
		{"white space counts there", policy.Success{BodyContains: "ok "}, 200, "ok", false, notContain},
		{"both", policy.Success{BodyEquals: "a ok b", BodyContains: "ok"}, 200, "a ok b", true, ""},
		{"one of both", policy.Success{BodyEquals: "ab", BodyContains: "ok"}, 200, "ab", false, notContain},
		{"status and body", policy.Success{Status: []string{"404"}, BodyContains: "gone"}, 404, "gone", true, ""},
		{"bytes that are no text", policy.Success{BodyContains: "\xff"}, 200, "a\xffb", true, ""},
	} {
		given := terms(func(t *policy.Terms) { t.Success = c.success })
		got := policy.Judge(given, policy.Result{Status: c.status, Body: []byte(c.body)},
			policy.Progress{FailedAttempts: 1}, 0)
		wanted := policy.Verdict{Kind: policy.Delivered}
		if !c.ok {
			wanted = policy.Verdict{Kind: policy.Again, Wait: time.Minute, Note: c.note}
		}
		require.Equal(t, wanted, got, c.name)
	}
}

func TestJudge_KeepsTheNote(t *testing.T) {
	given := terms(func(t *policy.Terms) { t.Success.BodyContains = "ok" }, giveUpOn("202"))
	got := policy.Judge(given, policy.Result{Status: 202}, policy.Progress{FailedAttempts: 1}, 0)
	require.Equal(t, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp, Note: notContain}, got)
	got = policy.Judge(given, policy.Result{Status: 200}, policy.Progress{FailedAttempts: 4}, 0)
	require.Equal(t, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted, Note: notContain}, got)
}

func TestSuccess_ReadsBody(t *testing.T) {
	for _, c := range []struct {
		success policy.Success
		zero    bool
		reads   bool
	}{
		{policy.Success{}, true, false},
		{policy.Success{Status: []string{}}, true, false},
		{policy.Success{Status: []string{"2xx"}}, false, false},
		{policy.Success{BodyEquals: "x"}, false, true},
		{policy.Success{BodyContains: "x"}, false, true},
	} {
		require.Equal(t, c.zero, c.success.IsZero(), "%+v", c.success)
		require.Equal(t, c.reads, c.success.ReadsBody(), "%+v", c.success)
	}
}
