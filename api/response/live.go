package response

import (
	"strconv"

	"github.com/ringback/ringback/dispatcher/livetail"
)

// ServerSentEvents is the content type of a stream of updates.
const ServerSentEvents = "text/event-stream"

// serverSentEvent writes an update of a stream: its name, and an object whose members write writes.
func (o *Buffer) serverSentEvent(name string, write func()) {
	o.b = append(append(append(o.b, "event: "...), name...), "\ndata: {"...)
	write()
	o.b = append(o.b, "}\n\n"...)
}

// LiveUpdate writes an attempt or a change to a stream of updates.
func (o *Buffer) LiveUpdate(e *livetail.Update) {
	if e.Attempt != nil {
		o.serverSentEvent("attempt", func() {
			o.Text("id", e.ID)
			o.Text("topic", e.Topic)
			o.Text("lane", e.Lane)
			o.labelsOrNull("labels", e.Labels)
			o.attemptSummary(e.Attempt, e.Attempt.URL)
			if e.Late != nil {
				o.millis("late_ms", *e.Late)
			} else {
				o.Null("late_ms")
			}
		})
		return
	}
	o.serverSentEvent("change", func() {
		o.Time("at", e.At)
		o.Text("kind", string(e.Change.Kind))
		o.TextOrNull("id", e.ID)
		o.Text("topic", e.Topic)
		o.TextOrNull("lane", e.Lane)
		o.labelsOrNull("labels", e.Labels)
		if len(e.Change.Fields) > 0 {
			o.texts("fields", e.Change.Fields)
		} else {
			o.Null("fields")
		}
		o.TextOrNull("actor", e.Change.Actor)
		o.TextOrNull("reason", string(e.Change.Reason))
	})
}

// SkippedUpdates writes the number of skipped updates to a stream of updates.
func (o *Buffer) SkippedUpdates(n uint64) {
	o.serverSentEvent("skipped", func() { o.Number("skipped", int64(min(n, 1<<53))) })
}

// ProblemUpdate writes the reason why a stream of updates ends.
func (o *Buffer) ProblemUpdate(p *Problem) {
	o.serverSentEvent("problem", func() { p.appendTo(o) })
}

// Comment writes a line of a stream of updates that clients ignore.
func (o *Buffer) Comment(text string) { o.b = append(append(append(o.b, ": "...), text...), "\n\n"...) }

// Reconnect writes after how many milliseconds a client connects again to a stream of updates.
func (o *Buffer) Reconnect(ms int64) {
	o.b = append(o.b, "retry: "...)
	o.b = append(strconv.AppendInt(o.b, ms, 10), "\n\n"...)
}
