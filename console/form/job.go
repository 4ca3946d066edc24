package form

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

// jobFields describe the fields of jobs, which several forms have.
var jobFields = []web.Field{
	{Name: "id", Label: "Id", Hint: "1 to 64 of A-Z a-z 0-9 _ : and -. Registering a job twice under its id sends it " +
		"once. Empty: a new one."},
	{Name: "topic", Label: "Topic", Placeholder: "default", Hint: "Whose policy and secrets apply."},
	{
		Name: "url", Label: "URL", Kind: "url", Placeholder: "https://shop.example/hooks",
		Hint: "Where the job is sent. Empty: the URL of its lane or topic.",
	},
	{Name: "method", Label: "Method", Kind: "select", Options: []web.Link{
		{To: "", Text: http.MethodPost},
		{To: http.MethodPut, Text: http.MethodPut},
		{To: http.MethodPatch, Text: http.MethodPatch},
		{To: http.MethodGet, Text: http.MethodGet},
		{To: http.MethodDelete, Text: http.MethodDelete},
	}},
	{Name: "headers", Label: "Headers", Placeholder: "X-Team: shop", Hint: "One a line."},
	{
		Name: "body", Label: "Body", Kind: "textarea", Rows: 8,
		Hint: "Sent byte for byte as it is here; line ends are sent as LF.",
	},
	{Name: "body_as", Label: "The body is", Kind: "select", Options: []web.Link{
		{To: AsJSON, Text: "JSON"}, {To: AsText, Text: "text"}, {To: asBase64, Text: "bytes, written in base64"},
	}},
	{Name: "content_type", Label: "Content type", Hint: "Empty: that of the kind of body."},
	{
		Name: "delay", Label: "Due after", Placeholder: "30m",
		Hint: "A wait such as 90s, 1h30m or 2d. Empty: due now.",
	},
	{
		Name: "run_at", Label: "Or due at", Placeholder: "2026-11-24 14:30",
		Hint: "A time in UTC, or one with its zone.",
	},
	{
		Name: "lane", Label: "Lane",
		Hint: "What fails and waits apart from others. Empty: host and port of the URL.",
	},
	{
		Name: "retries", Label: "Retries",
		Hint: "Attempts after the first, 0 to 1000. Empty: as many as the ladder has waits.",
	},
	{
		Name: "ladder", Label: "Ladder", Placeholder: "15s, 3m, 10m",
		Hint: "The waits between attempts. The last one repeats. Empty: the topic's.",
	},
	{
		Name: "timeout", Label: "Timeout", Placeholder: "10s",
		Hint: "Of an attempt, 100ms to 10m. Empty: the topic's.",
	},
	{
		Name: "expires_in", Label: "Expires after", Placeholder: "2h",
		Hint: "No attempt starts later; the job is dead then. Empty: never.",
	},
	{
		Name: "expires_at", Label: "Or expires at", Placeholder: "2026-11-24 16:30",
		Hint: "A time in UTC, or one with its zone.",
	},
	{
		Name: "labels", Label: "Labels", Placeholder: "order=4711",
		Hint: "One name=value a line, to find the job with.",
	},
	{Name: "on_delivered", Label: "Callback when delivered", Hint: callbackHint},
	{Name: "on_dead", Label: "Callback when dead", Hint: callbackHint},
}

const callbackHint = `A URL, or none. Empty: the topic's. An object has more: {"url": "…", "retries": 5}.`

// JobFields returns fields of a job, whose names begin with a prefix: empty, or the object of a schedule with its job,
// whose stored headers stay unless they are removed.
func JobFields(prefix string, names ...string) []Field {
	fields := make([]Field, len(names))
	for i, name := range names {
		at := slices.IndexFunc(jobFields, func(f web.Field) bool { return f.Name == name })
		fields[i] = Field{Field: jobFields[at], Replaces: prefix == ""}
		if fields[i].Name = prefix + name; name == "method" {
			fields[i].Unset = http.MethodPost
		}
	}
	return fields
}

// MoreOfJob is the title of the last group of Job.
const MoreOfJob = "More"

// Job is the form that registers a job.
var Job = Of[client.Job](
	Group{Title: "Request", Fields: JobFields("",
		"id", "topic", "url", "method", "headers", "body_as", "body", "content_type")},
	Group{Title: "When", Fields: JobFields("", "delay", "run_at", "expires_in", "expires_at")},
	Group{Title: "Attempts", Fields: JobFields("", "lane", "retries", "ladder", "timeout")},
	Group{Title: MoreOfJob, Fields: JobFields("", "labels", "on_delivered", "on_dead")},
)

// CopyOf returns what registers a copy of a job, due now, and the names of its secret headers, whose values the API
// does not show: the copy lacks them.
func CopyOf(j *client.JobInfo) (copied Values, secrets []string) {
	copied = Job.Values(j.Raw)
	delete(copied, "id")
	delete(copied, "expires_at")
	if j.Lane == laneOf(j.URL) {
		delete(copied, "lane")
	}
	for _, object := range []string{"", "on_delivered", "on_dead"} {
		members, prefix := copied, ""
		if object != "" {
			if isNull(copied[object]) { // that of the topic
				delete(copied, object)
				continue
			}
			members, prefix = membersIn(copied[object]), object+".headers."
		}
		headers := membersIn(members["headers"])
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			if slices.Equal(textsOf(headers[name]), []string{Redacted}) {
				secrets = append(secrets, prefix+name)
				delete(headers, name)
			}
		}
		members["headers"] = nil
		if len(headers) > 0 {
			members["headers"] = objectOf(headers)
		}
		maps.DeleteFunc(members, func(_ string, value json.RawMessage) bool { return isNull(value) })
		switch {
		case object == "":
		case members["url"] == nil: // switched off
			copied[object] = null
		default:
			copied[object] = objectOf(members)
		}
	}
	return copied, secrets
}

// laneOf returns the lane of a job without one: the host and port of its URL.
func laneOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
