package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/store/storetest"
)

// testServer is the real API on the model of a store, in memory.
type testServer struct {
	handler http.Handler
	// changes counts requests that are neither GET nor dry runs, dry those that are.
	changes, dry atomic.Int64
	// before is called before each change.
	before func(method, path string) error
}

func newServer(t *testing.T) *testServer {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	model := storetest.NewModel(storetest.ModelOptions{})
	t.Cleanup(func() { _ = model.Close() })
	d, err := dispatcher.New(dispatcher.Options{Store: model, RegisterOnly: true, Logger: quiet})
	require.NoError(t, err)
	service := dispatcher.NewService(d, nil, quiet)
	return &testServer{handler: api.New(api.Options{
		Service: api.NewService(service),
		Process: service.Process(), Logger: quiet,
	})}
}

func (s *testServer) call(ctx context.Context, of client.Request) (json.RawMessage, error) {
	if of.Method != http.MethodGet {
		counter := &s.changes
		if strings.HasSuffix(of.Path, "?dry_run=true") {
			counter = &s.dry
		} else if s.before != nil {
			if err := s.before(of.Method, of.Path); err != nil {
				return nil, err
			}
		}
		counter.Add(1)
	}
	r := httptest.NewRequestWithContext(ctx, of.Method, of.Path, bytes.NewReader(of.Body))
	if of.Header != nil {
		r.Header = of.Header.Clone()
	}
	if of.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Host = "127.0.0.1"
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code >= http.StatusMultipleChoices {
		p := new(client.Problem)
		_ = json.Unmarshal(w.Body.Bytes(), p)
		p.Status = w.Code
		return nil, p
	}
	return w.Body.Bytes(), nil
}

// do makes a request that must succeed.
func (s *testServer) do(t *testing.T, method, path, body string) map[string]any {
	t.Helper()
	var text []byte
	if body != "" {
		text = []byte(body)
	}
	answer, err := s.call(t.Context(), client.Request{Method: method, Path: path, Body: text})
	require.NoError(t, err)
	if len(answer) == 0 {
		return nil
	}
	doc, err := decode(answer)
	require.NoError(t, err)
	return doc
}

// content returns a function that reads a text.
func content[T string | []byte](text T) func(string) ([]byte, error) {
	return func(string) ([]byte, error) { return []byte(text), nil }
}

// parse reads a text as a file.
func parse(t *testing.T, text string) *Set {
	t.Helper()
	set, err := Read([]string{"-"}, content(text))
	require.NoError(t, err)
	return set
}

func (s *testServer) plan(t *testing.T, text string, o Options) *Plan {
	t.Helper()
	p, err := NewPlan(t.Context(), s.call, parse(t, text), o)
	require.NoError(t, err)
	return p
}

func (s *testServer) apply(t *testing.T, text string, o Options) {
	t.Helper()
	require.NoError(t, s.plan(t, text, o).Apply(t.Context(), s.call, func(*Change) {}))
}

func planText(p *Plan) string {
	var b strings.Builder
	for _, c := range p.Changes {
		b.WriteString(c.Text())
	}
	return b.String()
}

const shop = `managed_by: shop
topics:
  order.close:
    ladder: [90s, 3600s]   # normal: 1m30s, 1h
    jitter: 0.50
    rate: 10/s
    headers: {x-b: "2", X-A: ["1"]}
    give_up_on: ["410", 4xx]
    keep_dead: {max_bytes: 268435456}
lanes:
  order.close:
    shop.example:443: {lane_rate: 5/s, ordered: false}
    other: {}
schedules:
  nightly:
    cron: 0 3 * * *
    timezone: Europe/Berlin
    starts_at: 2030-01-01T00:00:00+01:00
    job:
      topic: report
      url: https://shop.example/report
      body: {b: 1.0, a: [null, true]}
      on_dead: null
`

func TestApply_CreatesWhatFilesHave(t *testing.T) {
	s := newServer(t)
	p := s.plan(t, shop, Options{})
	require.Zero(t, s.changes.Load())
	require.Equal(t, "4 to create, 0 to update, 0 to remove, 0 unchanged", p.Summary())
	require.Equal(t, `+ create topic order.close
    give_up_on: ["410","4xx"]
    headers.X-A: 1
    headers.X-B: 2
    jitter: 0.5
    keep_dead.max_bytes: 256MiB
    ladder: ["1m30s","1h"]
    managed_by: shop
    rate: 10/s
+ create lane other of order.close
    managed_by: shop
+ create lane shop.example:443 of order.close
    lane_rate: 5/s
    managed_by: shop
`, strings.Split(planText(p), "+ create schedule")[0])
	var done []string
	require.NoError(t, p.Apply(t.Context(), s.call, func(c *Change) { done = append(done, c.Done()) }))
	require.Equal(t, "created topic order.close", done[0])
	require.Equal(t, "created schedule nightly", done[3])
	require.Equal(t, "shop", s.do(t, http.MethodGet, "/v1/schedules/nightly", "")["managed_by"])

	p = s.plan(t, shop, Options{Prune: true})
	require.Empty(t, p.Changes)
	require.Equal(t, 4, p.Unchanged)
	require.NoError(t, p.Apply(t.Context(), s.call, nil))
	require.EqualValues(t, 4, s.changes.Load())
}

func TestDiff_ShowsMembersOldAndNew(t *testing.T) {
	s := newServer(t)
	s.apply(t, shop, Options{})
	s.do(t, http.MethodPatch, "/v1/topics/order.close", `{"rate": "50/s", "jitter": null, "breaker": {"failures": 3}}`)
	require.Equal(t, `~ update topic order.close
    breaker.failures: 3 -> (not set)
    jitter: (not set) -> 0.5
    rate: 50/s -> 10/s
`, planText(s.plan(t, shop, Options{})))
	var out bytes.Buffer
	printer, err := output.New(output.Options{Out: &out, Format: output.Table})
	require.NoError(t, err)
	require.NoError(t, s.plan(t, shop, Options{}).Print(printer))
	require.Contains(t, out.String(), "rate: 50/s -> 10/s\n0 to create, 1 to update, 0 to remove, 3 unchanged\n")
	out.Reset()
	printer, err = output.New(output.Options{Out: &out, Format: output.JSONL})
	require.NoError(t, err)
	require.NoError(t, s.plan(t, shop, Options{}).Print(printer))
	text, err := json.Marshal(s.plan(t, shop, Options{}).Changes[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"action": "update", "kind": "topic", "name": "order.close", "file": "-:3", "members": [
		{"member": "breaker.failures", "old": 3, "new": null}, {"member": "jitter", "old": null, "new": 0.5}, `+
		`{"member": "rate", "old": "50/s", "new": "10/s"}]}`, string(text))
	require.Equal(t, string(text)+"\n", out.String())
}

// A pause is not of the files, except for that of a schedule whose file names it.
func TestDiff_LeavesPausesAlone(t *testing.T) {
	s := newServer(t)
	s.apply(t, shop, Options{})
	for _, path := range []string{
		"/v1/topics/order.close", "/v1/topics/order.close/lanes/other", "/v1/schedules/nightly",
	} {
		s.do(t, http.MethodPost, path+"/pause", `{"note": "x"}`)
	}
	require.Empty(t, s.plan(t, shop, Options{}).Changes)
	named := strings.Replace(shop, "    timezone:", "    paused: false\n    timezone:", 1)
	require.Equal(t, "~ update schedule nightly\n    paused: true -> false\n", planText(s.plan(t, named, Options{})))
}

func TestRead_ReportsAllFaultsWithTheirLines(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("a.yaml", `managed_by: shop
topic: {}
topics:
  a: {workers: 1, workers: 2}
  b: [1]
  c:
    paused: true
    secrets: []
    revision: 3
    jitter: .inf
  a: {}
lanes:
  a: 5
`)
	write("b.yml", "managed_by: mall\ntopics:\n  a: {}\n---\nschedules: {s: {managed_by: x}}\n")
	write("c.json", "{\n\"lanes\": {\"a\": {\"b\": {\"ordered\": !!binary aGk=}}},\n")
	write("ignored.txt", "{")
	_, err := Read([]string{dir}, os.ReadFile)
	require.Equal(t, []string{
		"a.yaml:2: topic is not a key: there are managed_by, topics, lanes and schedules",
		"a.yaml:11: a is set twice, also in line 4",
		"a.yaml:4: workers is set twice, also in line 4",
		"a.yaml:5: topic b must be a mapping of its members",
		"a.yaml:10: .inf is not a number in JSON",
		"a.yaml:7: topic c: paused is state, which files do not have: use ringback topic pause",
		"a.yaml:9: topic c: revision is read-only: remove the line",
		"a.yaml:8: topic c: secrets do not belong in files: use ringback topic secret add",
		"a.yaml:13: lanes must be a mapping, NAME: VALUE",
		"b.yml:1: managed_by is mall, but shop in " + filepath.Join(dir, "a.yaml") +
			":1: files that are applied together have one",
		"b.yml:3: topic a is set twice, also in " + filepath.Join(dir, "a.yaml") + ":4",
		"b.yml:5: schedule s: managed_by belongs at the top of the file, and holds for all that it has",
	}, withoutLast(faultsIn(t, err, dir)))
	require.Contains(t, faultsIn(t, err, dir)[12], "c.json: line 2")
	invalid, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	require.Equal(t, Invalid, invalid.Reason)
	require.True(t, strings.HasPrefix(err.Error(), "the files have 13 faults; nothing is changed\n"))

	_, err = Read([]string{"-"}, content("topics: {a: {}}\n"))
	require.ErrorContains(t, err, "-:1: managed_by is required")
	_, err = Read([]string{"-"}, content("managed_by: my shop\ntopics: {a: {}, b: {}}\n"))
	require.Equal(t, []string{"-:1: managed_by must be 1 to 64 of A-Z a-z 0-9 . _ : / and -"}, faultsIn(t, err, ""))
	for _, text := range []string{"\xff\xfea\x00:\x00", "{\x00}\x00"} {
		_, err = Read([]string{"-"}, content(text))
		require.Equal(t, []string{"-: is in UTF-16: save or send it as UTF-8"}, faultsIn(t, err, ""))
	}
	_, err = Read([]string{"-"}, content(""))
	require.ErrorContains(t, err, "managed_by is required")
	_, err = Read([]string{filepath.Join(dir, "none.yaml")}, os.ReadFile)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Read([]string{t.TempDir()}, os.ReadFile)
	require.ErrorContains(t, err, "has no file with the ending .yaml")
	for _, text := range []string{"- a\n", "managed_by: " +
		"[a]\n", "topics: {[a]: {}}\n", "a: &a [*a]\n", "topics: {x: &a {b: *a}}\n"} {
		_, err = Read([]string{"-"}, content(text))
		require.ErrorAs(t, err, new(*Error), text)
	}
}

func withoutLast(faults []string) []string { return faults[:len(faults)-1] }

// faultsIn returns the faults without the folder at their beginning.
func faultsIn(t *testing.T, err error, dir string) []string {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	require.True(t, ok, "%v", err)
	var all []string
	for _, fault := range e.Faults {
		all = append(all, strings.TrimPrefix(fault, dir+"/"))
	}
	return all
}

// What aliases repeat is counted: merges of merges, too, which would take for ever.
func TestRead_BoundsWhatMergesRepeat(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 {b: 1}\n")
	for i := range 50 {
		fmt.Fprintf(&b, "a%d: &a%d {<<: [*a%d, *a%d]}\n", i+1, i+1, i, i)
	}
	for _, text := range []string{
		"managed_by: shop\ntopics: &a {<<: [*a, *a]}\n",
		b.String() + "managed_by: shop\ntopics: *a50\n",
		b.String() + "managed_by: shop\ntopics: {a: *a50, b: {}, c: 5}\n",
	} {
		_, err := Read([]string{"-"}, content(text))
		e, ok := errors.AsType[*Error](err)
		require.True(t, ok, "%v", err)
		faults := slices.DeleteFunc(e.Faults,
			func(fault string) bool { return strings.Contains(fault, "is not a key") })
		require.Len(t, faults, 1)
		require.Contains(t, faults[0], "has more than 1000000 values, or 100 levels")
	}
}

func TestPlan_ReportsWhatTheServerRefusesWithFileAndLine(t *testing.T) {
	s := newServer(t)
	_, err := NewPlan(t.Context(), s.call, parse(t, `managed_by: shop
topics:
  a:
    workers: 0
    color: red
    breaker:
      open: 5h
  b/c: {}
lanes:
  a:
    l: {url: ftp://x}
schedules:
  s:
    cron: 61 * * * *
    job: {labels: {a: 5}}
`), Options{})
	e, ok := errors.AsType[*Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, Refused, e.Reason)
	require.Regexp(t, `(?m)^-:4: topic a: workers must be 1 to 10000$`, err.Error())
	require.Regexp(t, `(?m)^-:5: topic a: color is not a field of a topic$`, err.Error())
	require.Regexp(t, `(?m)^-:7: topic a: breaker.open must be `, err.Error())
	require.Regexp(t, `(?m)^-:8: topic b/c: `, err.Error())
	require.Regexp(t, `(?m)^-:11: lane l of a: url `, err.Error())
	require.Regexp(t, `(?m)^-:14: schedule s: cron `, err.Error())
	require.Regexp(t, `(?m)^-:15: schedule s: job.labels.a `, err.Error())
	require.Zero(t, s.changes.Load())
}

func TestPlan_RefusesSecretsInFiles(t *testing.T) {
	s := newServer(t)
	const file = "managed_by: shop\ntopics:\n  a:\n    url: https://a.example/\n    headers:\n      authorization: " +
		"Bearer x\n"
	_, err := NewPlan(t.Context(), s.call, parse(t, file), Options{})
	require.ErrorContains(t, err,
		"-:6: topic a: headers.authorization is a secret, which files do not have: set it by ringback topic set")

	// What the server has stays, whether the file has the placeholder or nothing.
	s.do(t, http.MethodPut, "/v1/topics/a",
		`{"url": "https://a.example/", "headers": {"Authorization": "Bearer x", "X-A": "1"}}`)
	for _, headers := range []string{"{X-A: 1}", `{x-a: "1"}`, `{X-A: "1", authorization: "[redacted]"}`} {
		text := "managed_by: shop\ntopics:\n  a:\n    url: https://a.example/\n    headers: " + headers + "\n"
		if headers == "{X-A: 1}" {
			_, err = NewPlan(t.Context(), s.call, parse(t, text), Options{})
			require.ErrorContains(t, err, "-:5: topic a: headers.X-A ", "a number is no header")
			continue
		}
		require.Equal(t, "~ update topic a\n    managed_by: (not set) -> shop\n", planText(s.plan(t, text, Options{})))
	}
	require.NotContains(t, fmt.Sprint(err), "Bearer")
}

func TestPrune_RemovesOnlyWhatTheFilesManage(t *testing.T) {
	s := newServer(t)
	s.do(t, http.MethodPut, "/v1/topics/unmanaged", `{"workers": 5}`)
	s.do(t, http.MethodPut, "/v1/topics/billing", `{"managed_by": "billing"}`)
	s.do(t, http.MethodPut, "/v1/topics/unmanaged/lanes/l", `{"lane_rate": "1/s"}`)
	s.do(t, http.MethodPut, "/v1/topics/_callbacks", `{"workers": 5, "managed_by": "shop"}`)
	s.apply(t, shop, Options{})
	const less = "managed_by: shop\ntopics: {order.ship: }\n"
	require.Equal(t, "+ create topic order.ship\n    managed_by: shop\n", planText(s.plan(t, less, Options{})))
	p := s.plan(t, less, Options{Prune: true})
	require.Equal(t, 2, p.Count(Remove))
	require.Contains(t, planText(p),
		"- remove topic order.close\n    with lane other\n    with lane shop.example:443\n")
	var order []string
	require.NoError(t, p.Apply(t.Context(), s.call, func(c *Change) { order = append(order, c.Done()) }))
	require.ElementsMatch(t, []string{"created topic order.ship", "updated topic _callbacks"}, order[:2])
	require.Equal(t, "removed schedule nightly", order[2])
	require.Equal(t, "removed topic order.close", order[3])
	var names []string
	for _, item := range s.do(t, http.MethodGet, "/v1/topics?defaults=false", "")["items"].([]any) {
		names = append(names, item.(map[string]any)["topic"].(string))
	}
	require.Equal(t, []string{"_callbacks", "billing", "order.ship", "unmanaged"}, names)
	require.Nil(t, s.do(t, http.MethodGet, "/v1/topics/_callbacks?defaults=false", "")["workers"])
	require.Empty(t, s.plan(t, less, Options{Prune: true}).Changes)
}

// A topic that cannot be removed keeps its lanes with their settings, and the other removals are made.
func TestPrune_KeepsTheLanesOfATopicWithJobs(t *testing.T) {
	s := newServer(t)
	s.apply(t, shop, Options{})
	s.do(t, http.MethodPost, "/v1/jobs", `{"topic": "order.close", "url": "https://a.example/", "delay": "1h"}`)
	s.apply(t, "managed_by: shop\ntopics: {a: , z: }\n", Options{})
	s.do(t, http.MethodPost, "/v1/jobs", `{"topic": "a", "url": "https://a.example/", "delay": "1h"}`)
	p := s.plan(t, "managed_by: shop\ntopics: {order.ship: }\n", Options{Prune: true})
	var made []string
	err := p.Apply(t.Context(), s.call, func(c *Change) { made = append(made, c.Done()) })
	require.Equal(t, []string{"created topic order.ship", "removed schedule nightly", "removed topic z"}, made)
	require.Regexp(t, "(?s)^remove topic a: .*\nremove topic order.close: .*\n3 of 5 changes were made", err.Error())
	require.ErrorIs(t, err, client.ErrConflict)
	require.Equal(t, "5/s", s.do(t, http.MethodGet, "/v1/topics/order.close/lanes/shop.example:443", "")["lane_rate"])
}

// Answers to a token without bodies have placeholders, which compare as equal, and would be written as bodies.
func TestPlanAndDump_NeedATokenThatMayReadBodies(t *testing.T) {
	s := newServer(t)
	s.apply(t, shop, Options{})
	asked := 0
	noBodies := func(ctx context.Context, r client.Request) (json.RawMessage, error) {
		if r.Path == "/v1/whoami" {
			asked++
			return json.RawMessage(`{"bodies": false}`), nil
		}
		return s.call(ctx, r)
	}
	const body = "      body: {b: 1.0, a: [null, true]}\n"
	for _, text := range []string{shop, strings.Replace(shop, body, "", 1)} {
		_, err := NewPlan(t.Context(), noBodies, parse(t, text), Options{})
		require.ErrorIs(t, err, ErrNoBodies)
	}
	_, _, err := Dump(t.Context(), noBodies, "")
	require.ErrorIs(t, err, ErrNoBodies)
	require.Equal(t, 3, asked)
	_, _, err = Dump(t.Context(), noBodies, "mall")
	require.NoError(t, err)
	_, err = NewPlan(t.Context(), noBodies, parse(t, "managed_by: shop\ntopics: {order.close: }\n"), Options{})
	require.NoError(t, err)
	require.Equal(t, 3, asked, "no schedule has a body")

	_, err = Read([]string{"-"}, content(strings.Replace(shop, body, "      body_text: '[redacted]'\n", 1)))
	require.ErrorContains(t, err, "-:22: schedule nightly: job.body_text is a placeholder: write the body itself")
}

// A topic that stays because of its lanes is not pushed when its jobs wait for consumers, and the question is about it,
// too.
func TestPrune_AsksBeforeATopicLosesItsSettings(t *testing.T) {
	s := newServer(t)
	s.apply(t, "managed_by: shop\ntopics: {pulled: {deliver: pull, workers: 5}, gone: {}}\n", Options{})
	s.do(t, http.MethodPut, "/v1/topics/pulled/lanes/l", `{"lane_rate": "1/s"}`)
	const less = "managed_by: shop\ntopics: {gone: }\n"
	p := s.plan(t, less, Options{Prune: true})
	require.Equal(t,
		"~ update topic pulled\n    managed_by: shop -> (not set)\n    workers: 5 -> (not set)\n", planText(p))
	require.Equal(t, "Give the defaults to what cannot be removed (pulled)?", p.Question())
	p = s.plan(t, "managed_by: shop\n", Options{Prune: true})
	require.Equal(t, "Remove what is marked with - (1) for good, with signing secrets and secret headers, "+
		"and give the defaults to what cannot be removed (pulled)?", p.Question())
	require.NoError(t, p.Apply(t.Context(), s.call, func(*Change) {}))
	require.Equal(t, "pull", s.do(t, http.MethodGet, "/v1/topics/pulled", "")["deliver"])
	require.Empty(t, s.plan(t, "managed_by: shop\n", Options{Prune: true}).Changes)
	require.Empty(t, s.plan(t, shop, Options{Prune: true}).Question())
}

func TestPlan_LeavesWhatOtherFilesManage(t *testing.T) {
	s := newServer(t)
	s.do(t, http.MethodPut, "/v1/topics/order.close", `{"managed_by": "billing"}`)
	s.do(t, http.MethodPut, "/v1/topics/order.close/lanes/other", `{"managed_by": "billing"}`)
	_, err := NewPlan(t.Context(), s.call, parse(t, shop), Options{})
	e, ok := errors.AsType[*Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, Conflict, e.Reason)
	require.Equal(t, []string{
		"-:3: topic order.close is managed by billing: remove it there or here, or pass --take-over",
		"-:13: lane other of order.close is managed by billing: remove it there or here, or pass --take-over",
	}, e.Faults)
	s.apply(t, shop, Options{TakeOver: true})
	require.Equal(t, "shop", s.do(t, http.MethodGet, "/v1/topics/order.close", "")["managed_by"])
	require.Empty(t, s.plan(t, shop, Options{}).Changes)
}

// An edit between the comparison and the change is not overwritten. What was done is said, and a repeat goes on.
func TestApply_DoesNotOverwriteAnEditInBetween(t *testing.T) {
	s := newServer(t)
	s.do(t, http.MethodPut, "/v1/topics/order.close/lanes/other", `{"lane_rate": "7/s"}`)
	p := s.plan(t, shop, Options{})
	s.do(t, http.MethodPut, "/v1/topics/order.close/lanes/other", `{"lane_rate": "8/s"}`)
	var done []string
	err := p.Apply(t.Context(), s.call, func(c *Change) { done = append(done, c.Done()) })
	require.ErrorIs(t, err, client.ErrRevision)
	// The topic, which the lane had created, was compared before: so it is written.
	require.Regexp(t, `^update lane other of order.close: it has changed since it was compared: apply the files `+
		`again\n[12] of 4 changes were made: a repeat goes on`, err.Error())
	require.Contains(t, done, "updated topic order.close")
	require.Equal(t, "8/s", s.do(t, http.MethodGet, "/v1/topics/order.close/lanes/other", "")["lane_rate"])
	s.apply(t, shop, Options{})
	require.Empty(t, s.plan(t, shop, Options{}).Changes)

	// Something that was created in between, too.
	p = s.plan(t, "managed_by: mall\ntopics: {new: {}}\n", Options{})
	s.do(t, http.MethodPut, "/v1/topics/new", `{"workers": 3}`)
	err = p.Apply(t.Context(), s.call, func(*Change) {})
	require.ErrorIs(t, err, client.ErrRevision)
}

func TestApply_GoesOnAfterAFailure(t *testing.T) {
	s := newServer(t)
	failed := false
	s.before = func(_, path string) error {
		if strings.HasPrefix(path, "/v1/schedules") && !failed {
			failed = true
			return &client.Problem{Status: http.StatusServiceUnavailable, Code: "store_unavailable"}
		}
		return nil
	}
	err := s.plan(t, shop, Options{}).Apply(t.Context(), s.call, func(*Change) {})
	require.ErrorIs(t, err, client.ErrUnavailable)
	require.ErrorContains(t, err, "3 of 4 changes were made")
	require.Equal(t, []string{"schedule nightly"}, names(s.plan(t, shop, Options{})))
	s.apply(t, shop, Options{})
	require.Empty(t, s.plan(t, shop, Options{}).Changes)

	// A removal that another one has made is done.
	p := s.plan(t, "managed_by: shop\n", Options{Prune: true})
	s.do(t, http.MethodDelete, "/v1/schedules/nightly", "")
	require.NoError(t, p.Apply(t.Context(), s.call, func(*Change) {}))
	require.ErrorIs(t, forEach(canceled(t), 3, func(context.Context, int) error { return nil }), context.Canceled)
}

// isLanes reports whether a path is that of a topic's lanes.
func isLanes(path string) bool { return strings.HasSuffix(path, "/lanes?limit=500") }

// An interrupt ends what reads, but not a change that is begun.
func TestInterrupt_EndsReadsOnly(t *testing.T) {
	s := newServer(t)
	s.apply(t, shop, Options{})
	p := s.plan(t, "managed_by: shop\ntopics: {new: }\n", Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	interrupted := func(ctx context.Context, r client.Request) (json.RawMessage, error) {
		if isLanes(r.Path) || r.Path == "/v1/topics/new" {
			cancel()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		return s.call(ctx, r)
	}
	require.ErrorIs(t, p.Apply(ctx, interrupted, func(*Change) {}), context.Canceled)
	s.do(t, http.MethodGet, "/v1/topics/new", "")
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	_, _, err := Dump(ctx, func(ctx context.Context, r client.Request) (json.RawMessage, error) {
		if isLanes(r.Path) {
			cancel()
			require.ErrorIs(t, ctx.Err(), context.Canceled, "the read ends, too")
		}
		return s.call(ctx, r)
	}, "")
	require.ErrorIs(t, err, context.Canceled)
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func names(p *Plan) (all []string) {
	for _, c := range p.Changes {
		all = append(all, c.String())
	}
	return all
}

func TestDump_IsAppliedWithoutAChange(t *testing.T) {
	s := newServer(t)
	s.apply(t, shop, Options{})
	s.do(t, http.MethodPut, "/v1/topics/a",
		`{"url": "https://a.example/", "headers": {"Authorization": "Bearer hidden"}, "managed_by": "shop"}`)
	s.do(t, http.MethodPost, "/v1/topics/a/pause", "{}")
	s.do(t, http.MethodPut, "/v1/topics/order.close/lanes/unmanaged", `{"lane_rate": "1/s"}`)
	s.do(t, http.MethodPut, "/v1/topics/b",
		`{"url": "https://b.example/", "success": {"body_equals": "pay\u202e\"gpj\\\u200b\n"}, "managed_by": "shop"}`)
	text, _, err := Dump(t.Context(), s.call, "shop")
	require.NoError(t, err)
	require.NotContains(t, string(text), "hidden")
	require.NotContains(t, string(text), "paused")
	require.NotContains(t, string(text), "unmanaged")
	require.Contains(t, string(text), `"pay\u202e\"gpj\\\u200b\n"`, "an editor would not show it")
	require.True(t, strings.HasPrefix(string(text),
		"managed_by: shop\ntopics:\n  a:\n    headers:\n      Authorization: '[redacted]'\n"), string(text))
	s.dry.Store(0)
	p := s.plan(t, string(text), Options{Prune: true})
	require.Empty(t, p.Changes, planText(p))
	require.Zero(t, s.dry.Load(), "a dump is in the normal form")

	text, _, err = Dump(t.Context(), s.call, "")
	require.NoError(t, err)
	require.Contains(t, string(text), "unmanaged")
	require.True(t, strings.HasPrefix(string(text), "# managed_by: NAME "), "what has no mark does not get one")
	_, err = Read([]string{"-"}, content(text))
	require.ErrorContains(t, err, "managed_by is required")
	set, err := readFiles([]string{"-"}, content(text), false)
	require.NoError(t, err)
	p, err = NewPlan(t.Context(), s.call, set, Options{})
	require.NoError(t, err)
	require.Empty(t, p.Changes, "without a mark nothing is said of marks")

	text, _, err = Dump(t.Context(), newServer(t).call, "")
	require.NoError(t, err)
	require.Equal(t, "# managed_by: NAME   # apply needs it, and marks all of the file with it; diff does not\n{}\n",
		string(text))
}

func TestRead_UnderstandsYAMLAndJSON(t *testing.T) {
	set := parse(t, `{"managed_by": "shop", "topics": {"a": {"workers": 1e1, "url": `+
		`"http:\/\/a\u00fc\ud83d\ude00\\/", "x": null}}}`)
	require.Equal(t,
		map[string]any{"workers": json.Number("1e1"), "url": `http://aü😀\/`, "x": nil}, set.resources[0].doc)
	set = parse(t, `managed_by: shop
topics:
  a: &base {workers: 0x10, ordered: yes, jitter: .5, "on": 1_000}
  b: {<<: *base, workers: 5}
  c: *base
`)
	require.Equal(t, map[string]any{
		"workers": json.Number("16"), "ordered": "yes", "jitter": json.Number("0.5"),
		"on": json.Number("1000"),
	}, set.resources[0].doc)
	require.Equal(t, json.Number("5"), set.resources[1].doc["workers"])
	require.Equal(t, "yes", set.resources[1].doc["ordered"])
	require.Equal(t, set.resources[0].doc, set.resources[2].doc)
}

// A lane that has not changed costs no separate request.
func TestPlan_WritesOnlyWhatDiffers(t *testing.T) {
	s := newServer(t)
	var b strings.Builder
	b.WriteString("managed_by: shop\nlanes:\n  t:\n")
	for i := range 300 {
		fmt.Fprintf(&b, "    lane-%d: {lane_rate: %d/s}\n", i, i+1)
	}
	s.apply(t, b.String(), Options{})
	s.dry.Store(0)
	s.changes.Store(0)
	p := s.plan(t, strings.Replace(b.String(), " 7/s", " 8/s", 1), Options{Prune: true})
	require.Equal(t, "~ update lane lane-6 of t\n    lane_rate: 7/s -> 8/s\n", planText(p))
	require.EqualValues(t, 1, s.dry.Load())
}

func TestPlan_NeedsNoListOfTopicsForATokenWithTopics(t *testing.T) {
	s := newServer(t)
	s.apply(t, shop, Options{})
	restricted := func(ctx context.Context, r client.Request) (json.RawMessage, error) {
		if strings.HasPrefix(r.Path, "/v1/topics?") {
			return nil, &client.Problem{Status: http.StatusForbidden}
		}
		return s.call(ctx, r)
	}
	p, err := NewPlan(t.Context(), restricted, parse(t, shop), Options{})
	require.NoError(t, err)
	require.Empty(t, p.Changes)
	_, err = NewPlan(t.Context(), restricted, parse(t, shop), Options{Prune: true})
	require.ErrorIs(t, err, client.ErrForbidden)
}

// Random documents: after apply there is no difference, and a dump of it has none either, wherever it is applied.
func TestApply_LeavesNoDifferenceForRandomFiles(t *testing.T) {
	for seed := range testkit.Of[uint64](20, 60) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newServer(t)
		for range 2 { // the second one changes what the first one made
			text := randomFile(r)
			p, err := NewPlan(t.Context(), s.call, parse(t, text), Options{Prune: true})
			require.NoError(t, err, "seed %d\n%s", seed, text)
			require.NoError(t, p.Apply(t.Context(), s.call, func(*Change) {}), "seed %d\n%s", seed, text)
			p = s.plan(t, text, Options{Prune: true})
			require.Empty(t, p.Changes, "seed %d\n%s\n%s", seed, text, planText(p))
		}
		dump, _, err := Dump(t.Context(), s.call, "")
		require.NoError(t, err)
		if bytes.HasPrefix(dump, []byte("#")) {
			continue // not all has the mark
		}
		for _, target := range []*testServer{s, newServer(t)} {
			target.apply(t, string(dump), Options{Prune: true})
			again, _, err := Dump(t.Context(), target.call, "")
			require.NoError(t, err)
			require.Equal(t, string(dump), string(again), "seed %d", seed)
		}
		require.Empty(t, s.plan(t, string(dump), Options{Prune: true}).Changes)
	}
}

func randomFile(r *rand.Rand) string {
	maybe := func(members map[string]string) string {
		var lines []string
		for _, name := range slices.Sorted(slices.Values(mapKeys(members))) {
			if r.IntN(3) == 0 {
				lines = append(lines, name+": "+members[name])
			}
		}
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		return "{" + strings.Join(lines, ", ") + "}"
	}
	one := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	duration := func() string { return one("90s", "1m30s", "90", "0.5m", "1500ms", "120") }
	callback := func() string {
		return fmt.Sprintf("{url: 'https://cb.example/', %s}", inner(maybe(map[string]string{
			"method": one("POST", "PUT"), "retries": one("0", "3"), "timeout": duration(),
			"include": one("[]", "[body, query]"), "headers": "{x-c: a}",
		})))
	}
	topic := func() string {
		text := maybe(map[string]string{
			"ladder": one("[15s, 3m]", "[1.5, 90, 1h30m]"), "retries": one("0", "7"),
			"jitter": one("0", "0.5", "1.0", "5e-1"), "timeout": duration(), "max_age": duration(),
			"workers": one("5", "0x10", "1e2"), "lane_concurrency": "3", "rate": one("100/s", "6000/1m", "5/90s", `""`),
			"lane_rate": "1/s", "ordered": one("true", "false", "null"), "url": "'https://a.example/x?y=~z'",
			"headers": one("{}", "{x-a: '1', X-B: ['1', '2']}", "{X-Ü: null}", "null"),
			"success": one("{}", "{status: ['200', 2xx]}", `{body_equals: "ok\n\u0007", body_contains: 'a: b'}`),
			"breaker": one("{}", "{failures: 0}", "{open: 60}"), "give_up_on": one("[]", "['410', 4xx]"),
			"on_delivered": one("https://cb.example/", callback()), "on_dead": callback(),
			"on_backlog": one("{url: 'https://cb.example/', more_than: 1000}",
				"{url: 'https://cb.example/', older_than: 300}"), "keep_delivered": one("{}", "{for: 0, max: 5}",
				"{max_bytes: 1GiB}"), "keep_dead": "{max_bytes: 1048577, for: 36h}", "id_window": one("0", "1h"),
		})
		return strings.TrimSuffix(text, "}") + one("}", ", deliver: null}", ", deliver: push}")
	}
	lane := func() string {
		return maybe(map[string]string{
			"url": "http://b.example/", "headers": "{X-A: b}", "lane_concurrency": "3",
			"lane_rate": one("5/s", "300/60s"), "ordered": "true",
		})
	}
	schedule := func() string {
		job := maybe(map[string]string{
			"topic": "t1", "lane": "l:1", "method": one("PUT", "GET", "POST"), "headers": "{x-a: [b, c]}",
			"retries": "2", "ladder": "[90]", "timeout": duration(), "expires_in": duration(),
			"labels": "{a: b, c: 'é'}", "on_dead": one("null", callback()),
		})
		body := one("", ", body: null", ", body: {b: [1.50, 1e3, null, {c: 'x'}], a: 'é\"'}", `, body: "on"`,
			", body_text: 'a: b'", ", body_base64: AAEC", ", body_text: 'x', content_type: text/csv")
		if strings.Contains(job, "GET") {
			body = ""
		}
		job = strings.TrimSuffix(job, "}") + ", url: 'https://s.example/'" + body + "}"
		job = strings.Replace(job, "{, ", "{", 1)
		when := one("cron: '*/5 3 * * MON-FRI'", "cron: '@daily', timezone: Europe/Berlin",
			"every: 900, offset: 2m", "every: 15m")
		rest := maybe(map[string]string{
			"jitter": "60", "starts_at": one("2030-01-01T00:00:00Z", "2030-01-01T00:00:00.5+01:00"),
			"ends_at": "2040-01-01T00:00:00Z", "overlap": one("skip", "allow"),
			"catch_up": one("{}", "{window: 60m}", "{runs: all}"), "max_runs": "5", "pause_after_dead": "3",
			"paused": one("true", "false"), "note": one("'yes'", `"two\nlines\ttab"`, `"\ttab\nand"`, "'#5'"),
		})
		return strings.Replace("{"+when+", job: "+job+", "+inner(rest)+"}", ", }", "}", 1)
	}
	var b strings.Builder
	b.WriteString("managed_by: shop\n")
	section := func(key string, value func() string, names ...string) {
		fmt.Fprintf(&b, "%s:\n", key)
		for _, name := range names {
			if r.IntN(2) == 0 {
				fmt.Fprintf(&b, "  %s: %s\n", name, value())
			}
		}
	}
	section("topics", topic, "t1", "t2", "a.b")
	section("lanes", func() string { return "{'l:1': " + lane() + ", \"123\": " + lane() + "}" }, "t1", "t2", "t3")
	section("schedules", schedule, "s1", "s2")
	return strings.ReplaceAll(b.String(), "{, ", "{")
}

// inner returns a mapping without its braces.
func inner(mapping string) string { return mapping[1 : len(mapping)-1] }

func mapKeys(m map[string]string) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

func TestDump_KeepsTexts(t *testing.T) {
	for _, text := range []string{
		"\ttab\nand", "\t", " a", "a\n", "a\n\n", "\n", "- a", "'", `"`, "yes", "null", "1", "# a", "a: b",
		"\x00", "\u2028", "\ufeff", "é", "",
	} {
		for _, v := range []any{text, []any{text}, map[string]any{text: text}} {
			written, err := yaml.Marshal(toNode(map[string]any{"note": v}))
			require.NoError(t, err)
			var read map[string]any
			require.NoError(t, yaml.Unmarshal(written, &read), "%q: %s", text, written)
			require.Equal(t, v, read["note"], "%s", written)
		}
	}
}
