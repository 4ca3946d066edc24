package main

import (
	"fmt"
	"strings"
)

// settings describe the setup of each contestant.
var settings = []string{
	"All: a body of 256 B, 64 requests in flight unless a figure names another number, each contestant and the " +
		"receiver in separate " +
		"processes. The receiver is a plain net/http server that reads each request to its end and answers 200 with " +
		"two bytes.",
	"Requests go over plain HTTP unless a figure names https. Over https the receiver offers HTTP/1.1 and HTTP/2; " +
		"connections are kept, " +
		"so handshakes are not part of a figure.",
	"Ringback: the released build with its defaults, so every attempt is signed and recorded with its answer.",
	"Ringback's topic: 64 `workers`, which bound the attempts in flight, and a `lane_concurrency` of 512, which is " +
		"no limit. Rows with the " +
		"default policy have a topic without a policy: 256 `workers` and a `lane_concurrency` of 32.",
	"Ringback's clock: jobs due at once are registered in a paused topic. The time is measured from the request that " +
		"resumes it to the " +
		"last arrival.",
	"Ringback's store: empty before each run, unless a figure is about waiting jobs. Delivered jobs are kept (Redis: " +
		"24 h and 100,000 jobs " +
		"of a topic; SQLite: 7 d and a million).",
	"Pulled jobs: 8 clients of this program, each with one request at a time to `POST /v1/leases`, which reports 32 " +
		"jobs as done and leases the " +
		"next. The time is measured from their first requests until all but the last 512 jobs of the backlog are " +
		"reported.",
	"Requests that wait: 16 clients, each with a random pause of up to 200 ms before its request. The receiver " +
		"answers with the time of its " +
		"answer. For ends by another process, one with the role `api` is asked, beside one with both roles. RSS is " +
		"that of the process " +
		"that has answered these requests while 1,000 others wait for jobs of a paused topic.",
	"Handlers: they only count. Ringback runs in the program, with 64 `workers` and a `lane_concurrency` of 512; it, " +
		"asynq and River have the " +
		"settings, and register in the way, that the figures of deliveries and batches have. River on SQLite has " +
		"fewer jobs, as there. The " +
		"time is measured from the start of the queue's workers until the last call of a handler, whose results may " +
		"be stored later.",
	"Schedules: a tick every 15 minutes, the first in a year.",
	"Ringback's connections: its own HTTP/1.1 client (`notify/h1`) over plain HTTP, `net/http`'s over https. The " +
		"bare loop and the peers " +
		"always use `net/http`'s.",
	"Bare loop: 64 goroutines that POST with one `net/http` client and read the answers, without a queue.",
	"asynq 0.26: 64 workers with the bare loop's client, a Redis connection for each, no log, no retention of " +
		"completed tasks. Tasks are " +
		"enqueued before its server starts; the time is measured from that start. For lateness it polls every 10 ms, " +
		"except in the row with its defaults.",
	"River 0.51: 64 workers with the bare loop's client, fetch cooldown 2 ms and " +
		"poll 20 ms, as in its own benchmark, no log. SQLite " +
		"with WAL, synchronous NORMAL and one connection; PostgreSQL with synchronous_commit off and 512 MB of " +
		"shared buffers. Jobs are inserted before its client starts. Its inserts do not wait for the disk, as " +
		"Ringback's do on SQLite.",
	"lmstfy: only its layout in Redis: a key per job with the body (and a time to live of a day, its default), and a " +
		"sorted set of packed " +
		"namespace, queue, tries and id. For memory, URL and body together are the payload of its jobs and of " +
		"asynq's tasks.",
	"svix: not compared, because its server, in Rust, could not be built where this was measured.",
	"Redis: a new server for each run, appendonly yes, appendfsync everysec.",
	"Runs alternate, A B A B. Figures are medians with their range; ratios compare runs of the same round.",
}

// markdown returns the document as Markdown.
func (d *document) markdown() string {
	var t strings.Builder
	fmt.Fprintf(&t, "Machine: %s.\n\n", d.Machine)
	if d.Took != "" {
		fmt.Fprintf(&t, "The run took %s.\n\n", d.Took)
	}
	if d.Quick {
		t.WriteString("A quick run: too few jobs and rounds to compare anything by.\n\n")
	}
	t.WriteString("| figure | Ringback | peer or limit | ratio | bar | aim |\n|---|---|---|---|---|---|\n")
	for _, f := range d.Figures {
		for _, r := range f.Rows {
			t.WriteString(r.markdown())
		}
		if f.Error != "" {
			fmt.Fprintf(&t, "| %s | failed: %s | | | | |\n", cell(f.Title), cell(f.Error))
		}
	}
	var notes []string
	for _, f := range d.Figures {
		for _, n := range f.Notes {
			notes = append(notes, f.Name+": "+cell(n))
		}
	}
	t.WriteString(list("Notes", notes))
	t.WriteString(list("How they are set up", settings))
	return t.String()
}

// list returns a headline with points; empty without points.
func list(headline string, points []string) string {
	if len(points) == 0 {
		return ""
	}
	var t strings.Builder
	fmt.Fprintf(&t, "\n%s:\n\n", headline)
	for _, p := range points {
		fmt.Fprintf(&t, "- %s\n", p)
	}
	return t.String()
}

func (r row) markdown() string {
	theirs, ratio := "", ""
	if r.Peer != "" {
		theirs = r.Peer + ": " + r.Theirs.text(r.Unit)
		if r.Ratio != nil {
			ratio = r.Ratio.text("")
		}
	}
	judged := r.Ours
	if r.Peer != "" {
		judged = r.Ratio
	}
	bar, aim := r.Goal.texts(judged)
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", r.Text, r.Ours.text(r.Unit), theirs, ratio, bar, aim)
}

// text returns a median with its range, which a single run does not have.
func (s *summary) text(unit string) string {
	if s == nil {
		return "–"
	}
	text := number(s.Median)
	if s.Runs > 1 {
		text += fmt.Sprintf(" (%s–%s)", number(s.Low), number(s.High))
	}
	if unit != "" {
		text += " " + unit
	}
	return text
}

// texts returns the bar and the aim, each with a mark whether it is met.
func (g *goal) texts(s *summary) (bar, aim string) {
	if g == nil {
		return "", ""
	}
	return g.text(g.Bar, s), g.text(g.Aim, s)
}

func (g *goal) text(limit float64, s *summary) string {
	sign, mark := "≥", "✗"
	if g.Low {
		sign = "≤"
	}
	if s != nil && (g.Low && s.Median <= limit || !g.Low && s.Median >= limit) {
		mark = "✓"
	}
	text := number(limit)
	if strings.Contains(text, ".") {
		text = trimmed(limit)
	}
	return fmt.Sprintf("%s %s %s", sign, text, mark)
}

// number formats a number with three digits, or a whole number with all digits and separated thousands.
func number(v float64) string {
	switch {
	case v < 0:
		return "−" + number(-v)
	case v == 0:
		return "0"
	case v >= 1000:
		digits := fmt.Sprintf("%.0f", v)
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + "," + digits[i:]
		}
		return digits
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// cell returns the first line of a text, without characters that would end a table's cell.
func cell(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.ReplaceAll(text, "|", "/")
}
