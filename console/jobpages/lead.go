package jobpages

import (
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// maxShown bounds what a sentence repeats of what a reader wrote, in characters.
const maxShown = 80

// lead says what the list is: how many jobs wait, run and are dead, or how many match. counts may be nil.
func lead(f *selection, list *client.JobPage, counts *client.Counts) string {
	if counts != nil && f.only("topic") {
		of := ""
		if f.Topic != "" {
			of = "in topic " + cut(f.Topic, maxShown)
		}
		return states(counts, of)
	}
	that := cut(f.Words(), 5*maxShown)
	n := int64(len(list.Items))
	switch {
	case counts != nil:
		return matches(total(counts, f.States)) + ": " + that + "."
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
	switch n {
	case 0:
		return "No job matches"
	case 1:
		return "1 job matches"
	default:
		return words.Count(n, "job") + " match"
	}
}

// states says how many jobs wait, run and are dead; of those that ended well only if there are no others.
func states(c *client.Counts, of string) string {
	var parts []string
	say := func(n int64, one, many string) {
		noun := words.Number(n)
		if len(parts) == 0 {
			noun = words.Count(n, "job")
		}
		switch n {
		case 0:
		case 1:
			parts = append(parts, noun+" "+one)
		default:
			parts = append(parts, noun+" "+many)
		}
	}
	say(c.Scheduled+c.Ready, "waits", "wait")
	say(c.Running, "runs", "run")
	say(c.Dead, "is dead", "are dead")
	if len(parts) == 0 {
		if c.Registered == 0 {
			return words.Sentence("There are no jobs", of)
		}
		parts = append(parts, "No job waits, runs or is dead")
	}
	text := words.List(parts)
	if of != "" {
		text += " " + of
	}
	if c.Delivered > 0 {
		were := " were delivered"
		if c.Delivered == 1 {
			were = " was delivered"
		}
		text += "; " + words.Number(c.Delivered) + were
	}
	return text + "."
}

// budget says what a search looked at before its time was over.
func budget(f *selection, list *client.JobPage) string {
	looked := "Looked at " + words.Count(list.Scanned, "job") + ", "
	if f.cursor != "" {
		looked = "Looked at " + words.Count(list.Scanned, "more job") + ", "
	}
	n := int64(len(list.Items))
	switch n {
	case 0:
		return looked + "none matches so far."
	case 1:
		return looked + "1 matches so far."
	default:
		return looked + words.Number(n) + " match so far."
	}
}
