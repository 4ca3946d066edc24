package job

import "time"

// Request is one attempt to be made: everything that a deliverer needs, with the topic's policy already applied.
type Request struct {
	Ref         Ref
	Queue       Queue
	URL         string
	Method      string
	Header      map[string][]string // the topic's and the job's, canonical names
	ContentType string
	Body        []byte
	// Attempt is this attempt's number over all rounds, from 1; RetriesLeft how many would follow if it fails.
	Attempt     int
	RetriesLeft int
	// DueAt is when this attempt was due.
	DueAt time.Time
	// Timeout limits the whole attempt.
	Timeout time.Duration
}
