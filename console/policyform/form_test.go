package policyform_test

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/policyform"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
)

// fullPolicy sets every field.
func fullPolicy() client.Policy {
	callback := func() *client.Callback {
		return &client.Callback{
			URL: "https://x.example/?a=1&b=\"<script>", Method: "PUT",
			Headers: client.Headers{"X-A": {"1", "2"}, "Authorization": {"[redacted]"}, "X-Empty": {""}},
			Retries: new(0), Timeout: 1500 * time.Millisecond, Include: []string{"body", "query"},
		}
	}
	c := callback()
	return client.Policy{
		Ladder: []time.Duration{time.Millisecond, 90 * time.Second, 50 * time.Hour}, Retries: new(0), Jitter: new(0.0),
		Timeout: time.Second, MaxAge: 3 * time.Hour, Workers: 3, LaneConcurrency: 4, Rate: "100/s", LaneRate: "5/90s",
		Ordered: new(true), Deliver: "push", URL: "https://y.example/", Headers: client.Headers{"X-B": {"a: b"}},
		Success: &client.Success{Status: []string{"200", "2xx"}, BodyEquals: "\n ok\n"},
		Breaker: &client.Breaker{Failures: new(0), Open: time.Minute}, OnDelivered: c, OnDead: callback(),
		OnBacklog: &client.Backlog{
			URL: c.URL, Method: c.Method, Headers: c.Headers, Retries: c.Retries, Timeout: c.Timeout,
			Include: c.Include, OlderThan: time.Hour, MoreThan: 12,
		},
		ClientCert: &client.Certificate{Chain: "-----BEGIN CERTIFICATE-----\nx\n-----END " +
			"CERTIFICATE-----\n", Key: "[redacted]"}, GiveUpOn: []string{},
		KeepDelivered: &client.Retention{For: new(time.Duration(0)), Max: new(int64(0)), MaxBytes: "1MiB"},
		KeepDead:      &client.Retention{For: new(time.Hour), Max: new(int64(7)), MaxBytes: "2MiB"},
		IDWindow:      new(time.Duration(0)), ManagedBy: "shop",
	}
}

// sent returns values as a browser sends them.
func sent(values policyform.Values) url.Values {
	form := url.Values{}
	for name, text := range values {
		form.Set(name, strings.ReplaceAll(text, "\n", "\r\n"))
	}
	return form
}

func TestPolicy_RoundTripChangesNothing(t *testing.T) {
	for name, p := range map[string]client.Policy{
		"none": {}, "full": fullPolicy(), "one member": {Breaker: &client.Breaker{Open: time.Second}},
	} {
		typed := policyform.Policy.Typed(sent(policyform.Policy.Render(p)))
		change, changed, errs := policyform.Policy.Change(p, typed)
		require.False(t, errs.Any(), name)
		require.Empty(t, changed, name)
		require.Equal(t, client.Policy{}, change, name)
	}
}

func TestPolicy_WhatWasTypedOverNothingIsThePolicy(t *testing.T) {
	full := fullPolicy()
	change, changed, errs := policyform.Policy.Change(client.Policy{}, policyform.Policy.Render(full))
	require.False(t, errs.Any())
	require.Len(t, changed, len(policyform.Policy.Names())-2,
		"all but the key, which is not shown, and one of two conditions of success")
	full.ClientCert.Key = ""
	require.Equal(t, full, change)
}

func TestPolicy_ClearingEverythingGivesAllDefaults(t *testing.T) {
	empty := make(policyform.Values)
	for _, name := range policyform.Policy.Names() {
		empty[name] = ""
	}
	change, _, errs := policyform.Policy.Change(fullPolicy(), empty)
	require.False(t, errs.Any())
	var members []string
	for f := range fields(reflect.TypeFor[client.Policy]()) {
		members = append(members, f)
	}
	require.ElementsMatch(t, members, change.Null)
	change.Null = nil
	require.Equal(t, client.Policy{}, change)
}

func TestPolicy_KeepsWhatABrowserSendsInAnotherSpelling(t *testing.T) {
	before := client.Policy{
		Success: &client.Success{BodyEquals: "a\rb"},
		Headers: client.Headers{"X-A": {" padded\t"}, "X-B": {"b"}},
	}
	typed := policyform.Policy.Render(before)
	typed["success.body_equals"] = "a\r\nb"
	typed["headers"] += "\r\nX-C: c"
	change, changed, errs := policyform.Policy.Change(before, typed)
	require.False(t, errs.Any())
	require.Equal(t, []string{"headers"}, changed)
	require.Equal(t, client.Policy{Headers: client.Headers{"X-C": {"c"}}}, change)
}

// fields yields the names of the members of a type in the API.
func fields(of reflect.Type) func(yield func(string, reflect.Type) bool) {
	return func(yield func(string, reflect.Type) bool) {
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "-" && !yield(name, f.Type) {
				return
			}
		}
	}
}

// withoutField are members without a field, and why.
var withoutField = map[string]string{}

func TestForms_HaveEveryMember(t *testing.T) {
	check := func(of reflect.Type, names []string) {
		var members []string
		for name, kind := range fields(of) {
			if kind.Kind() == reflect.Pointer && kind.Elem().Kind() == reflect.Struct {
				for inner := range fields(kind.Elem()) {
					members = append(members, name+"."+inner)
				}
				continue
			}
			members = append(members, name)
		}
		members = slices.DeleteFunc(members, func(name string) bool { return withoutField[name] != "" })
		require.ElementsMatch(t, members, names, "a member of %s has neither a field nor a reason in withoutField", of)
	}
	check(reflect.TypeFor[client.Policy](), policyform.Policy.Names())
	check(reflect.TypeFor[client.LaneSettings](), policyform.Lane.Names())
}

func TestPolicy_GroupsHaveEachFieldOnce(t *testing.T) {
	var names []string
	for _, g := range policyform.Policy.Groups(client.Policy{}, client.Policy{}, nil, web.FormErrors{}) {
		for _, f := range g.Fields {
			require.NotEmpty(t, f.Label, f.Name)
			names = append(names, f.Name)
		}
	}
	require.ElementsMatch(t, policyform.Policy.Names(), names)
}

// zeros are the members of which zero is a value, and not the default.
var zeros = policyform.Values{
	"retries": "0", "jitter": "0", "id_window": "0", "breaker.failures": "0", "on_delivered.retries": "0",
	"on_dead.retries": "0", "on_backlog.retries": "0", "keep_delivered.for": "0", "keep_delivered.max": "0",
	"keep_delivered.max_bytes": "0", "keep_dead.for": "0", "keep_dead.max": "0", "keep_dead.max_bytes": "0",
}

func TestPolicy_Changes(t *testing.T) {
	before := client.Policy{
		Timeout: 10 * time.Second, Breaker: &client.Breaker{Failures: new(5), Open: time.Minute},
		Headers:    client.Headers{"X-A": {"1"}, "Authorization": {"[redacted]"}},
		OnDead:     &client.Callback{URL: "https://x.example/", Method: "PUT"},
		ClientCert: &client.Certificate{Chain: "chain", Key: "[redacted]"},
	}
	for _, c := range []struct {
		name  string
		typed policyform.Values
		want  string
	}{
		{"nothing", policyform.Values{}, `{}`},
		{"another spelling", policyform.Values{"timeout": "10000ms", "breaker.open": " 60 "}, `{}`},
		{"one", policyform.Values{"timeout": "3s"}, `{"timeout": "3s"}`},
		{"a ladder", policyform.Values{"ladder": "15s,3m  10m"}, `{"ladder": ["15s", "3m", "10m"]}`},
		{"zero", policyform.Values{"retries": "0"}, `{"retries": 0}`},
		{"a zero of each member that has one", zeros, `{
			"retries": 0, "jitter": 0, "id_window": "0s", "breaker": {"failures": 0}, "on_delivered": {"retries": ` +
			`0}, "on_dead": {"retries": 0},
			"on_backlog": {"retries": 0}, "keep_delivered": {"for": "0s", "max": 0, "max_bytes": "0"}, "keep_dead": ` +
			`{"for": "0s", "max": 0, "max_bytes": "0"}
		}`},
		{"an empty list", policyform.Values{"give_up_on": "none"}, `{"give_up_on": []}`},
		{"a list that cannot be empty, for the API to " +
			"refuse", policyform.Values{"success.status": "none"}, `{"success": {"status": ["none"]}}`},
		{"a default", policyform.Values{"timeout": ""}, `{"timeout": null}`},
		{"a default of a member", policyform.Values{"breaker.open": ""}, `{"breaker": {"open": null}}`},
		{
			"a member, and a default of another",
			policyform.Values{"breaker.open": "", "breaker.failures": "7"},
			`{"breaker": {"failures": 7, "open": null}}`,
		},
		{"an object", policyform.Values{"breaker.open": "", "breaker.failures": ""}, `{"breaker": null}`},
		{"a default of a callback", policyform.Values{"on_dead.method": ""}, `{"on_dead": {"method": null}}`},
		{"no callback", policyform.Values{"on_dead.method": "", "on_dead.url": ""}, `{"on_dead": null}`},
		{"no callback, with its other " +
			"fields", policyform.Values{"on_dead.url": "", "on_dead.retries": "3"}, `{"on_dead": null}`},
		{"a default method", policyform.Values{"on_dead.method": "POST"}, `{"on_dead": {"method": "POST"}}`},
		{"the default method of a callback that is not set", policyform.Values{
			"on_delivered.url":    "https://x.example/",
			"on_delivered.method": "POST",
		}, `{"on_delivered": {"url": "https://x.example/"}}`},
		{"a header", policyform.Values{"headers": "authorization: [redacted]\nx-a: 2"}, `{"headers": {"X-A": "2"}}`},
		{"no header", policyform.Values{"headers": "X-A: 1"}, `{"headers": {"Authorization": null}}`},
		{"no certificate", policyform.Values{"client_cert.chain": "", "client_cert.key": ""}, `{"client_cert": null}`},
		{"another key", policyform.Values{"client_cert.key": "new"}, `{"client_cert": {"key": "new"}}`},
	} {
		change, _, errs := policyform.Policy.Change(before, c.typed)
		require.False(t, errs.Any(), c.name)
		got, err := json.Marshal(change)
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(got), c.name)
	}
}

func TestPolicy_SaysWhatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"ladder": "15s, soon", "retries": "many", "timeout": "-1s", "jitter": "NaN", "workers": "0",
		"ordered": "perhaps", "headers": "no colon",
		"keep_dead.max": "1.5", "breaker.open": "0", "give_up_on": ",", "success.status": " , ", "on_dead.include": ",",
	} {
		_, changed, errs := policyform.Policy.Change(client.Policy{}, policyform.Values{name: text})
		require.NotEmpty(t, errs.Of(name), name)
		require.Empty(t, changed, name)
	}
	_, _, errs := policyform.Policy.Change(fullPolicy(),
		policyform.Values{"client_cert.chain": "", "client_cert.key": "new"})
	require.Contains(t, errs.Of("client_cert.chain"), "is required")
}

func TestPolicy_DefaultsAreThoseOfThePolicy(t *testing.T) {
	builtin := policy.Builtin()
	groups := policyform.Policy.Groups(fullPolicy(), fullPolicy(), nil, web.FormErrors{})
	shown := make(map[string]string)
	for _, g := range groups {
		for _, f := range g.Fields {
			shown[f.Name] = f.Placeholder
		}
	}
	var ladder []string
	for _, d := range builtin.Ladder {
		ladder = append(ladder, units.FormatDuration(d))
	}
	require.Equal(t, strings.Join(ladder, ", "), shown["ladder"])
	require.Equal(t, units.FormatDuration(builtin.Timeout), shown["timeout"])
	require.Equal(t, "0.1", shown["jitter"])
	require.InDelta(t, 0.1, *builtin.Jitter, 0)
	require.Equal(t, "256", shown["workers"])
	require.Equal(t, 256, builtin.Workers)
	require.Equal(t, "32", shown["lane_concurrency"])
	require.Equal(t, 32, builtin.LaneConcurrency)
	require.Equal(t, string(builtin.Deliver), shown["deliver"])
	require.Equal(t, strings.Join(builtin.GiveUpOn, ", "), shown["give_up_on"])
	require.Equal(t, "10", shown["breaker.failures"])
	require.Equal(t, 10, *builtin.Breaker.Failures)
	require.Equal(t, units.FormatDuration(builtin.Breaker.Open), shown["breaker.open"])
	require.Equal(t, units.FormatDuration(*builtin.IDWindow), shown["id_window"])
}

func TestPolicy_AppliesWhatWasTyped(t *testing.T) {
	effective := client.Policy{
		Ladder: []time.Duration{time.Second}, Retries: new(1), Timeout: 5 * time.Second,
		Headers: client.Headers{"X-A": {"1"}, "X-B": {"2"}},
	}
	set := client.Policy{Timeout: 5 * time.Second, Headers: effective.Headers}
	applied, errs := policyform.Apply(effective, set,
		policyform.Values{"ladder": "1m, 2m, 3m", "timeout": "", "headers": "X-A: 1", "jitter": "?"})
	require.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}, applied.Ladder)
	require.Equal(t, 3, policyform.Retries(applied), "as many as the ladder has")
	require.Equal(t, 10*time.Second, applied.Timeout, "the default")
	require.Equal(t, client.Headers{"X-A": {"1"}}, applied.Headers)
	require.NotEmpty(t, errs.Of("jitter"))
	require.Equal(t, []time.Duration{time.Second}, effective.Ladder, "is not changed")

	applied, _ = policyform.Apply(effective, set, policyform.Values{"retries": "9"})
	require.Equal(t, 9, policyform.Retries(applied))
	applied, _ = policyform.Apply(client.Policy{Ladder: []time.Duration{1}, Retries: new(9)},
		client.Policy{Ladder: []time.Duration{1}, Retries: new(2)}, policyform.Values{"retries": "", "ladder": ""})
	require.Equal(t, 9, policyform.Retries(applied), "as many as the default ladder has")
	require.Equal(t, client.Policy{Timeout: time.Second},
		must(policyform.Apply(client.Policy{Timeout: time.Second}, client.Policy{}, nil)))
}

func must(p client.Policy, _ any) client.Policy {
	p.Retries = nil
	return p
}

func TestLane_Changes(t *testing.T) {
	before := client.LaneSettings{
		URL: "https://x.example/", LaneRate: "5/s", Ordered: new(true),
		Headers: client.Headers{"Authorization": {"[redacted]"}},
	}
	change, changed, errs := policyform.Lane.Change(before, policyform.Lane.Typed(sent(policyform.Lane.Render(before))))
	require.False(t, errs.Any())
	require.Empty(t, changed)
	require.Equal(t, client.LaneSettings{}, change)
	change, changed, _ = policyform.Lane.Change(before,
		policyform.Values{"url": "", "ordered": "", "lane_concurrency": "2"})
	require.Equal(t, []string{"lane_concurrency", "url", "ordered"}, changed)
	require.Equal(t, client.LaneSettings{LaneConcurrency: 2, Null: []string{"url", "ordered"}}, change)
}

func TestSentences_SayThePolicy(t *testing.T) {
	p := client.Policy{
		Deliver: "push", Ladder: []time.Duration{time.Minute, time.Hour}, Timeout: 10 * time.Second,
		Jitter: new(0.1), MaxAge: 25 * time.Hour, GiveUpOn: []string{"410"}, Workers: 256, LaneConcurrency: 32,
		Rate: "100/s", Breaker: &client.Breaker{Failures: new(10), Open: 30 * time.Second},
		KeepDead: &client.Retention{For: new(24 * time.Hour), Max: new(int64(1000))},
		OnDead:   &client.Callback{URL: "https://x.example/"},
	}
	require.Equal(t, []string{
		"Jobs are sent as HTTP requests.",
		"A job has up to 3 attempts of up to 10s within 1h1m, and each wait is lengthened at random by up to 10%.",
		"If all fail, they follow the first one after 1m, 1h1m.",
		"It dies at once when the answer is 410, and when it was due more than 1d 1h ago.",
		"At most 32 attempts of a lane run at a time, 256 of the topic in each process; the topic starts at most " +
			"100/s.",
		"After 10 failures in a row the breaker of a lane opens for 30s.",
		"Dead jobs are reported to https://x.example/.",
		"Delivered jobs are kept as long as the store's default, dead ones for 1d and at most 1,000.",
	}, policyform.Sentences(p))
	p.Retries = new(100)
	require.Contains(t, policyform.Sentences(p), "If all fail, they follow the first one after 1m, 1h1m, 2h1m, 3h1m, "+
		"4h1m, 5h1m, 6h1m, 7h1m, 8h1m, 9h1m, 10h1m, 11h1m and 88 more times, the last after 4d 3h.")
	for _, text := range policyform.Sentences(client.Policy{}) {
		require.NotEmpty(t, text)
	}
	require.NotEmpty(t, policyform.Sentences(fullPolicy()))
}
