package jobform_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/jobform"
	"github.com/ringback/ringback/console/web"
)

// post returns the form of a request with fields.
func post(prefix string, fields map[string]string) jobform.Form {
	values := url.Values{}
	for name, text := range fields {
		values.Set(prefix+name, strings.ReplaceAll(text, "\n", "\r\n")) // as browsers do
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return jobform.Read(r, prefix)
}

func TestForm_DescribesAJob(t *testing.T) {
	f := post("job.", map[string]string{
		"id": " order-1 ", "topic": "order", "lane": "eu", "url": "https://shop.example/", "method": "PUT",
		"headers": "x-team: shop\n\nX-Team:  b: c ", "body": "{\"big\": 12345678901234567890,\n \"e\": 1e400}\n",
		"body_as": "json", "content_type": "application/vnd.x+json", "run_at": "2026-11-24 14:30", "retries": "0",
		"ladder": "15s, 3m\n10m 1.5s", "timeout": "2s", "expires_in": "2d",
		"labels": "order=47=11\nquoted=\" \\\"x\\n\"", "on_delivered": "None",
		"on_dead": `{"url": "https://a.example/", "retries": 5, "headers": {"X-A": ["1", "2"]}, "timeout": "3s"}`,
	})
	j, errs := f.Job("job.")
	require.False(t, errs.Any(), errs)
	require.Equal(t, client.Job{
		ID: "order-1", Topic: "order", Lane: "eu", URL: "https://shop.example/", Method: "PUT",
		Headers:     client.Headers{"X-Team": {"shop", "b: c"}},
		Body:        json.RawMessage("{\"big\": 12345678901234567890,\n \"e\": 1e400}\n"),
		ContentType: "application/vnd.x+json", RunAt: time.Date(2026, 11, 24, 14, 30, 0, 0, time.UTC), Retries: new(0),
		Ladder:  []time.Duration{15 * time.Second, 3 * time.Minute, 10 * time.Minute, 1500 * time.Millisecond},
		Timeout: 2 * time.Second, ExpiresIn: 48 * time.Hour,
		Labels: map[string]string{"order": "47=11", "quoted": " \"x\n"}, OnDelivered: client.NoCallback(),
		OnDead: &client.Callback{
			URL: "https://a.example/", Retries: new(5), Headers: client.Headers{"X-A": {"1", "2"}},
			Timeout: 3 * time.Second,
		},
	}, j)
	s, errs := f.ScheduleJob("job.")
	require.False(t, errs.Any())
	require.Equal(t, j.Body, s.Body)
	require.Equal(t, j.ExpiresIn, s.ExpiresIn)
}

func TestForm_OfNothingIsAJobOfNothing(t *testing.T) {
	j, errs := post("", nil).Job("")
	require.False(t, errs.Any())
	require.Equal(t, client.Job{}, j)
}

func TestForm_ReadsBodies(t *testing.T) {
	for _, c := range []struct {
		as, text string
		want     any
		wrong    string
	}{
		{"json", "", nil, ""},
		{"json", " \n", nil, ""},
		{"json", `"a"`, json.RawMessage(`"a"`), ""},
		{"", `1`, json.RawMessage(`1`), ""},
		{"json", "{\n\"a\": 1,\n}", nil, "is not JSON in line 3: mend it, or send it as text"},
		{"text", " a\nb ", client.Text(" a\nb "), ""},
		{"base64", "AA\nH/", []byte{0, 1, 255}, ""},
		{"base64", "?", nil, "is not base64: choose another kind of body, or mend it"},
		{"kept", "", nil, ""},
		{"kept", "x", nil, "is not what the job has: choose what kind of body it is"},
	} {
		j, errs := post("", map[string]string{"body": c.text, "body_as": c.as}).Job("")
		require.Equal(t, c.wrong, errs.Of("body"), "%q", c.text)
		require.Equal(t, c.want, j.Body, "%q", c.text)
	}
}

func TestForm_SaysWhatIsWrongByField(t *testing.T) {
	for field, cases := range map[string]map[string]string{
		"delay":      {"5 minutes": "is not a duration", "-5s": "must not be negative", "90": "is not a duration"},
		"run_at":     {"tomorrow": "is not a time: write 2026-11-24 14:30"},
		"retries":    {"1.5": "is not a whole number", "many": "is not a whole number"},
		"ladder":     {"15s, soon": `"soon" is not a duration`},
		"timeout":    {"fast": "is not a duration"},
		"expires_at": {"2026-13-01": "is not a time"},
		"headers":    {"X-A: 1\nnonsense": "line 2 is not of the form Name: value", ": x": "line 1 is not"},
		"labels": {"a": "line 1 is not of the form " +
			"name=value", "a=1\na=2": "there are two labels", `a="x`: "line 1 is not"},
		"on_dead":      {`{"url": 5}`: "is not an object such as"},
		"on_delivered": {`{`: "is not an object such as"},
	} {
		for text, want := range cases {
			_, errs := post("x.", map[string]string{field: text}).Job("x.")
			require.Contains(t, errs.Of("x."+field), want, "%s %q", field, text)
			require.Len(t, errs.Fields, 1, "%s %q", field, text)
		}
	}
	_, errs := post("", map[string]string{
		"delay": "1m", "run_at": "2026-11-24", "expires_in": "1h",
		"expires_at": "2026-11-24T10:00:00+01:00",
	}).Job("")
	require.Equal(t, map[string]string{"run_at": "cannot be combined with " +
		"delay", "expires_at": "cannot be combined with expires_in"}, errs.Fields)
}

func TestErrorsOf_NamesTheFieldsOfTheForm(t *testing.T) {
	problem := &client.Problem{Status: 422, Detail: "invalid", Errors: []client.FieldError{
		{Field: "/job/headers/X-A", Detail: "is too long"},
		{Field: "/job/body_text", Detail: "is too big"},
		{Field: "/cron", Detail: "is required"},
		{Field: "/job/ladder/1", Detail: "is too short"},
	}}
	errs, ok := jobform.ErrorsOf(problem, "job", "j-", "cron")
	require.True(t, ok)
	require.Equal(t, map[string]string{"j-headers": "X-A: is too " +
		"long", "j-body": "is too big", "cron": "is required", "j-ladder": "1: is too short"}, errs.Fields)
	require.Equal(t, 422, errs.Status)
	_, ok = jobform.ErrorsOf(&client.Problem{Status: 404}, "", "")
	require.False(t, ok)
}

// stored is a job as the API shows it.
func stored() *client.JobInfo {
	return &client.JobInfo{
		ID: "order-1", Topic: "order", Lane: "shop.example:443", URL: "https://shop.example/a", Method: "PUT",
		Headers: client.Headers{"X-Team": {"shop", "b"}, "Authorization": {"[redacted]"}},
		Body:    []byte(`{"n":12345678901234567890}`), ContentType: "application/json", Retries: new(3),
		Ladder: []time.Duration{time.Second, 50 * time.Hour}, Timeout: 250 * time.Millisecond,
		Labels: map[string]string{"a": "1"}, ExpiresAt: time.Date(2026, 11, 24, 14, 30, 0, 5e6, time.UTC),
		OnDelivered: client.NoCallback(), OnDead: &client.Callback{
			URL: "https://a.example/", Method: "POST",
			Headers: client.Headers{"X-Api-Key": {"[redacted]"}, "X-B": {"2"}},
		},
	}
}

func TestOf_RegistersACopyWithoutSecrets(t *testing.T) {
	f, secrets := jobform.Of(stored())
	require.Equal(t, []string{"Authorization", "on_dead.headers.X-Api-Key"}, secrets)
	j, errs := f.Job("")
	require.False(t, errs.Any(), errs)
	require.Equal(t, client.Job{
		Topic: "order", URL: "https://shop.example/a", Method: "PUT", Headers: client.Headers{"X-Team": {"shop", "b"}},
		Body: json.RawMessage(`{"n":12345678901234567890}`), Retries: new(3),
		Ladder:  []time.Duration{time.Second, 50 * time.Hour},
		Timeout: 250 * time.Millisecond, Labels: map[string]string{"a": "1"}, OnDelivered: client.NoCallback(),
		OnDead: &client.Callback{URL: "https://a.example/", Method: "POST", Headers: client.Headers{"X-B": {"2"}}},
	}, j)
	other := stored()
	other.Lane, other.URL = "eu", "https://shop.example:8443/a"
	f, _ = jobform.Of(other)
	require.Equal(t, "eu", f[jobform.Lane])
}

func TestOf_ChoosesHowABodyIsWritten(t *testing.T) {
	for _, c := range []struct{ body, contentType, as, text, sentType string }{
		{"", "", jobform.AsJSON, "", ""},
		{"", "application/json", jobform.AsKept, "", ""},
		{"[redacted]", "text/plain", jobform.AsKept, "", ""}, // the reader may not see it
		{"{}", "application/json", jobform.AsJSON, "{}", ""},
		{"{}", "application/cloudevents+json", jobform.AsJSON, "{}", "application/cloudevents+json"},
		{"{}", "text/plain", jobform.AsText, "{}", "text/plain"},
		{"{}", "text/plain; charset=utf-8", jobform.AsText, "{}", ""},
		{"{}", "Text/Plain;charset=UTF-8", jobform.AsText, "{}", "Text/Plain;charset=UTF-8"},
		{"{", "application/json", jobform.AsText, "{", "application/json"},
		{"a\r\nb", "text/plain", jobform.AsBase64, "YQ0KYg==", "text/plain"},
		{"a\x00", "application/octet-stream", jobform.AsBase64, "YQA=", ""},
		{strings.Repeat("a", 64<<10+1), "text/plain", jobform.AsKept, "", ""},
	} {
		f, _ := jobform.Of(&client.JobInfo{Body: []byte(c.body), ContentType: c.contentType})
		require.Equal(t, []string{c.as, c.text, c.sentType},
			[]string{f[jobform.BodyAs], f[jobform.Body], f[jobform.ContentType]}, "%.20q %s", c.body, c.contentType)
	}
}

func TestOf_SurvivesABrowser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := &client.JobInfo{
			Body: rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "bytes"), ContentType: "text/x",
			Labels: rapid.MapOfN(rapid.StringMatching(`[a-z.]{1,3}`), rapid.String(), 1, 3).Draw(t, "labels"),
		}
		if rapid.Bool().Draw(t, "text") {
			stored.Body = []byte(rapid.StringN(1, 20, -1).Draw(t, "body"))
		}
		f, _ := jobform.Of(stored)
		j, errs := post("", f).Job("")
		require.False(t, errs.Any(), errs)
		require.Equal(t, stored.Labels, j.Labels)
		switch b := j.Body.(type) {
		case client.Text:
			require.Equal(t, string(stored.Body), string(b))
		case []byte:
			require.Equal(t, stored.Body, b)
		default:
			require.Empty(t, strings.TrimSpace(string(stored.Body)), "only blank bodies are lost")
		}
	})
}

func TestChange_HasTheFieldsThatDiffer(t *testing.T) {
	from := jobform.OfEdit(stored())
	_, changed, errs := post("", from).Change(from)
	require.False(t, changed)
	require.False(t, errs.Any())
	for _, c := range []struct {
		field, text string
		want        client.Change
	}{
		{"url", "https://b.example/", client.Change{URL: "https://b.example/"}},
		{"headers", "X-Team: b\nAuthorization: " +
			"[redacted]", client.Change{Headers: client.Headers{"X-Team": {"b"}, "Authorization": {"[redacted]"}}}},
		{"headers", "", client.Change{Null: []string{"headers"}}},
		{"body", `{"n":1}`, client.Change{Body: json.RawMessage(`{"n":1}`)}},
		{"body", "", client.Change{Body: client.Text("")}},
		{"body_as", "text", client.Change{Body: client.Text(`{"n":12345678901234567890}`)}},
		{"content_type", "x/json", client.Change{
			Body: json.RawMessage(`{"n":12345678901234567890}`), ContentType: "x/json",
		}},
		{"delay", "0s", client.Change{Delay: new(time.Duration(0))}},
		{"run_at", "2026-11-25", client.Change{RunAt: time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)}},
		{"retries", "9", client.Change{Retries: new(9)}},
		{"ladder", "2s", client.Change{Ladder: []time.Duration{2 * time.Second}}},
		{"ladder", "", client.Change{Null: []string{"ladder"}}},
		{"timeout", "", client.Change{Null: []string{"timeout"}}},
		{"expires_at", "", client.Change{Null: []string{"expires_at"}}},
		{"expires_in", "1h", client.Change{ExpiresIn: time.Hour}},
		{"labels", "", client.Change{Null: []string{"labels"}}},
		{"labels", "a=2", client.Change{Labels: map[string]string{"a": "2"}}},
	} {
		fields := maps.Clone(from)
		fields[c.field] = c.text
		got, changed, errs := post("", fields).Change(from)
		require.True(t, changed, c.field)
		require.False(t, errs.Any(), "%s %v", c.field, errs)
		require.Equal(t, c.want, got, "%s %q", c.field, c.text)
	}
	for field, want := range map[string]string{"url": "cannot be removed", "retries": "cannot be removed"} {
		fields := maps.Clone(from)
		delete(fields, field)
		_, _, errs := post("", fields).Change(from)
		require.Contains(t, errs.Of(field), want)
	}
}

func TestFields_HaveTextsAndErrors(t *testing.T) {
	var errs web.FormErrors
	errs.Add("j.url", "is required")
	fields := jobform.Form{jobform.URL: "x", jobform.BodyAs: jobform.AsKept}.Fields("j.", errs, jobform.Names...)
	require.Len(t, fields, len(jobform.Names))
	for _, f := range fields {
		require.NotEmpty(t, f.Label, f.Name)
		require.True(t, strings.HasPrefix(f.Name, "j."))
		switch f.Name {
		case "j.url":
			require.Equal(t, "is required", f.Error)
			require.Equal(t, "x", f.Value)
		case "j.body_as":
			require.Equal(t, jobform.AsKept, f.Options[3].To)
		}
	}
	require.Len(t, jobform.Form{}.Fields("", errs, jobform.BodyAs)[0].Options, 3)
}

func TestOfEdit_WithAHeaderWithoutAValueChangesNothing(t *testing.T) {
	from := jobform.OfEdit(&client.JobInfo{Headers: client.Headers{"X-A": {""}, "X-B": {"b", ""}}})
	require.Equal(t, "X-A:\nX-B: b\nX-B:", from[jobform.Headers])
	sent := post("", from)
	_, changed, errs := sent.Change(from)
	require.False(t, errs.Any())
	require.False(t, changed)
	require.Empty(t, sent.Differs(from))
	sent[jobform.ContentType], sent[jobform.Timeout] = "text/plain", "3s"
	require.Equal(t, []string{jobform.Body, jobform.Timeout}, sent.Differs(from))
}

// A misspelt member must not turn a callback off, or lose its retries.
func TestForm_RefusesUnknownMembersOfCallbacks(t *testing.T) {
	for text, want := range map[string]string{
		`{"uri": "https://a.example/"}`: `it has no member "uri", but url, method, headers, retries, ` +
			`timeout, include`,
		`{"url": "https://a.example/", "retry": 5}`: `it has no member "retry"`,
		`{"URL": "https://a.example/"}`:             `it has no member "URL"`,
		`{"retries": 5}`:                            "its url is missing; write none for no callback",
		`{"url": null}`:                             "its url is missing",
		`{}`:                                        "its url is missing",
		`{"url": "https://a.example/", "retries": "many"}`:    "is not an object such as",
		`{"url": "https://a.example/"} {"url": "https://b/"}`: "is not an object such as",
	} {
		j, errs := jobform.Form{jobform.URL: "https://a.example/", jobform.OnDead: text}.Job("")
		require.Contains(t, errs.Of(jobform.OnDead), want, text)
		require.Nil(t, j.OnDead, text)
	}
	j, errs := jobform.Form{jobform.OnDead: `{"url": "https://a.example/", "method": "PUT", "headers": {"A": "b"}, ` +
		`"retries": 5, "timeout": "3s", "include": ["body"]}`}.Job("")
	require.False(t, errs.Any(), errs)
	require.Equal(t, &client.Callback{
		URL: "https://a.example/", Method: "PUT", Headers: client.Headers{"A": {"b"}}, Retries: new(5),
		Timeout: 3 * time.Second, Include: []string{"body"},
	}, j.OnDead)
	for field := range reflect.TypeFor[client.Callback]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || name == "url" {
			continue
		}
		_, errs = jobform.Form{jobform.OnDead: `{"url": "https://a.example/", "` + name + `": null}`}.Job("")
		require.False(t, errs.Any(), name)
	}
}

// The texts of pages' times and of filters are those that forms read, too.
func TestParseTime_ReadsWhatPagesShow(t *testing.T) {
	for _, text := range []string{"2026-11-24 14:30 UTC", "2026-11-24T14:30Z", "2026-11-24 14:30:00.000 UTC"} {
		at, err := jobform.ParseTime(text)
		require.NoError(t, err, text)
		require.Equal(t, time.Date(2026, 11, 24, 14, 30, 0, 0, time.UTC), at)
	}
	_, err := jobform.ParseTime("2h")
	require.ErrorContains(t, err, "is not a time")
}
