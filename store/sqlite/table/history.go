package table

import "github.com/ringback/ringback/job"

// The first slots of a history for releases and for events. Those before are for attempts that count.
const (
	ReleaseSlots = job.MaxAttempts
	EventSlots   = ReleaseSlots + job.MaxAttempts
)

// An Entry is an attempt or an event in the history of a job: a row of attempts.
type Entry struct {
	Slot, Seq int64
	Text      string
}

// EncodeHistory returns the history of a job, and how many entries it has had.
func EncodeHistory(j *job.Job) (entries []Entry, made int64) {
	counted, released := int64(0), int64(0)
	for i := range j.History {
		if j.History[i].Kind.Counts() {
			counted++
		} else {
			released++
		}
	}
	events := j.Version - 1
	made = int64(j.Attempts) + released + events
	add := func(first, slots, ordinal int64, text []byte) {
		seq := made - int64(len(j.History)+len(j.Events)-len(entries))
		entries = append(entries, Entry{Slot: first + ordinal%slots, Seq: seq, Text: string(text)})
	}
	counts, releases := int64(j.Attempts)-counted, int64(0) // of those that are no longer kept, and of those added here
	for i := range j.History {
		a := &j.History[i]
		if a.Kind.Counts() {
			add(0, job.MaxAttempts, counts, a.JSON())
			counts++
		} else {
			add(ReleaseSlots, job.MaxAttempts, releases, a.JSON())
			releases++
		}
	}
	for i := range j.Events {
		add(EventSlots, job.MaxEvents, events-int64(len(j.Events)-i), j.Events[i].JSON())
	}
	return entries, made
}
