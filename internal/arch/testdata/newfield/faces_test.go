package main

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/app"
	"github.com/ringback/ringback/internal/redistest"
)

// This file is compiled in cmd/ringback of the copy of the tree that TestNewField_IsOnEveryFace of package arch makes.
// It needs the note of a job, the contact of a topic, the owner of a schedule and the pulse of a topic.

// face is a server, and what its faces have set.
type face struct {
	*testing.T

	url    string
	client *client.Client
	stop   func()
	want   map[string]any // as values returns it
}

func TestFaces_HaveTheNewFieldsAndTheRoute(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir, redis := t.TempDir(), redistest.Start(t).URL()
	sqlite := "sqlite:" + filepath.Join(dir, "a.db")
	for name, stores := range map[string][2]string{
		"SQLite": {sqlite, redis + "/1"}, "Redis": {redis, sqlite + ".copy"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serveFace(t, stores[0])
			f.setTopics()
			f.setJobs()
			f.setSchedules()
			f.setByFiles()
			f.askForPulse()
			require.Equal(t, f.want, f.values())
			f.stop()

			file := filepath.Join(t.TempDir(), "export")
			f.ringback("export", "--store="+stores[0], "--to="+file)
			f.ringback("import", "--store="+stores[1], "--from="+file)
			require.Equal(t, f.want, serveFace(t, stores[1]).values(), "after export and import")
		})
	}
}

// serveFace serves a store until stop, or the end of the test.
func serveFace(t *testing.T, store string) *face {
	t.Helper()
	a, err := app.New(t.Context(), app.Options{Addr: "127.0.0.1:0", Store: store})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	f := &face{T: t, url: "http://" + a.Addr(), want: make(map[string]any)}
	f.stop = sync.OnceFunc(func() { cancel(); require.NoError(t, <-ended) })
	t.Cleanup(f.stop)
	f.client, err = client.New(f.url, client.Options{})
	require.NoError(t, err)
	return f
}

// setJobs sets notes that equal the id of their job.
func (f *face) setJobs() {
	job := func(id, note string) string {
		return `{"id": "` + id + `", "url": "https://shop.example/", "delay": "1h", "note": "` + note + `"}`
	}
	for _, id := range []string{
		"posted", "batched", "patched", "client", "client-edit", "command", "command-edit", "form-copy", "form-edit",
	} {
		f.want["job "+id] = id
	}
	f.ask(http.MethodPost, "/v1/jobs", job("posted", "posted"), http.StatusCreated)
	f.ask(http.MethodPost, "/v1/jobs", job("posted", "posted"), http.StatusOK)
	f.ask(http.MethodPost, "/v1/jobs", job("posted", "another"), http.StatusConflict)
	f.ask(http.MethodPost, "/v1/jobs", job("long", strings.Repeat("a", 101)), http.StatusUnprocessableEntity)
	require.Equal(f, "posted", f.ask(http.MethodGet, "/v1/jobs/posted", "", http.StatusOK)["note"])
	f.ask(http.MethodPost, "/v1/batch", `{"jobs": [`+job("batched", "batched")+`]}`, http.StatusOK)
	for _, id := range []string{"patched", "client-edit", "command-edit", "command-unset", "form-edit", "form-unset"} {
		f.ask(http.MethodPost, "/v1/jobs", job(id, "before"), http.StatusCreated)
	}
	f.ask(http.MethodPatch, "/v1/jobs/patched", `{"note": "patched"}`, http.StatusOK)

	ctx := f.Context()
	own := client.Job{ID: "client", URL: "https://shop.example/", Delay: time.Hour, Note: "client"}
	_, err := f.client.Register(ctx, own)
	require.NoError(f, err)
	edited, err := f.client.Edit(ctx, "client-edit", client.Change{Note: "client-edit"})
	require.NoError(f, err)
	require.Equal(f, "client-edit", edited.Note)

	f.ringback("job", "add", "--id=command", "--url=https://shop.example/", "--delay=1h", "--note=command")
	f.ringback("job", "edit", "command-edit", "--note=command-edit")
	f.ringback("job", "edit", "command-unset", "--unset=note")
	require.Equal(f, "command\n", f.ringback("job", "get", "command", "--jq=.note"))

	f.form("jobs/form-edit/edit", "note", "before", "form-edit")
	f.form("jobs/form-unset/edit", "note", "before", "")
	f.want["job command-unset"], f.want["job form-unset"] = nil, nil
	f.form("jobs/posted/copy", "note", "posted", "form-copy", "id", "", "form-copy", "delay", "", "1h")
	require.Contains(f, f.page("jobs/posted"), "<dd>posted</dd>")
}

// setTopics sets contacts that equal the name of their topic.
func (f *face) setTopics() {
	for _, name := range []string{"put", "patched", "client", "command", "form"} {
		f.want["topic "+name] = name
	}
	f.ask(http.MethodPut, "/v1/topics/put", `{"contact": "put"}`, http.StatusOK)
	f.ask(http.MethodPost, "/v1/topics/put/pause", "", http.StatusOK)
	long := `{"contact": "` + strings.Repeat("a", 101) + `"}`
	f.ask(http.MethodPut, "/v1/topics/put", long, http.StatusUnprocessableEntity)
	f.ask(http.MethodPut, "/v1/topics/patched", `{"contact": "before"}`, http.StatusOK)
	f.ask(http.MethodPatch, "/v1/topics/patched", `{"contact": "patched"}`, http.StatusOK)
	put, err := f.client.PutTopic(f.Context(), "client", client.Policy{Contact: "client"})
	require.NoError(f, err)
	require.Equal(f, "client", put.Contact)
	f.ringback("topic", "set", "command", "contact=command")
	require.Equal(f, "command\n", f.ringback("topic", "get", "command", "--jq=.contact"))
	f.ask(http.MethodPut, "/v1/topics/form", `{"contact": "before"}`, http.StatusOK)
	f.form("topics/form/policy", "contact", "before", "form")
	require.Contains(f, f.page("topics/form"), `<dt>Contact</dt><dd class="lines">form</dd>`)
}

// setSchedules sets owners, and notes of jobs, that equal the name of their schedule. The jobs' topic is paused.
func (f *face) setSchedules() {
	for _, name := range []string{"put", "client", "command", "form", "form-edit"} {
		f.want["schedule "+name], f.want["note of "+name] = name, name
	}
	doc := func(owner string) string {
		return `{"every": "366d", "owner": "` + owner + `",
			"job": {"topic": "put", "url": "https://shop.example/", "note": "` + owner + `"}}`
	}
	f.ask(http.MethodPut, "/v1/schedules/put", doc("put"), http.StatusOK)
	f.ask(http.MethodPut, "/v1/schedules/put", doc(strings.Repeat("a", 101)), http.StatusUnprocessableEntity)
	run, err := f.client.RunSchedule(f.Context(), "put")
	require.NoError(f, err)
	f.want["job "+run.ID] = "put"
	s, err := f.client.PutSchedule(f.Context(), "client", client.ScheduleRequest{
		Every: 366 * 24 * time.Hour, Owner: "client",
		Job: &client.ScheduleJob{URL: "https://shop.example/", Note: "client"},
	})
	require.NoError(f, err)
	require.Equal(f, []string{"client", "client"}, []string{s.Owner, s.Job.Note})
	f.ringback("schedule", "put", "command", "every=366d", "owner=command",
		"job.url=https://shop.example/", "job.note=command")
	f.form("schedules/new", "name", "", "form", "every", "", "366d", "owner", "", "form",
		"job.url", "", "https://shop.example/", "job.note", "", "form")
	f.ask(http.MethodPut, "/v1/schedules/form-edit", doc("before"), http.StatusOK)
	f.form("schedules/form-edit/edit", "owner", "before", "form-edit", "job.note", "before", "form-edit")
	require.Equal(f, 2, strings.Count(f.page("schedules/form-edit"), `<dd class="lines">form-edit</dd>`))
}

// setByFiles requires that a dump has the fields, and applies a file that has them.
func (f *face) setByFiles() {
	dump := f.ringback("dump")
	for _, text := range []string{"contact: client", "owner: client", "note: client"} {
		require.Contains(f, dump, text)
	}
	file := filepath.Join(f.TempDir(), "faces.yaml")
	const applied = `{managed_by: faces, topics: {applied: {contact: applied}}, schedules: {applied:
		{every: 366d, owner: applied, job: {url: "https://shop.example/", note: applied}}}}`
	require.NoError(f, os.WriteFile(file, []byte(applied), 0o600))
	f.ringback("apply", "-f", file)
	f.want["topic applied"], f.want["schedule applied"], f.want["note of applied"] = "applied", "applied", "applied"
}

// askForPulse asks for the pulse of a paused topic with a job.
func (f *face) askForPulse() {
	want := map[string]any{"topic": "put", "paused": true, "unfinished": 1.0}
	require.Equal(f, want, f.ask(http.MethodGet, "/v1/topics/put/pulse", "", http.StatusOK))
	f.ask(http.MethodGet, "/v1/topics/unknown/pulse", "", http.StatusNotFound)
	pulse, err := f.client.TopicPulse(f.Context(), "put")
	require.NoError(f, err)
	require.Equal(f, client.Pulse{Answer: pulse.Answer, Topic: "put", Paused: true, Unfinished: 1}, *pulse)
	require.JSONEq(f, `{"topic": "put", "paused": true, "unfinished": 1}`, f.ringback("topic", "pulse", "put"))
}

// values returns the new fields of all jobs, topics and schedules, as the lists have them.
func (f *face) values() map[string]any {
	found := make(map[string]any)
	for _, list := range []struct{ kind, path, id, field string }{
		{"job", "/v1/jobs?topic=default&state=scheduled&limit=100", "id", "note"},
		{"job", "/v1/jobs?topic=put&limit=100", "id", "note"},
		{"topic", "/v1/topics?defaults=false", "topic", "contact"},
		{"schedule", "/v1/schedules", "name", "owner"},
	} {
		items, _ := f.ask(http.MethodGet, list.path, "", http.StatusOK)["items"].([]any)
		for _, item := range items {
			doc, _ := item.(map[string]any)
			name, _ := doc[list.id].(string)
			if value, has := doc[list.field]; has && (value != nil || list.kind != "topic") { // some topics have none
				found[list.kind+" "+name] = value
			}
			if job, is := doc["job"].(map[string]any); is {
				found["note of "+name] = job["note"]
			}
		}
	}
	return found
}

// ask makes a request of the API, and returns the answer.
func (f *face) ask(method, path, body string, status int) (answer map[string]any) {
	f.Helper()
	got, text := f.send(method, path, "application/json", body)
	require.Equal(f, status, got, "%s %s %s: %s", method, path, body, text)
	require.NoError(f, json.Unmarshal([]byte(text), &answer))
	return answer
}

// send makes a request, and returns the status and the body of the answer.
func (f *face) send(method, path, kind, body string) (int, string) {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.url+path, strings.NewReader(body))
	require.NoError(f, err)
	r.Header.Set("Content-Type", kind)
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(f, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(f, err)
	return resp.StatusCode, string(text)
}

// ringback runs a command, which must succeed, and returns what it prints.
func (f *face) ringback(args ...string) string {
	f.Helper()
	var stdout, stderr bytes.Buffer
	code := run(f.Context(), args, &stdout, &stderr, []string{"RINGBACK_SERVER=" + f.url})
	require.Equal(f, exitOK, code, "ringback %s: %s", strings.Join(args, " "), &stderr)
	return stdout.String()
}

// page returns a page of the console.
func (f *face) page(path string) string {
	f.Helper()
	status, page := f.send(http.MethodGet, "/console/"+path, "", "")
	require.Equal(f, http.StatusOK, status, page)
	return page
}

// The fields of forms, as the template "field" writes them, and hidden ones.
var (
	input    = regexp.MustCompile(`<input [^>]*name="([^"]+)" value="([^"]*)"`)
	textarea = regexp.MustCompile(`(?s)<textarea [^>]*name="([^"]+)"[^>]*>\n(.*?)</textarea>`)
	choice   = regexp.MustCompile(`<select [^>]*name="([^"]+)"[^>]*>(?:\n<option value="[^"]*">[^<]*</option>)*` +
		`\n<option value="([^"]*)" selected`)
)

// form sends a form of the console as a browser does, with some of its fields changed: their names, what they show, and
// what they are changed to.
func (f *face) form(path string, fields ...string) {
	f.Helper()
	page, form := f.page(path), make(url.Values)
	for _, pattern := range []*regexp.Regexp{input, textarea, choice} {
		for _, m := range pattern.FindAllStringSubmatch(page, -1) {
			if !strings.Contains(m[0], `type="checkbox"`) {
				form.Set(m[1], html.UnescapeString(m[2]))
			}
		}
	}
	for c := range slices.Chunk(fields, 3) {
		require.Contains(f, form, c[0], "the form %s", path)
		require.Equal(f, c[1], form.Get(c[0]), "%s in the form %s", c[0], path)
		form.Set(c[0], c[2])
	}
	status, answer := f.send(http.MethodPost, "/console/"+path, "application/x-www-form-urlencoded", form.Encode())
	require.Equal(f, http.StatusSeeOther, status, "%s: %s", path, answer)
}
