package jobform

import (
	"slices"

	"github.com/ringback/ringback/console/web"
)

// described are the labels and hints of the fields.
var described = map[string]web.Field{
	ID: {Label: "Id", Hint: "1 to 64 of A-Z a-z 0-9 _ : and -. Registering a job twice under its id sends it " +
		"once. Empty: a new one."},
	Topic: {Label: "Topic", Placeholder: "default", Hint: "Whose policy and secrets apply."},
	URL: {
		Label: "URL", Kind: "url", Placeholder: "https://shop.example/hooks",
		Hint: "Where the job is sent. Empty: the URL of its lane or topic.",
	},
	Method: {Label: "Method", Kind: "select", Options: []web.Link{
		{To: "POST", Text: "POST"},
		{To: "PUT", Text: "PUT"},
		{To: "PATCH", Text: "PATCH"},
		{To: "GET", Text: "GET"},
		{To: "DELETE", Text: "DELETE"},
	}},
	Headers: {Label: "Headers", Kind: "textarea", Rows: 3, Placeholder: "X-Team: shop", Hint: "One a line."},
	Body: {
		Label: "Body", Kind: "textarea", Rows: 8,
		Hint: "Sent byte for byte as it is here; line ends are sent as LF.",
	},
	BodyAs: {Label: "The body is", Kind: "select", Options: []web.Link{
		{To: AsJSON, Text: "JSON"}, {To: AsText, Text: "text"}, {To: AsBase64, Text: "bytes, written in base64"},
	}},
	ContentType: {Label: "Content type", Hint: "Empty: that of the kind of body."},
	Delay:       {Label: "Due after", Placeholder: "30m", Hint: "A wait such as 90s, 1h30m or 2d. Empty: due now."},
	RunAt:       {Label: "Or due at", Placeholder: "2026-11-24 14:30", Hint: "A time in UTC, or one with its zone."},
	Lane:        {Label: "Lane", Hint: "What fails and waits apart from others. Empty: host and port of the URL."},
	Retries: {
		Label: "Retries",
		Hint:  "Attempts after the first, 0 to 1000. Empty: as many as the ladder has waits.",
	},
	Ladder: {
		Label: "Ladder", Placeholder: "15s, 3m, 10m",
		Hint: "The waits between attempts. The last one repeats. Empty: the topic's.",
	},
	Timeout: {Label: "Timeout", Placeholder: "10s", Hint: "Of an attempt, 100ms to 10m. Empty: the topic's."},
	ExpiresIn: {
		Label: "Expires after", Placeholder: "2h",
		Hint: "No attempt starts later; the job is dead then. Empty: never.",
	},
	ExpiresAt: {
		Label: "Or expires at", Placeholder: "2026-11-24 16:30",
		Hint: "A time in UTC, or one with its zone.",
	},
	Labels: {
		Label: "Labels", Kind: "textarea", Rows: 3, Placeholder: "order=4711",
		Hint: "One name=value a line, to find the job with.",
	},
	OnDelivered: {
		Label: "Callback when delivered",
		Hint:  "A URL, or none. Empty: the topic's. An object has more: {\"url\": \"…\", \"retries\": 5}.",
	},
	OnDead: {
		Label: "Callback when dead",
		Hint:  "A URL, or none. Empty: the topic's. An object has more: {\"url\": \"…\", \"retries\": 5}.",
	},
}

// Fields returns fields of the form for the template "field", in the order of names, with what is wrong with them.
// Their names begin with the prefix.
func (f Form) Fields(prefix string, errs web.FormErrors, names ...string) []web.Field {
	fields := make([]web.Field, len(names))
	for i, name := range names {
		field := described[name]
		field.Name, field.Value, field.Error = prefix+name, f[name], errs.Of(prefix+name)
		if name == BodyAs && f[name] == AsKept {
			field.Options = append(slices.Clone(field.Options), web.Link{To: AsKept, Text: "the one that the job has"})
		}
		fields[i] = field
	}
	return fields
}
