package api

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// FuzzRegister sends an arbitrary registration: it is accepted, or refused with a 4xx and nothing stored, and an
// accepted job has the body that encoding/json reads.
func FuzzRegister(f *testing.F) {
	f.Add(order)
	f.Add(`{"url": "http://a.example/", "expires_at": "2030-01-31T08:00:00+24:00"}`)
	for _, c := range badJobs {
		if len(c.body) < 1<<10 {
			f.Add(c.body)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		service := newFake()
		w := call(t, handlerOf(service), http.MethodPost, "/v1/jobs", body, "Content-Type", "application/json")
		require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
		if w.Code != http.StatusCreated {
			require.Contains(t, []int{400, 413, 422}, w.Code, w.Body.String())
			service.requireUnchanged(t)
			return
		}
		require.True(t, json.Valid([]byte(body)))
		n := service.news[0]
		_, err := json.Marshal([]time.Time{n.RunAt, n.ExpiresAt})
		require.NoError(t, err)
		require.Empty(t, job.Validate(n, epoch.AddDate(-1, 0, 0)))
		var sent struct {
			Body json.RawMessage `json:"body"`
			ID   *string         `json:"id"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &sent))
		if n.BodyKind == job.BodyJSON {
			require.Equal(t, string(sent.Body), string(n.Body))
		}
		if sent.ID != nil {
			require.Equal(t, *sent.ID, n.ID)
		}
	})
}

// FuzzBatch sends an arbitrary batch: once parsed it never fails as a whole, and has a result per job.
func FuzzBatch(f *testing.F) {
	f.Add(`{"jobs": [{"id": "a"}, {"id": "a.b"}, 5, null, {"id": "c", "id": "c"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		w := call(t, handlerOf(newFake()), http.MethodPost, "/v1/batch", body, "Content-Type", "application/json")
		require.Less(t, w.Code, 500)
		if w.Code != http.StatusOK {
			return
		}
		var sent struct {
			Jobs []json.RawMessage `json:"jobs"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &sent))
		results, _ := decodeResponse(t, w)["results"].([]any)
		require.Len(t, results, len(sent.Jobs))
	})
}

// FuzzPolicy puts and patches arbitrary JSON.
func FuzzPolicy(f *testing.F) {
	f.Add(`{"ladder": ["15s"], "headers": {"X-A": null}, "keep_dead": {"max_bytes": "1GiB"}}`)
	f.Add(`{"rate": "100/s", "lane_rate": "", "success": {"status": ["2xx"], "body_equals": "ok"}, "breaker": ` +
		`{"failures": 0, "open": "1s"}}`)
	f.Add(`{"on_delivered": "http://a.example/", "on_dead": {"url": "http://a.example/", "headers": {"x-token": ` +
		`null, "x-a": "1"}, "include": ["body"]}}`)
	f.Add(`{"on_backlog": {"url": "http://a.example/", "older_than": "5m", "more_than": 5}, "client_cert": {"chain": ` +
		`"x", "key": "[redacted]"}}`)
	chain, _ := newCertificate(f)
	f.Add(`{"on_dead": {"headers": {"authorization": "[redacted]"}}, "on_backlog": {"headers": null}, "client_cert": ` +
		`{"key": null}}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, method := range []string{http.MethodPut, http.MethodPatch} {
			service := newFake()
			cert := &policy.ClientCert{Chain: chain, Key: "hunter2"}
			to := &policy.Callback{URL: "http://a.example/", Headers: map[string][]string{"Authorization": {"hunter2"}}}
			backlog := &policy.Backlog{Callback: *to, MoreThan: 1}
			service.topics["a"] = store.Topic{
				Name: "a", Revision: 1,
				Policy: policy.Topic{OnDead: to, OnBacklog: backlog, ClientCert: cert},
			}
			w := call(t, handlerOf(service), method, "/v1/topics/a", body, "Content-Type", "application/json")
			require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
			require.Equal(t, "hunter2", string(cert.Key), "what was stored is not written to")
			require.Equal(t, "http://a.example/", to.URL)
			if !strings.Contains(body, "hunter2") {
				require.NotContains(t, w.Body.String(), "hunter2")
			}
			if w.Code != http.StatusOK {
				require.Contains(t, []int{400, 413, 422}, w.Code, w.Body.String())
				continue
			}
			stored := service.topics["a"].Policy
			require.Empty(t, job.ValidateTopic(stored))
			again := call(t, handlerOf(service), http.MethodPut, "/v1/topics/a", w.Body.String())
			require.Equal(t, http.StatusOK, again.Code, "a response can be put back: %s", again.Body)
			require.JSONEq(t, withoutRevision(t, w.Body.Bytes()),
				withoutRevision(t, again.Body.Bytes()), "and changes nothing")
		}
	})
}

// withoutRevision returns a response without its revision.
func withoutRevision(t testing.TB, answer []byte) string {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(answer, &members))
	delete(members, "revision")
	text, err := json.Marshal(members)
	require.NoError(t, err)
	return string(text)
}

// FuzzLane puts and patches arbitrary JSON.
func FuzzLane(f *testing.F) {
	f.Add(`{"url": "http://a.example/", "headers": {"x-a": "1", "X-Token": "[redacted]"}, "lane_concurrency": 5, ` +
		`"lane_rate": "5/90s", "ordered": true, "paused": true, "lane": "c"}`)
	f.Add(`{"headers": null, "lane_rate": null, "lane_concurrency": null}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, method := range []string{http.MethodPut, http.MethodPatch} {
			service := newFake()
			service.own["a/b"] = store.Lane{Revision: 1, Settings: policy.Lane{
				Headers: map[string][]string{"X-Token": {"hunter2"}},
				Secrets: []policy.Secret{{ID: "s", Value: "hunter2"}},
			}}
			w := call(t, handlerOf(service), method, "/v1/topics/a/lanes/b", body, "Content-Type", "application/json")
			require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
			if w.Code != http.StatusOK {
				require.Contains(t, []int{400, 413, 422}, w.Code, w.Body.String())
				continue
			}
			stored := service.own["a/b"].Settings
			require.Empty(t, job.ValidateLane(stored))
			require.Len(t, stored.Secrets, 1)
			again := call(t, handlerOf(service), http.MethodPut, "/v1/topics/a/lanes/b", w.Body.String())
			require.Equal(t, http.StatusOK, again.Code, "a response can be put back: %s", again.Body)
			require.Equal(t, stored, service.own["a/b"].Settings, "and changes nothing")
		}
	})
}

// FuzzSecret adds an arbitrary secret: it is accepted and can sign, or refused without being repeated.
func FuzzSecret(f *testing.F) {
	f.Add(`{"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}`)
	f.Add(`{"kind": "ed25519"}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, body string) {
		service := newFake()
		w := call(t, handlerOf(service), http.MethodPost, "/v1/topics/a/secrets", body,
			"Content-Type", "application/json")
		require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
		if w.Code != http.StatusCreated {
			require.Contains(t, []int{400, 413, 415, 422}, w.Code, w.Body.String())
			service.requireUnchanged(t)
			return
		}
		text, _ := decodeResponse(t, w)["secret"].(string)
		_, err := sign.ParseSecret(text)
		require.NoError(t, err)
	})
}

// FuzzDeadLetters selects by arbitrary JSON: an accepted selection is explicit, never all dead letters by accident.
func FuzzDeadLetters(f *testing.F) {
	f.Add(`{"topic": "a", "lane": "b", "reason": "expired", "status": 503, "ended_after": "2030-01-31T08:00:00Z", ` +
		`"label": ["a:b", "c:d"], "rate": "5/s"}`)
	f.Add(`{"ids": ["a", "rb:a:0"], "url": "http://a.example/", "dry_run": true}`)
	f.Add(`{"all": true, "label": "a:b"}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/v1/dead/revive", "/v1/dead/purge"} {
			service := newFake()
			w := call(t, handlerOf(service), http.MethodPost, path, body, "Content-Type", "application/json")
			require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
			if w.Code != http.StatusAccepted {
				require.Contains(t, []int{200, 400, 413, 422}, w.Code, w.Body.String())
				service.requireUnchanged(t)
				continue
			}
			which := service.order
			for _, id := range which.IDs {
				require.True(t, job.IsID(id))
			}
			if len(which.IDs) == 0 && reflect.DeepEqual(which.Filter, everyDeadLetter) {
				var sent struct {
					All bool `json:"all"`
				}
				require.NoError(t, json.Unmarshal([]byte(body), &sent))
				require.True(t, sent.All)
			}
		}
	})
}

// FuzzCursor sends an arbitrary cursor of a list of names: it is refused with a 422, or it is the only spelling of its
// name.
func FuzzCursor(f *testing.F) {
	for _, kind := range []request.CursorKind{request.Topics, request.Lanes, request.Secrets} {
		f.Add(kind.Encode("order.close"))
	}
	for _, sent := range []string{"", "a", "dG9waWM", "bGFuZS9h=", "bGFuZS9i\n", "\x00"} {
		f.Add(sent)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		service := newFake()
		for _, name := range []string{"a", "order.close", "z"} {
			service.topics[name] = store.Topic{Name: name}
		}
		h := handlerOf(service)
		for path, kind := range map[string]request.CursorKind{
			"/v1/topics": request.Topics, "/v1/topics/a/stats": request.Lanes, "/v1/topics/a/keys": request.Secrets,
		} {
			w := call(t, h, http.MethodGet, path+"?cursor="+url.QueryEscape(sent), "")
			if sent == "" {
				require.Equal(t, http.StatusOK, w.Code)
				continue
			}
			if w.Code != http.StatusOK {
				require.Equal(t, http.StatusUnprocessableEntity, w.Code)
				require.Equal(t, []string{"?cursor"}, problemIn(t, w).fields())
				continue
			}
			text, err := base64.RawURLEncoding.DecodeString(sent)
			require.NoError(t, err)
			_, name, _ := strings.Cut(string(text), "/")
			require.Equal(t, sent, kind.Encode(name))
		}
	})
}

// FuzzConditions sends arbitrary conditions of a topic: a GET answers 200, 304 or 400, and a change is made or refused.
func FuzzConditions(f *testing.F) {
	for _, tags := range []string{
		`"7"`, `W/"7"`, `"6", "7"`, "*", "", ",", `"`, `"7" "8"`, `"-0"`, `"99999999999999999999"`,
	} {
		f.Add(tags, tags)
	}
	f.Fuzz(func(t *testing.T, match, noneMatch string) {
		service := storedSettings()
		h := handlerOf(service)
		w := call(t, h, http.MethodGet, "/v1/topics/a", "", "If-None-Match", noneMatch)
		require.Contains(t, []int{200, 304, 400}, w.Code)
		if w.Code == http.StatusNotModified {
			require.True(t, strings.Contains(noneMatch, `"7"`) || strings.TrimSpace(noneMatch) == "*")
		}
		for _, condition := range [][2]string{{"If-Match", match}, {"If-None-Match", noneMatch}} {
			w = call(t, h, http.MethodPatch, "/v1/topics/a", `{"workers": 5}`, condition[0], condition[1])
			require.Contains(t, []int{200, 400, 412}, w.Code)
			if w.Code != http.StatusOK {
				requireSameSettings(t, service, condition[0]+": "+condition[1])
				continue
			}
			require.Equal(t, "If-Match", condition[0])
			require.Contains(t, []string{`"7"`, `W/"7"`, "*"}, strings.TrimSpace(match))
			service.topics["a"] = storedSettings().topics["a"]
		}
	})
}

// everyDeadLetter is the filter of a selection without one.
var everyDeadLetter = store.Filter{
	Namespace: job.DefaultNamespace, Kind: job.KindRegistered,
	States: []job.State{job.Dead},
}

// FuzzList lists by arbitrary parameters: an accepted filter is within the bounds of package store, and its cursor
// continues the same list, and no other.
func FuzzList(f *testing.F) {
	for query := range filters {
		f.Add(query, "a", "b", int64(5), "7", 3, true)
	}
	f.Add("topic=a&cursor=eyJ2IjoxfQ", "", "", int64(0), "", 0, false)
	f.Fuzz(func(t *testing.T, query, topic, lane string, at int64, tie string, shard int, ended bool) {
		service := newFake()
		service.page = store.Page{
			More:    true,
			Reached: store.Position{Ended: ended, Topic: topic, Lane: lane, At: at, Tie: tie, Shard: shard},
		}
		get := func(query string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, "/v1/jobs", nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			handlerOf(service).ServeHTTP(w, r)
			require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
			return w
		}
		w := get(query)
		if w.Code != http.StatusOK {
			require.Contains(t, []int{400, 422}, w.Code, w.Body.String())
			return
		}
		first := service.filter
		require.True(t, first.Limit > 0 && first.Limit <= store.MaxListLimit)
		require.True(t, first.Topic == "" || job.IsTopic(first.Topic))
		require.True(t, first.Lane == "" || job.IsLane(first.Lane))
		require.LessOrEqual(t, len(first.Labels), job.MaxLabels)
		require.LessOrEqual(t, len(first.After.Topic)+len(first.After.Lane)+len(first.After.Tie), 1<<10)
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		cursor, _ := decodeResponse(t, w)["next_cursor"].(string)
		values.Set("cursor", cursor)
		if w = get(values.Encode()); w.Code == http.StatusOK && utf8.ValidString(topic+lane+tie) {
			require.Equal(t, service.page.Reached, service.filter.After)
			service.filter.After = first.After
			require.Equal(t, first, service.filter)
		}
		values.Set("order", map[bool]string{true: "newest", false: "oldest"}[first.Oldest])
		require.Equal(t, http.StatusUnprocessableEntity, get(values.Encode()).Code, "another list")
	})
}

// FuzzRedactCallback redacts an arbitrary body: the same JSON, except for secret headers.
func FuzzRedactCallback(f *testing.F) {
	f.Add([]byte(`{"job": {"headers": {"X-Auth": ["hunter2"], "A": ["1"]}, "body": 1.50}, "response": null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if request.CheckJSON(body, 1) != nil {
			return
		}
		shown := redactCallback(body)
		require.True(t, json.Valid(shown), "%s", shown)
		if !strings.Contains(string(body), "headers") && !strings.Contains(string(body), `\`) {
			require.JSONEq(t, string(body), string(shown))
		}
	})
}

// FuzzAddress requests arbitrary paths with an arbitrary If-Match.
func FuzzAddress(f *testing.F) {
	f.Add("/v1/jobs", "topic=a&state=dead&limit=5", `"3"`)
	f.Add("/v1/jobs/a", "", "")
	f.Add("/v1/topics/a/stats", "after=b", "")
	f.Add("/v1/dead", "topic=a&reason=expired&status=503", "")
	f.Add("/v1/topics/a/lanes/b/secrets/c", "", "")
	f.Fuzz(func(t *testing.T, path, query, match string) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			r := httptest.NewRequest(method, "/", nil)
			r.URL.Path, r.URL.RawQuery = path, query
			r.Header.Set("If-Match", match)
			w := httptest.NewRecorder()
			handlerOf(newFake()).ServeHTTP(w, r)
			require.Less(t, w.Code, 500)
		}
	})
}

// FuzzStream sends arbitrary NDJSON: each line that is not blank has a result, and only accepted jobs are stored.
func FuzzStream(f *testing.F) {
	f.Add("{\"id\": \"a\"}\n\n{\"id\": \"a.b\"}\n5\n{\"id\": \"c\", \"id\": \"c\"}\n{\"id\": \"d\"}", 7)
	f.Fuzz(func(t *testing.T, body string, size int) {
		service := newFake()
		r := httptest.NewRequest(http.MethodPost, "/v1/batch", &pieceReader{body, max(size, 1), io.EOF})
		r.Header.Set("Content-Type", request.ContentTypeNDJSON)
		w := httptest.NewRecorder()
		handlerOf(service).ServeHTTP(w, r)
		sent, taken := 0, 0
		for one := range strings.SplitSeq(body, "\n") {
			if strings.Trim(one, " \t\r") != "" {
				sent++
			}
		}
		results := resultsIn(t, w.Body.Bytes())
		require.Len(t, results, sent)
		for _, one := range results {
			if one.Error == nil {
				taken++
			}
		}
		require.Len(t, service.news, taken)
	})
}

// pieceReader reads size bytes of a text at a time, then returns err.
type pieceReader struct {
	text string
	size int
	err  error
}

func (p *pieceReader) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, p.err
	}
	n := copy(b, p.text[:min(p.size, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}
