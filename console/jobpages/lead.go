package jobpages

import (
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// maxShown bounds what a sentence repeats of what a reader wrote, in characters.
const maxShown = 80

// lead says what the list is: how many jobs wait, run and have ended, or how many match. counts may be nil.
func lead(f *selection, list *client.JobPage, counts *client.Counts) string {
	if counts != nil && f.only("topic") {
		of := ""
		if f.Topic != "" {
			of = "in topic " + words.Cut(f.Topic, maxShown)
		}
		return states(counts, of)
	}
	that := words.Cut(f.Words(), 5*maxShown)
	n := int64(len(list.Items))
	switch {
	case counts != nil:
		return matches(unfinished(counts, f.State)) + ": " + that + "."
	case f.cursor != "" && n == 0 && list.NextCursor == "":
		return "No more jobs match: " + that + "."
	case f.cursor != "":
		return "More jobs that match: " + that + "."
	case list.NextCursor == "":
		return matches(n) + ": " + that + "."
	case n < pageSize:
		return matches(n) + " so far: " + that + "."
	default:
		return "More than " + words.Count(n, "job") + " match: " + that + "."
	}
}

// matches says how many jobs match.
func matches(n int64) string {
	if n == 0 {
		return "No job matches"
	}
	return words.CountVerb(n, "job", "matches", "match")
}

// states says how many jobs wait and run, and how many have ended so far: of these, the counters know also the ones
// that were removed.
func states(c *client.Counts, of string) string {
	if c.Registered == 0 {
		return words.Sentence("There are no jobs", of)
	}
	text := counted(count{c.Scheduled + c.Ready, "waits", "wait"}, count{c.Running, "runs", "run"})
	if text == "" {
		text = "No job waits or runs"
	}
	if of != "" {
		text += " " + of
	}
	if ended := counted(count{c.Delivered, "was delivered", "were delivered"}, count{c.Dead, "died", "died"}); ended !=
		"" {
		text += "; " + ended + " so far"
	}
	return text + "."
}

// count is a number of jobs, and what one of them, or many, did.
type count struct {
	n         int64
	one, many string
}

// counted says the counts that are not zero: "2 jobs wait and 1 runs".
func counted(counts ...count) string {
	var parts []string
	for _, c := range counts {
		noun, verb := words.Number(c.n), c.many
		if len(parts) == 0 {
			noun = words.Count(c.n, "job")
		}
		if c.n == 1 {
			verb = c.one
		}
		if c.n > 0 {
			parts = append(parts, noun+" "+verb)
		}
	}
	return words.List(parts)
}

// budget says what a search looked at before its time was over.
func budget(f *selection, list *client.JobPage) string {
	looked := "Looked at " + words.Count(list.Scanned, "job") + ", "
	if f.cursor != "" {
		looked = "Looked at " + words.Count(list.Scanned, "more job") + ", "
	}
	n := int64(len(list.Items))
	if n == 0 {
		return looked + "none matches so far."
	}
	return looked + words.Number(n) + words.Verb(n, " matches", " match") + " so far."
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
