package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// badJobs are invalid registrations and the fields in their errors.
var badJobs = []struct {
	name   string
	body   string
	status int
	fields []string
}{
	{"no body", "", 400, nil},
	{"white space", " \n", 400, nil},
	{"cut off", `{"url": "http://a.example/"`, 400, nil},
	{"no JSON", `url=http`, 400, nil},
	{"trailing data", `{"url": "http://a.example/"} x`, 400, nil},
	{"two values", `{"url": "http://a.example/"}{}`, 400, nil},
	{"a name twice", `{"url": "http://a.example/", "url": "http://b.example/"}`, 400, nil},
	{"a name twice, once escaped", `{"url": "http://a.example/", "\u0075rl": "http://b.example/"}`, 400, nil},
	{"a label twice", `{"url": "http://a.example/", "labels": {"a": "1", "a": "2"}}`, 400, nil},
	{"not UTF-8", "{\"url\": \"http://a.example/\xff\"}", 400, nil},
	{"two byte order marks", "\xef\xbb\xbf\xef\xbb\xbf{}", 400, nil},
	{"UTF-16", "\xff\xfe{\x00}\x00", 400, nil},
	{"UTF-16 without a mark", "{\x00}\x00", 400, nil},
	{
		"lone surrogates", `{"url": "http://a.example/\ud83d", "body_text": "a\ud83d",
		"labels": {"n": "\\\uD83d\u0061", "whole": "\ud83d\ude00"},
		"headers": {"X-A": "\ude00\ud83d", "X-B": ["", "\ud83d\ud83d\ude00"]}, "content_type": "\udfff"}`, 422,
		[]string{"/url", "/body_text", "/labels/n", "/headers/X-A", "/headers/X-B/1", "/content_type"},
	},
	{"too deep", strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), 400, nil},

	{"an array", `[]`, 422, []string{""}},
	{"null", `null`, 422, []string{""}},
	{"unknown fields", `{"uri": "x", "rate": "5/s", "URL": "x"}`, 422, []string{"/uri", "/rate", "/URL"}},
	{
		"wrong types", `{"id": 1, "url": [], "headers": "x", "retries": "9", "ladder": "15s", "labels": {"a": 1},
		"delay": true, "expires_at": 5, "timeout": null, "body_text": {}}`, 422,
		[]string{"/id", "/url", "/headers", "/retries", "/ladder", "/labels/a", "/delay", "/expires_at", "/body_text"},
	},

	{"a URL without a host", `{"url": "http:///hooks"}`, 422, []string{"/url"}},
	{"a URL of a port alone", `{"url": "http://:80/"}`, 422, []string{"/url"}},
	{"a relative URL", `{"url": "/hooks"}`, 422, []string{"/url"}},
	{"a URL with a user", `{"url": "http://me:pw@a.example/"}`, 422, []string{"/url"}},
	{"a URL of another scheme", `{"url": "ftp://a.example/"}`, 422, []string{"/url"}},
	{"a URL too long", `{"url": "http://a.example/` + strings.Repeat("a", 2048) + `"}`, 422, []string{"/url"}},
	{"a URL with a line break", `{"url": "http://a.example/\n"}`, 422, []string{"/url"}},
	{"a URL with a space in its query", `{"url": "http://a.example/?q=a b"}`, 422, []string{"/url"}},
	{"a URL with an umlaut in its query", `{"url": "http://a.example/?q=ü"}`, 422, []string{"/url"}},
	{"a URL with a line break in its query", `{"url": "http://a.example/?q=a\r\nX: y"}`, 422, []string{"/url"}},
	{"a URL with a fragment", `{"url": "http://a.example/#x"}`, 422, []string{"/url"}},
	{"a URL with a port out of range", `{"url": "http://a.example:65536/"}`, 422, []string{"/url"}},
	{
		"empty names", `{"id": "", "topic": "", "lane": "", "url": "", "method": ""}`, 422,
		[]string{"/id", "/topic", "/lane", "/url", "/method"},
	},
	{"an id with a dot", `{"id": "a.b"}`, 422, []string{"/id"}},
	{"an id too long", `{"id": "` + strings.Repeat("a", 65) + `"}`, 422, []string{"/id"}},
	{"an id of ours", `{"id": "rb:1"}`, 422, []string{"/id"}},
	{"a topic outside its alphabet", `{"topic": "a b"}`, 422, []string{"/topic"}},
	{"a topic and a lane that no path can hold", `{"topic": "..", "lane": "."}`, 422, []string{"/topic", "/lane"}},
	{"a topic of ours", `{"topic": "_a"}`, 422, []string{"/topic"}},
	{"a lane outside its alphabet", `{"lane": "a/b"}`, 422, []string{"/lane"}},
	{"a lane too long", `{"lane": "` + strings.Repeat("a", 129) + `"}`, 422, []string{"/lane"}},
	{"another method", `{"method": "HEAD"}`, 422, []string{"/method"}},
	{
		"a label outside its alphabet", `{"labels": {"a b": "1", "rb.x": "2", "": "3"}}`, 422,
		[]string{"/labels/", "/labels/a b", "/labels/rb.x"},
	},
	{"a label too long", `{"labels": {"a": "` + strings.Repeat("a", 257) + `"}}`, 422, []string{"/labels/a"}},
	{"too many labels", `{"labels": {"1":"","2":"","3":"","4":"","5":"","6":"","7":"","8":"","9":"","10":"","11":"",
		"12":"","13":"","14":"","15":"","16":"","17":""}}`, 422, []string{"/labels"}},

	{"a delay below zero", `{"delay": "-1s"}`, 422, []string{"/delay"}},
	{"a delay of eleven years", `{"delay": "4015d"}`, 422, []string{"/delay"}},
	{"a delay beyond all numbers", `{"delay": 1e300}`, 422, []string{"/delay"}},
	{"a delay without a unit", `{"delay": "30"}`, 422, []string{"/delay"}},
	{"a run_at eleven years ahead", `{"run_at": "2999-01-01T00:00:00Z"}`, 422, []string{"/run_at"}},
	{"a run_at that is no time", `{"run_at": "tomorrow"}`, 422, []string{"/run_at"}},
	{"both delay and run_at", `{"delay": "0s", "run_at": "2020-01-01T00:00:00Z"}`, 422, []string{"/run_at"}},
	{
		"both expires_in and expires_at", `{"expires_in": "1h", "expires_at": "2020-01-01T00:00:00Z"}`, 422,
		[]string{"/expires_at"},
	},
	{"an expiry of zero", `{"expires_in": "0s"}`, 422, []string{"/expires_in"}},
	{"retries out of range", `{"retries": 1001}`, 422, []string{"/retries"}},
	{"retries below zero", `{"retries": -1}`, 422, []string{"/retries"}},
	{"broken retries", `{"retries": 1.5}`, 422, []string{"/retries"}},
	{"retries beyond all numbers", `{"retries": 99999999999999999999}`, 422, []string{"/retries"}},
	{"an empty ladder", `{"ladder": []}`, 422, []string{"/ladder"}},
	{"a ladder too long", `{"ladder": [` + strings.Repeat(`"1s",`, 100) + `"1s"]}`, 422, []string{"/ladder"}},
	{
		"rungs out of range", `{"ladder": ["1s", "0s", "31d", "x", null]}`, 422,
		[]string{"/ladder/1", "/ladder/2", "/ladder/3", "/ladder/4"},
	},
	{"a timeout too short", `{"timeout": "99ms"}`, 422, []string{"/timeout"}},
	{"a timeout of zero", `{"timeout": 0}`, 422, []string{"/timeout"}},
	{"a timeout too long", `{"timeout": "11m"}`, 422, []string{"/timeout"}},

	{
		"headers with line breaks", `{"headers": {"X-A": "a\r\nX-B: b", "X-C": ["ok", "a\nb"], "X-D": "\u0000"}}`, 422,
		[]string{"/headers/X-A", "/headers/X-C", "/headers/X-D"},
	},
	{
		"headers with bad names", `{"headers": {"X A": "1", "": "2", "X/A": "3"}}`, 422,
		[]string{"/headers/", "/headers/X A", "/headers/X~1A"},
	},
	{
		"reserved headers", `{"headers": {"Host": "a", "content-length": "1", "Webhook-Id": "x", "RINGBACK-Topic": "x",
		"Transfer-Encoding": "chunked", "Connection": "close", "Upgrade": "h2c", "TE": "x", "Trailer": "x",
		"Keep-Alive": "x", "Proxy-Authorization": "x"}}`, 422,
		[]string{
			"/headers/Connection", "/headers/Host", "/headers/Keep-Alive", "/headers/Proxy-Authorization",
			"/headers/RINGBACK-Topic", "/headers/TE", "/headers/Trailer", "/headers/Transfer-Encoding",
			"/headers/Upgrade", "/headers/Webhook-Id", "/headers/content-length",
		},
	},
	{"a header in two spellings", `{"headers": {"X-A": "1", "x-a": "2"}}`, 422, []string{"/headers/x-a"}},
	{"a header without a value", `{"headers": {"X-A": []}}`, 422, []string{"/headers/X-A"}},
	{"headers too large", `{"headers": {"X-A": "` + strings.Repeat("a", 32<<10) + `"}}`, 422, []string{"/headers"}},
	{"headers without end", `{"headers": {` + manyMembers(20_000) + `}}`, 422, []string{"/headers"}},
	{"labels without end", `{"labels": {` + manyMembers(20_000) + `}}`, 422, []string{"/labels"}},
	{
		"values without end", `{"headers": {"X-A": [` + strings.Repeat(`"",`, 20_000) + `""]}}`,
		422,
		[]string{"/headers"},
	},
	{"a ladder without end", `{"ladder": [` + strings.Repeat(`1,`, 20_000) + `1]}`, 422, []string{"/ladder"}},
	{"a redacted secret", `{"headers": {"Authorization": "[redacted]"}}`, 422, []string{"/headers/Authorization"}},
	{"a content type with a line break", `{"body": 1, "content_type": "a\nb"}`, 422, []string{"/content_type"}},
	{
		"two content types", `{"body": 1, "content_type": "a/b", "headers": {"content-type": "c/d"}}`, 422,
		[]string{"/content_type"},
	},

	{
		"callbacks that cannot be called",
		`{"on_delivered": "ftp://a.example", "on_dead": {"url": "http://me:pw@a.example/", "method": "HEAD",
			"headers": {"Host": "x", "X A": "1", "X-B": null, "Content-Type": "a/b", "X-Token": "[redacted]"}, ` +
			`"retries": -1, "timeout": "11m",
			"include": ["secrets"], "more": 1}}`, 422,
		[]string{
			"/on_delivered/url", "/on_dead/url", "/on_dead/method", "/on_dead/headers/Host", "/on_dead/headers/X A",
			"/on_dead/headers/Content-Type", "/on_dead/headers/X-Token", "/on_dead/retries",
			"/on_dead/timeout", "/on_dead/include/0", "/on_dead/more",
		},
	},
	{"callbacks that are none", `{"on_delivered": 5, "on_dead": []}`, 422, []string{"/on_delivered", "/on_dead"}},
	{
		"callbacks without a URL", `{"on_delivered": "", "on_dead": {"method": "POST"}}`, 422,
		[]string{"/on_delivered/url", "/on_dead/url"},
	},
	{"a callback's name twice", `{"on_dead": {"url": "http://a.example/", "url": "http://b.example/"}}`, 400, nil},

	{"two kinds of body", `{"body": null, "body_text": "x"}`, 422, []string{"/body"}},
	{"a body that is no base64", `{"body_base64": "*"}`, 422, []string{"/body_base64"}},
	{"a body too large", `{"body_text": "` + strings.Repeat("a", 256<<10+1) + `"}`, 413, []string{"/body_text"}},
	{"a request too large", `{"body": "` + strings.Repeat("a", 3<<20) + `"}`, 413, nil},
	{
		"many faults at once", `{"id": "a.b", "url": "x", "retries": -1, "ladder": ["0s"], "headers": {"Host": "x"},
		"labels": {"a b": ""}, "more": 1, "delay": "-1s"}`, 422,
		[]string{"/more", "/id", "/url", "/ladder/0", "/retries", "/delay", "/headers/Host", "/labels/a b"},
	},
}

// manyMembers returns n members of an object.
func manyMembers(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"x%d": ""`, i)
	}
	return strings.Join(all, ",")
}

func TestRegister_RefusesInvalidFieldsAndStoresNothing(t *testing.T) {
	for _, c := range badJobs {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			w := call(t, handlerOf(f), http.MethodPost, "/v1/jobs", c.body, "Content-Type", "application/json")
			p := problemIn(t, w)
			require.Equal(t, c.status, w.Code, w.Body.String())
			require.ElementsMatch(t, c.fields, p.fields(), w.Body.String())
			for _, e := range p.Errors {
				require.NotEmpty(t, e.Detail)
			}
			f.requireUnchanged(t)
		})
	}
}

func TestBatch_RefusesInvalidJobsAlone(t *testing.T) {
	for _, c := range badJobs {
		if c.status == http.StatusBadRequest && !strings.Contains(c.name, "twice") ||
			c.fields == nil && c.status == 413 {
			continue // these leave nothing of the batch to read
		}
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			w := call(t, handlerOf(f), http.MethodPost, "/v1/batch",
				`{"jobs": [{"id": "first"}, `+c.body+`, {"id": "last"}]}`)
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			results, _ := decodeResponse(t, w)["results"].([]any)
			require.Len(t, results, 3)
			registered := map[string]any{"status": 201.0, "state": "scheduled", "durability": nil, "error": nil}
			registered["index"], registered["id"] = 0.0, "first"
			require.Equal(t, registered, results[0])
			registered["index"], registered["id"] = 2.0, "last"
			require.Equal(t, registered, results[2])
			bad, _ := results[1].(map[string]any)
			require.EqualValues(t, 1, bad["index"])
			require.Contains(t, bad, "id")
			require.EqualValues(t, c.status, bad["status"])
			require.Len(t, f.news, 2)
		})
	}
}

func TestCheckJSON_NamesThePositionOfAnError(t *testing.T) {
	w := call(t, handlerOf(newFake()), http.MethodPost, "/v1/jobs", "{\n  \"id\": nil\n}")
	require.Contains(t, problemIn(t, w).Detail, "line 2, column 10")
}

func TestFieldErrors_BeyondAHundredAreCounted(t *testing.T) {
	var body strings.Builder
	for i := range 300 {
		body.WriteString(`"` + strings.Repeat("x", i+1) + `": 1,`)
	}
	w := call(t, handlerOf(newFake()), http.MethodPost, "/v1/jobs", "{"+body.String()+`"id": "a.b"}`)
	p := problemIn(t, w)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Len(t, p.Errors, request.MaxFieldErrors+1)
}

func TestContentType_MustBeJSON(t *testing.T) {
	for _, kind := range []string{
		"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
		"application/x-ndjson", ";", "json",
	} {
		for _, target := range []string{"POST /v1/jobs", "POST /v1/batch", "PATCH /v1/jobs/a", "PUT /v1/topics/a"} {
			if kind == request.ContentTypeNDJSON && target == "POST /v1/batch" {
				continue // a stream
			}
			f := newFake()
			method, path, _ := strings.Cut(target, " ")
			w := call(t, handlerOf(f), method, path, `{}`, "Content-Type", kind)
			problemIn(t, w)
			require.Equal(t, http.StatusUnsupportedMediaType, w.Code, "%s %s", target, kind)
			f.requireUnchanged(t)
		}
	}
	w := call(t, handlerOf(newFake()), http.MethodPost, "/v1/jobs", `{}`, "Content-Type", "application/x-ndjson")
	require.Contains(t, problemIn(t, w).Detail, "POST /v1/batch")
	w = call(t, handlerOf(newFake()), http.MethodPost, "/v1/batch", `{}`, "Content-Type", "text/plain")
	require.Contains(t, problemIn(t, w).Detail, "Content-Type: application/json or application/x-ndjson")
	w = call(t, handlerOf(newFake()), http.MethodPost, "/v1/jobs", `{"id":"a"}`, "Content-Type",
		"application/json; charset=utf-8")
	require.Equal(t, http.StatusCreated, w.Code)
}

func TestContentEncoding_IsRefusedByEveryRouteWithABody(t *testing.T) {
	for _, r := range new(api).routes() {
		path := strings.NewReplacer("{topic}", "a", "{lane}", "b", "{id}", "c").Replace(r.path)
		for method := range r.methods {
			if method == http.MethodGet {
				continue // its content has no meaning
			}
			for _, coding := range []string{"gzip", "br", "Identity, gzip"} {
				f := newFake()
				w := call(t, handlerOf(f), method, path, "\x1f\x8b\x08", "Content-Encoding", coding)
				require.Equal(t, http.StatusUnsupportedMediaType, w.Code, "%s %s", method, path)
				require.Equal(t, "identity", w.Header().Get("Accept-Encoding"))
				require.Contains(t, problemIn(t, w).Detail, coding)
				f.requireUnchanged(t)
			}
		}
	}
	w := call(t, handlerOf(newFake()), http.MethodPost, "/v1/jobs", `{"id":"a"}`, "Content-Encoding", "identity")
	require.Equal(t, http.StatusCreated, w.Code)
	f := newFake()
	f.jobs["a"] = job.Job{Spec: job.Spec{ID: "a"}, Progress: job.Progress{State: job.Scheduled, Version: 1}}
	w = call(t, handlerOf(f), http.MethodPost, "/v1/jobs/a/run", "", "Content-Encoding", "gzip")
	require.Equal(t, http.StatusOK, w.Code, "there is no content")
}

func TestBatch_NamesTheJobsThatItRefuses(t *testing.T) {
	long := strings.Repeat("x", 129)
	jobs := []struct {
		text string
		id   any
	}{
		{`{"id": "good"}`, "good"},
		{`{"id": "bad", "url": "nowhere"}`, "bad"},
		{`{"id": "a.b"}`, "a.b"},
		{`{"id": "` + long + `"}`, nil},
		{`{"id": 5}`, nil},
		{`{"url": "nowhere"}`, nil},
		{`[]`, nil},
		{`{"id": "down"}`, "down"},
	}
	f := newFake()
	f.register = func(n job.New) store.RoutedResult {
		if n.ID == "down" {
			return store.RoutedResult{Err: store.ErrUnavailable}
		}
		return f.insert(n)
	}
	var texts []string
	for _, j := range jobs {
		texts = append(texts, j.text)
	}
	array := call(t, handlerOf(f), http.MethodPost, "/v1/batch", `{"jobs": [`+strings.Join(texts, ",")+`]}`)
	results, _ := decodeResponse(t, array)["results"].([]any)
	lines := call(t, handlerOf(f), http.MethodPost, "/v1/batch", strings.Join(texts, "\n\n"), "Content-Type",
		request.ContentTypeNDJSON)
	streamed := strings.Split(strings.TrimSpace(lines.Body.String()), "\n")
	require.Len(t, streamed, len(jobs))
	for i, j := range jobs {
		var line any
		require.NoError(t, json.Unmarshal([]byte(streamed[i]), &line))
		for _, got := range []any{results[i], line} {
			result, _ := got.(map[string]any)
			require.EqualValues(t, i, result["index"])
			require.Equal(t, j.id, result["id"], j.text)
		}
	}
}

func TestReadJSON_AcceptsWhiteSpaceAround(t *testing.T) {
	for target, body := range map[string]string{
		"POST /v1/jobs": "\n\t {\"id\": \"a\"}\r\n ", "POST /v1/batch": " {\"jobs\": [ {} ]}\n",
		"PATCH /v1/jobs/b": " {\"retries\": 1}\n", "PUT /v1/topics/a": "\n{\"retries\": 1}",
	} {
		f := newFake()
		f.jobs["b"] = job.Job{Progress: job.Progress{State: job.Scheduled, Version: 1}}
		method, path, _ := strings.Cut(target, " ")
		w := call(t, handlerOf(f), method, path, body)
		require.Less(t, w.Code, 300, "%s: %s", target, w.Body)
	}
}

func TestReadJSON_RefusesLargeRequestsWithAndWithoutALength(t *testing.T) {
	for _, target := range []string{"/v1/jobs", "/v1/batch"} {
		f := newFake()
		body := strings.Repeat(" ", request.MaxBatchBytes+1)
		w := call(t, handlerOf(f), http.MethodPost, target, body)
		require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
		problemIn(t, w)
		r := newChunked(t, target, body)
		handlerOf(f).ServeHTTP(r.w, r.r)
		require.Equal(t, http.StatusRequestEntityTooLarge, r.w.Code)
		f.requireUnchanged(t)
	}
}

func TestLimit_FitsTheLargestBodyHoweverItIsEscaped(t *testing.T) {
	for name, value := range map[string]string{
		"body_text":   strings.Repeat(`\u001b`, 256<<10),
		"body_base64": strings.Repeat(`\u002b\/`, 256<<10/3*2) + "AA==",
	} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPost, "/v1/jobs",
			`{"id": "a", "url": "http://a.example/", "`+name+`": "`+value+`"}`)
		require.Equal(t, http.StatusCreated, w.Code, name)
	}
}

func TestLimit_FitsTheLargestJobHoweverItIsEscaped(t *testing.T) {
	escaped := func(n int) string { return strings.Repeat(`\u0061`, n) }
	headers := `{"X-A": "` + escaped(job.MaxHeaders-10) + `"}`
	target := "http://a.example/" + escaped(job.MaxURL-17)
	callback := `{"url": "` + target + `", "headers": ` + headers + `}`
	labels := make([]string, job.MaxLabels)
	for i := range labels {
		labels[i] = fmt.Sprintf(`"%s%02d": "%s"`, escaped(62), i, escaped(256))
	}
	f := newFake()
	w := call(t, handlerOf(f), http.MethodPost, "/v1/jobs", `{"id": "a", "url": "`+target+`", "body_text": "`+
		escaped(256<<10)+`", "headers": `+headers+
		`, "labels": {`+strings.Join(labels, ", ")+`}, "on_delivered": `+callback+`, "on_dead": `+callback+`}`)
	require.Equal(t, http.StatusCreated, w.Code, "%.500s", w.Body.String())
	require.Len(t, f.news[0].OnDead.URL, job.MaxURL)
}

func TestPutTopic_RefusesInvalidFields(t *testing.T) {
	cases := []struct {
		body   string
		status int
		fields []string
	}{
		{
			`{"rate": "5", "lane_rate": 5, "success": {"status": ["1xx"], "body_equals": 5, "x": 1}, "breaker": ` +
				`{"failures": -1, "open": 0, "x": 1}}`, 422,
			[]string{
				"/rate", "/lane_rate", "/success/status/0", "/success/body_equals", "/success/x", "/breaker/failures",
				"/breaker/open", "/breaker/x",
			},
		},
		{
			`{"rate": "0/s", "lane_rate": "1/31d", "success": {"status": [], "body_contains": "` +
				strings.Repeat("a", 4097) + `"}, "breaker": "x"}`, 422,
			[]string{"/rate", "/lane_rate", "/success/status", "/success/body_contains", "/breaker"},
		},
		{
			`{"on_delivered": "ftp://a", "on_dead": {"url": "http://a.example/", "method": "HEAD", "headers": ` +
				`{"Host": "x", "X-A": 5,
				"content-type": "a/b", "X-Token": "[redacted]"}, "retries": 1001, "timeout": 0, "include": ["body", ` +
				`"cookies", 5], "x": 1}}`, 422,
			[]string{
				"/on_delivered/url", "/on_dead/method", "/on_dead/headers/Host", "/on_dead/headers/X-A",
				"/on_dead/headers/content-type", "/on_dead/headers/X-Token", "/on_dead/retries", "/on_dead/timeout",
				"/on_dead/include/1", "/on_dead/include/2", "/on_dead/x",
			},
		},
		{
			`{"on_delivered": {}, "on_dead": 5, "on_backlog": "http://a.example/"}`, 422,
			[]string{"/on_delivered/url", "/on_dead", "/on_backlog"},
		},
		{`{"on_backlog": {"url": "http://a.example/"}}`, 422, []string{"/on_backlog"}},
		{
			`{"on_backlog": {"older_than": "1ms", "more_than": 0, "retries": "x", "url": "", "x": 1}}`, 422,
			[]string{
				"/on_backlog/older_than", "/on_backlog/more_than", "/on_backlog/retries",
				"/on_backlog/url", "/on_backlog/x",
			},
		},
		{`{"client_cert": "x", "secrets": []}`, 422, []string{"/client_cert", "/secrets"}},
		{`{"client_cert": {}}`, 422, []string{"/client_cert/chain", "/client_cert/key"}},
		{
			`{"client_cert": {"chain": "x", "key": "[redacted]", "password": "x"}}`, 422,
			[]string{"/client_cert/chain", "/client_cert/key", "/client_cert/password"},
		},
		{`{"client_cert": {"chain": 5, "key": 5}}`, 422, []string{"/client_cert/chain", "/client_cert/key"}},
		{
			`{"ladder": [], "retries": 1001, "jitter": 1.1, "timeout": "1ms", "max_age": 0, "workers": 0}`, 422,
			[]string{"/ladder", "/retries", "/jitter", "/timeout", "/max_age", "/workers"},
		},
		{
			`{"workers": 10001, "lane_concurrency": -1, "url": "ftp://a", "headers": {"Host": "x"}}`, 422,
			[]string{"/workers", "/lane_concurrency", "/url", "/headers/Host"},
		},
		{
			`{"give_up_on": ["410", "4xx", "4x", "099", "2xx", "1000", 5], "id_window": "366d"}`, 422,
			[]string{"/give_up_on/2", "/give_up_on/3", "/give_up_on/4", "/give_up_on/5", "/give_up_on/6", "/id_window"},
		},
		{
			`{"keep_dead": {"for": "-1s", "max": -1, "max_bytes": "x", "more": 1}, "keep_delivered": 5}`, 422,
			[]string{"/keep_dead/for", "/keep_dead/max", "/keep_dead/max_bytes", "/keep_dead/more", "/keep_delivered"},
		},
		{
			`{"ladder": 1, "jitter": "x", "max_age": {}, "headers": []}`, 422,
			[]string{"/ladder", "/jitter", "/max_age", "/headers"},
		},
		{`{"headers": {"X-Token": "[redacted]"}}`, 422, []string{"/headers/X-Token"}},
		{`{"keep_dead": {"max": 1, "max": 2}}`, 400, nil},
		{`{`, 400, nil},
	}
	for _, c := range cases {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/a", c.body)
		p := problemIn(t, w)
		require.Equal(t, c.status, w.Code, w.Body.String())
		require.ElementsMatch(t, c.fields, p.fields(), w.Body.String())
		f.requireUnchanged(t)
	}
	for _, name := range []string{"_a", "a%20b", "a%2Fb", strings.Repeat("a", 65)} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/"+name, "{}")
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, name)
		require.Equal(t, []string{"/topic"}, problemIn(t, w).fields())
		f.requireUnchanged(t)
	}
}
