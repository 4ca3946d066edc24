package jobpages

import (
	"slices"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// stateChoices are the states that the form offers.
var stateChoices = []web.Link{
	{To: "", Text: "any"},
	{To: "scheduled,ready,running", Text: "unfinished"},
	{To: "scheduled", Text: "scheduled"},
	{To: "ready", Text: "ready"},
	{To: "running", Text: "running"},
	{To: "dead", Text: "dead"},
	{To: "delivered", Text: "delivered"},
	{To: "cancelled", Text: "cancelled"},
}

// codes returns choices of codes, and any.
func codes(say func(string) string, all ...string) []web.Link {
	choices := []web.Link{{To: "", Text: "any"}}
	for _, code := range all {
		choices = append(choices, web.Link{To: code, Text: code + ": " + say(code)})
	}
	return choices
}

// setFields sets the fields of the form.
func (d *listData) setFields(f *selection) {
	field := func(name, label string) web.Field {
		return web.Field{Name: name, Label: label, Value: f.text(name), Error: f.errors.Of(name)}
	}
	choice := func(name, label string, choices []web.Link) web.Field {
		it := field(name, label)
		it.Kind, it.Options = "select", choices
		if !slices.ContainsFunc(choices, func(c web.Link) bool { return c.To == it.Value }) {
			it.Options = append(slices.Clone(choices), web.Link{To: it.Value, Text: it.Value})
		}
		return it
	}
	label := field("label", "Label")
	label.Placeholder = "name=value"
	d.Filters = []web.Field{
		field("topic", "Topic"), choice("state", "State", stateChoices),
		field("lane", "Lane"), label,
	}

	kinds := codes(words.JobKind, "all", "callback", "backlog", "work", "schedule")
	kinds[0].Text = "registered by clients"
	status := field("status", "Last answer")
	status.Placeholder = "503"
	order := choice("order", "Order", []web.Link{{To: "", Text: "newest first"}, {To: "oldest", Text: "oldest first"}})
	d.More = []web.Field{
		choice("reason", "Reason", codes(words.Reason, "exhausted", "expired", "max_age", "gave_up", "nonretryable",
			"blocked", "invalid", "cancelled")),
		status, choice("kind", "Kind", kinds), field("id_prefix", "Id begins with"),
		field("created_after", "Registered since"), field("created_before", "Registered before"),
		field("due_after", "Due since"), field("due_before", "Due before"),
		field("ended_after", "Ended since"), field("ended_before", "Ended before"), order,
	}
	for _, it := range d.More {
		d.Open = d.Open || it.Error != "" // the others are seen beside the form
	}
}

// unfinished returns how many jobs of some unfinished states there are.
func unfinished(c *client.Counts, states []client.State) int64 {
	of := map[client.State]int64{client.Scheduled: c.Scheduled, client.Ready: c.Ready, client.Running: c.Running}
	var sum int64
	for _, s := range states {
		sum += of[s]
	}
	return sum
}
