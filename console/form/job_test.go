package form_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
)

// changeForm is the form that edits a job.
var changeForm = form.Of[client.Change](form.Group{Fields: form.JobFields("", "url", "headers", "body", "body_as")})

// answered is a job as the API shows it.
const answered = `{"url": "https://shop.example/a", "method": "POST",
	"headers": {"X-Team": ["shop", "b"], "X-Empty": "", "Authorization": "[redacted]"},
	"content_type": "application/json", "retries": 3, "ladder": ["1s", "50h"],
	"timeout": null, "expires_at": "2026-11-24T14:30:00.000Z", "labels": {"a": "1", "b": " \" "},
	"body": {"n":12345678901234567890}, "body_text": null, "body_base64": null}`

// sent returns the texts of a form of values in which a person changed some.
func sent(f *form.Form, values form.Values, typed form.Texts) form.Texts {
	shown := f.Texts(values)
	return f.Typed(browsed(typed), f.Typed(browsed(shown), shown))
}

func TestChanges_HasWhatDiffers(t *testing.T) {
	values := changeForm.Values(json.RawMessage(answered))
	for _, c := range []struct {
		typed form.Texts
		want  string
	}{
		{nil, `{}`},
		{form.Texts{"url": "https://b.example/"}, `{"url": "https://b.example/"}`},
		{form.Texts{"url": "", "retries": ""}, `{"url": null, "retries": null}`},
		{
			form.Texts{"headers": "authorization: [redacted]\nX-Team: b"},
			`{"headers": {"X-Team": ["b"], "Authorization": "[redacted]"}}`,
		},
		{form.Texts{"headers": "X-Empty:\nX-Team: shop\nX-Team:b\nAuthorization: [redacted]"}, `{}`},
		{form.Texts{"headers": ""}, `{"headers": null}`},
		{form.Texts{"body": `{"n":1}`}, `{"body": {"n":1}}`},
		{form.Texts{"body": ""}, `{"body_text": ""}`},
		{form.Texts{"body": "", "content_type": "x/y"}, `{"body_text": "", "content_type": "x/y"}`},
		{form.Texts{"body_as": "text"}, `{"body_text": "{\"n\":12345678901234567890}"}`},
		{form.Texts{"content_type": "x/json"}, `{"body": {"n":12345678901234567890}, "content_type": "x/json"}`},
		{form.Texts{"delay": "0s", "run_at": "2026-11-25"}, `{"delay": "0s", "run_at": "2026-11-25T00:00:00Z"}`},
		{form.Texts{"expires_at": "2026-11-24T15:30+01:00"}, `{}`},
		{form.Texts{"expires_at": "soon"}, `{"expires_at": "soon"}`},
		{form.Texts{"expires_at": "", "expires_in": "1h"}, `{"expires_at": null, "expires_in": "1h"}`},
		{form.Texts{"labels": "b=\" \\\" \"\n a = 1"}, `{}`},
		{form.Texts{"labels": "a=2=3"}, `{"labels": {"a": "2=3"}}`},
		{form.Texts{"labels": "", "ladder": ""}, `{"labels": null, "ladder": null}`},
	} {
		doc, changed, errs := changeForm.Changes(values, sent(changeForm, values, c.typed))
		require.False(t, errs.Any(), c.typed)
		require.Equal(t, c.want == `{}`, len(changed) == 0, c.typed)
		require.JSONEq(t, c.want, string(doc), c.typed)
	}
	typed := sent(changeForm, values, form.Texts{"content_type": "text/plain", "labels": ""})
	_, changed, _ := changeForm.Changes(values, typed)
	require.Equal(t, []string{"body", "labels"}, changed)
}

func TestDocument_HasBodiesByteForByte(t *testing.T) {
	for _, c := range []struct{ as, text, contentType, want string }{
		{"json", "", "", `{}`},
		{"", " \n", "", `{}`},
		{"json", "{\"big\": 12345678901234567890,\n \"e\": 1e400}", "", "{\"body\":{\"big\": " +
			"12345678901234567890,\n \"e\": 1e400}}"},
		{"", "null", "x/y", `{"body":null,"content_type":"x/y"}`},
		{"text", " a\nb ", "", `{"body_text":" a\nb "}`},
		{"base64", "?\n", "", `{"body_base64":"?"}`},
		{"kept", "", "", `{}`},
	} {
		doc, _, errs := form.Job.Document(nil, sent(form.Job, nil,
			form.Texts{"body": c.text, "body_as": c.as, "content_type": c.contentType}))
		require.False(t, errs.Any(), c.text)
		require.Equal(t, c.want, string(doc))
	}
	stored := form.Values{"body": json.RawMessage(`{"body_text":"a","content_type":"x/y"}`)}
	for typed, want := range map[string]string{
		"":    `{"body_text":"a"}`, // with its default type
		"x/y": `{"body_text":"a","content_type":"x/y"}`,
		"z":   `{"body_text":"a","content_type":"z"}`,
	} {
		doc, _, _ := form.Job.Document(stored, form.Texts{"body_as": form.AsKept, "content_type": typed})
		require.Equal(t, want, string(doc))
	}
}

func TestDocument_SaysWhatCannotBeMadeJSON(t *testing.T) {
	for name, cases := range map[string]map[string]string{
		"body":    {"{\n\"a\": 1,\n}": "is not JSON in line 3: mend it, or choose another kind"},
		"headers": {"X-A: 1\nnonsense": "line 2 must be a name and a value", ": x": "line 1 must be"},
		"labels": {
			"a": "line 1 must be a name and a value", "a=1\na=2": `line 2 has a second label "a"`,
			`a="x`: "line 1 begins with a quotation mark",
		},
		"on_dead": {`{"url": `: "is not JSON in line 1"},
	} {
		for text, want := range cases {
			_, _, errs := form.Job.Document(nil, form.Texts{name: text})
			require.Contains(t, errs.Of(name), want, text)
			require.Len(t, errs.Fields, 1, text)
		}
	}
	_, _, errs := form.Job.Document(nil, form.Texts{"body": "x", "body_as": form.AsKept})
	require.Contains(t, errs.Of("body"), "is not what the job has")
}

func TestTexts_HaveABodyAsABrowserKeepsIt(t *testing.T) {
	for _, c := range []struct{ raw, as, text, contentType string }{
		{`{"body": null, "body_text": null, "content_type": null}`, "", "", ""},
		{`{}`, "", "", ""},
		{`{"body": null}`, "json", "null", ""}, // of a schedule
		{`{"body": null, "body_text": null, "content_type": "application/json"}`, "json", "null", ""},
		{`{"body_text": "", "content_type": "text/plain"}`, "kept", "", "text/plain"},
		{`{"body_text": "[redacted]"}`, "kept", "", ""}, // the reader may not see it
		{`{"body": {}, "content_type": "application/cloudevents+json"}`, "json", "{}", "application/cloudevents+json"},
		{`{"body_text": "{}", "content_type": "application/json"}`, "text", "{}", "application/json"},
		{`{"body_text": "{}", "content_type": "text/plain; charset=utf-8"}`, "text", "{}", ""},
		{`{"body_text": "a\r\nb", "content_type": "text/plain"}`, "base64", "YQ0KYg==", "text/plain"},
		{`{"body_text": "a\u0000"}`, "base64", "YQA=", "text/plain; charset=utf-8"},
		{`{"body_base64": "YQA=", "content_type": "application/octet-stream"}`, "base64", "YQA=", ""},
		{`{"body_text": "` + strings.Repeat("a", 64<<10+1) + `"}`, "kept", "", ""},
	} {
		values := form.Job.Values(json.RawMessage(c.raw))
		texts := form.Job.Texts(values)
		require.Equal(t, []string{c.as, c.text, c.contentType},
			[]string{texts["body_as"], texts["body"], texts["content_type"]}, "%.70s", c.raw)
		_, changed, errs := form.Job.Document(values, sent(form.Job, values, nil))
		require.False(t, errs.Any(), "%.70s", c.raw)
		require.Empty(t, changed, "%.70s", c.raw)
	}
	fields := form.Job.Sections(form.Texts{"body_as": form.AsKept}, nil, web.FormErrors{})[0].Fields
	at := slices.IndexFunc(fields, func(f web.Field) bool { return f.Name == "body_as" })
	require.Equal(t, form.AsKept, fields[at].Options[3].To)
}

// A job that is made of the texts alone has the body and the labels of the one that they are of.
func TestTexts_SurviveABrowser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.MapOfN(rapid.StringMatching(`[a-z.]{1,3}`), rapid.String(), 1, 3).Draw(t, "labels")
		from := map[string]any{"labels": labels}
		body := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "bytes")
		from["body_base64"] = body
		if rapid.Bool().Draw(t, "text") {
			text := rapid.StringN(1, 20, -1).Draw(t, "body")
			body, from["body_text"] = []byte(text), text
			delete(from, "body_base64")
		}
		raw, err := json.Marshal(from)
		require.NoError(t, err)
		doc, _, errs := form.Job.Document(nil, sent(form.Job, form.Job.Values(raw), nil))
		require.False(t, errs.Any(), errs)
		var to struct {
			Labels map[string]string
			Text   string `json:"body_text"`
			Base64 []byte `json:"body_base64"`
		}
		require.NoError(t, json.Unmarshal(doc, &to))
		require.Equal(t, labels, to.Labels)
		require.Equal(t, string(body), to.Text+string(to.Base64))
	})
}

func TestForm_HasACallbackAsItsURLOrAnObject(t *testing.T) {
	for _, c := range []struct{ raw, text string }{
		{`"https://a.example/"`, "https://a.example/"},
		{
			`{"url": "https://a.example/", "method": "POST", "headers": null, "retries": null, "include": []}`,
			"https://a.example/",
		},
		{`{"url": "https://a.example/", "retries": 0}`, `{"retries":0,"url":"https://a.example/"}`},
		{`{"url": null, "method": "POST"}`, "none"},
		{`null`, "none"},
	} {
		values := form.Job.Values(json.RawMessage(`{"on_dead": ` + c.raw + `}`))
		if c.raw[0] == '"' {
			values = form.Values{"on_dead": json.RawMessage(`{"url": ` + c.raw + `}`)}
		}
		require.Equal(t, form.Texts{"on_dead": c.text}, form.Job.Texts(values))
		doc, changed, _ := form.Job.Document(values, sent(form.Job, values, nil))
		require.Empty(t, changed)
		require.JSONEq(t, `{"on_dead": `+string(values["on_dead"])+`}`, string(doc))
		doc, changed, _ = form.Job.Document(values, sent(form.Job, values, form.Texts{"on_dead": ""}))
		require.Equal(t, []string{"on_dead"}, changed)
		require.Equal(t, `{}`, string(doc), "null would switch it off")
	}
	for text, want := range map[string]string{
		"None": `null`, "https://b.example/": `"https://b.example/"`,
		`{"uri": "https://b.example/"}`: `{"uri": "https://b.example/"}`, // the API says that there is no such member
	} {
		doc, _, errs := form.Job.Document(nil, form.Texts{"on_dead": text})
		require.False(t, errs.Any(), text)
		require.JSONEq(t, `{"on_dead": `+want+`}`, string(doc))
	}
}

func TestJobFields_BelongToAnObject(t *testing.T) {
	f := form.Of[client.ScheduleRequest](
		form.Group{Fields: form.JobFields("job.", "method", "body", "body_as", "on_delivered", "on_dead")},
		form.Group{Title: "more"})
	require.Subset(t, f.Names(), []string{"job.body_as", "job.content_type", "job.labels", "catch_up.window", "note"})
	sections := f.Sections(nil, nil, web.FormErrors{})
	require.Equal(t, "cron", sections[1].Fields[0].Name, "those of the job are among its fields")
	stored := `{"job": {"headers": {"X-A": "1"}, "on_dead": null, "method": "POST", "body_text": "a\u0000",
		"labels": {"a": "b"}}, "overlap": "allow", "catch_up": {"window": "1h"}, "note": " a\u0000\r\n"}`
	values := f.Values(json.RawMessage(stored))
	doc, changed, errs := f.Document(values, sent(f, values, nil))
	require.False(t, errs.Any())
	require.Empty(t, changed)
	require.JSONEq(t, stored, string(doc))
	doc, changed, _ = f.Document(values, sent(f, values, form.Texts{
		"job.headers": "", "job.on_dead": "", "catch_up.window": "", "job.body_as": "text",
		"job.body": base64.StdEncoding.EncodeToString([]byte("a")),
	}))
	require.ElementsMatch(t, []string{"job.headers", "job.on_dead", "catch_up", "job.body"}, changed)
	require.JSONEq(t, `{"job": {"headers": null, "method": "POST", "body_text": "YQ==", "labels": {"a": "b"},
		"content_type": "text/plain; charset=utf-8"}, "overlap": "allow", "catch_up": null,
		"note": " a\u0000\r\n"}`, string(doc))
	empty, _, _ := f.Document(nil, form.Texts{"job.body_as": form.AsJSON})
	require.JSONEq(t, `{"job":{}}`, string(empty), "a job has defaults of all")
	rows := f.Tables(values, nil)[0].Rows
	require.Equal(t, []form.Row{
		{Label: "Callback when dead", Text: "none", Default: true},
		{Label: "Job: headers", Text: "X-A: 1", Default: true},
		{Label: "Job: content type", Text: "text/plain; charset=utf-8", Default: true},
		{Label: "Job: labels", Text: "a=b", Default: true},
	}, rows, "without the body")
}
