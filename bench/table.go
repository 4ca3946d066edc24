package main

import (
	"fmt"
	"strings"
)

// settings say how each contestant is set up.
var settings = []string{
	"All: a body of 256 B, 64 at a time unless a figure says otherwise, each contestant and the receiver in separate " +
		"processes. The receiver is a plain net/http server that reads each request to its end and answers 200 with two bytes.",
	"Ringback: the released build with its defaults, so every attempt is signed, recorded with its answer and kept (Redis: 24 h and " +
		"100,000 of a topic; SQLite: 7 d and a million). The topic has 64 `workers`, which bound what is sent at a time, and a `lane_concurrency` of 512, which bounds the attempts in flight of a lane. Jobs due at once are " +
		"registered in a paused topic; the clock runs from the request that resumes it to the last arrival. Each run has an empty store, unless a figure says that others wait. " +
		"Its requests go over plain HTTP/1.1 connections of the client in `notify/h1`; those of the bare loop and of the peers by `net/http`'s client, as Ringback's do over https.",
	"Over https the receiver offers HTTP/1.1 and HTTP/2; connections are kept, so handshakes are not part of a figure.",
	"Default policy: a topic without a policy, 256 `workers` and a `lane_concurrency` of 32.",
	"Bare loop: 64 goroutines that POST with one `net/http` client and read the answers, and no queue.",
	"asynq 0.26: 64 workers with the bare loop's client, a Redis connection each, no log, nothing kept of tasks that are done, " +
		"enqueued before its server starts; the clock runs from that start. For lateness it looks for tasks every 10 ms, unless it says defaults.",
	"River 0.31, the version of its SQLite driver: 64 workers with the bare loop's client, fetch cooldown 2 ms and poll 20 ms, as in its own benchmark, no log. SQLite " +
		"with WAL, synchronous NORMAL and one connection; PostgreSQL with synchronous_commit off and 512 MB of shared buffers. Jobs are inserted before its client starts. Its inserts do not wait for the disk, as Ringback's do on SQLite.",
	"lmstfy: its layout, written by hand: a key a job with the body (and a time to live of a day, its standard), and a sorted set of packed " +
		"namespace, queue, tries and id. Where memory is measured, URL and body together are the payload of its jobs and of asynq's tasks.",
	"Redis: a new server for each run, appendonly yes, appendfsync everysec.",
	"Runs alternate, A B A B; figures are medians with their range, and ratios are of runs of the same round.",
}

// markdown is the whole of what was found, for people.
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

// list is a headline with points, or nothing.
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

// text is a median with its range; a single run has none.
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

// texts are the bar and the aim, each with whether it is met.
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

// number is short: three digits, or all of a whole number, its thousands divided.
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

// cell is a text on one line, that ends no cell of a table.
func cell(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.ReplaceAll(text, "|", "/")
}
