package topicpages

import (
	"net/http"
	"slices"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
)

// policyForm is the form of a topic's policy.
var policyForm = form.Of[client.Policy](
	form.Group{Title: "Retries", Fields: []form.Field{
		field("ladder", "Ladder", "Waits after failed attempts, such as 15s, 3m, 10m. The last one repeats."),
		field("retries", "Retries", "Attempts after the first, 0 to 1000. Empty: as many as the ladder has waits."),
		field("timeout", "Timeout", "Of a whole attempt, 100ms to 10m."),
		field("jitter", "Jitter", "Lengthens each wait by a random share of up to this much, 0 to 1."),
		field("max_age", "Largest age", "A job that was due so long ago dies. Empty: the waits of its ladder and 24h."),
		field("give_up_on", "Give up on", "Statuses that end a job at once, such as 410, 4xx; or none."),
	}},
	form.Group{Title: "Limits", Fields: []form.Field{
		field("lane_concurrency", "Attempts at a time per lane", "Over all processes, 1 to 10000."),
		field("workers", "Attempts at a time per process", "Of all lanes of the topic, 1 to 10000."),
		hinted(field("rate", "Rate of the topic", "Starts of attempts, such as 100/s or 5/90s."), "none"),
		hinted(field("lane_rate", "Rate of each lane", "Such as 5/s."), "none"),
		ordered("Each lane delivers its jobs one at a time, in the order of their registration.", "no"),
	}},
	form.Group{Title: "Receiver", Fields: []form.Field{
		choice(field("deliver", "Jobs are", ""),
			web.Link{To: "", Text: "default"},
			web.Link{To: "push", Text: "sent as HTTP requests"},
			web.Link{To: "pull", Text: "leased to clients that ask for them"},
			web.Link{To: "handler", Text: "passed to a Go function"}),
		hinted(field("url", "URL", "For jobs that have none."), "none"),
		field("headers", "Headers", headersHint),
		field("success.status", "Statuses that count as delivered", "Such as 200, 2xx. Empty: 2xx."),
		lines(field("success.body_equals", "and whose body is", "Exactly this text. Empty: any."), 1),
		lines(field("success.body_contains", "or contains", ""), 1),
	}},
	form.Group{
		Title: "Breaker",
		Intro: "A lane's breaker opens when its receiver fails again and again: its jobs wait then, and spend no " +
			"retries.",
		Fields: []form.Field{
			field("breaker.failures", "Opens after failures in a row", "0: never."),
			field("breaker.open", "Stays open for", "1s to 1h; then one attempt decides."),
		},
	},
	form.Group{Title: "Callback when a job is delivered", Fields: callbackFields("on_delivered", jobCallback)},
	form.Group{Title: "Callback when a job is dead", Fields: callbackFields("on_dead", jobCallback)},
	form.Group{
		Title: "Callback when jobs pile up",
		Intro: "One when a limit is exceeded, and one when the topic is below both again.",
		Fields: append([]form.Field{
			field("on_backlog.older_than", "A job has been due for longer than", "Such as 10m."),
			field("on_backlog.more_than", "More jobs are unfinished than", "Such as 10000."),
		}, callbackFields("on_backlog", "Empty: no callback.")...),
	},
	form.Group{
		Title: "Retention",
		Intro: "How long ended jobs are kept. The limit that is reached first removes the oldest.",
		Fields: slices.Concat(
			retentionFields("keep_delivered", "Delivered and cancelled jobs"),
			retentionFields("keep_dead", "Dead jobs"),
			[]form.Field{field("id_window", "Ids of ended jobs are remembered for",
				"Up to 365d: a job is not registered twice under its id meanwhile. 0: not at all.")}),
	},
	form.Group{Title: "Advanced", Fields: []form.Field{
		lines(field("client_cert.chain", "Client certificate for TLS", "In PEM, the leaf first. Empty: none."), 3),
		secret(lines(field("client_cert.key", "Key of the client certificate",
			"In PEM. It is never shown. Empty: the stored one stays."), 3)),
		field("managed_by", "Managed by", "The files that set this policy: ringback apply writes it. Empty: none."),
	}},
)

// laneForm is the form of a lane's settings.
var laneForm = form.Of[client.LaneSettings](form.Group{Title: "Settings", Fields: []form.Field{
	field("url", "URL", "For jobs that have none."),
	hinted(field("headers", "Headers", "Added to the topic's. "+headersHint), "X-Customer: 42"),
	field("lane_concurrency", "Attempts at a time", "Over all processes, 1 to 10000."),
	field("lane_rate", "Rate", "Starts of attempts, such as 5/s or 5/90s."),
	ordered("One job at a time, in the order of their registration.", "as the topic"),
	hinted(field("subscribe", "Subscribes to", "Types of events. Parts may be *, and the last one **."),
		"order.* user.created"),
	hinted(lines(field("subscribe_labels", "Labels of these events", "One in a line."), 2), "region: eu"),
	field("managed_by", "Managed by", "The files that set the lane: ringback apply writes it. Empty: none."),
}})

const (
	headersHint = "One in a line, such as X-Team: shop. Leave [redacted] as it is to keep a secret."
	jobCallback = "For jobs that name no callback. Empty: none."
)

func field(name, label, hint string) form.Field {
	return form.Field{Field: web.Field{Name: name, Label: label, Hint: hint}}
}

// hinted shows an example in a field that is empty.
func hinted(f form.Field, example string) form.Field {
	f.Placeholder = example
	return f
}

// lines is a text of several lines.
func lines(f form.Field, rows int) form.Field {
	f.Kind, f.Rows = "textarea", rows
	return f
}

func secret(f form.Field) form.Field {
	f.Secret, f.Unset = true, "[redacted]"
	return f
}

func choice(f form.Field, options ...web.Link) form.Field {
	f.Kind, f.Options = "select", options
	return f
}

// ordered is the field of that name. off says what it is if it is not set.
func ordered(hint, off string) form.Field {
	return choice(field("ordered", "Ordered", hint), web.Link{To: "", Text: off}, web.Link{To: "true", Text: "yes"})
}

// callbackFields are the fields of a callback.
func callbackFields(object, urlHint string) []form.Field {
	all := []form.Field{
		field("url", "URL", urlHint),
		field("method", "Method", "Empty: POST."),
		field("headers", "Headers", headersHint),
		field("retries", "Retries", "Empty: those of the topic _callbacks."),
		field("timeout", "Timeout", "Empty: that of the topic _callbacks."),
		field("include", "Includes", "Of the job: body, headers, query."),
	}
	all[0].Essential, all[1].Unset, all[5].Unset = true, http.MethodPost, "none"
	for i := range all {
		all[i].Name = object + "." + all[i].Name
	}
	return all
}

// retentionFields are the fields of a retention.
func retentionFields(object, jobs string) []form.Field {
	return []form.Field{
		field(object+".for", jobs+" are kept for", "Such as 24h or 7d."),
		field(object+".max", "at most so many", ""),
		field(object+".max_bytes", "of at most", "Such as 256MiB."),
	}
}
