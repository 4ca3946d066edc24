package policy

import "time"

// A Callback says whom to tell of something that became of a job or a topic.
type Callback struct {
	URL string `json:"url"`
	// Method is POST when empty.
	Method  string              `json:"method,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"` // canonical names
	// Retries and Timeout are those of the request that tells it; nil and zero: the built-in ones.
	Retries *int          `json:"retries,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
	// Include names what is told beyond the usual: IncludeBody, IncludeHeaders, IncludeQuery.
	Include []string `json:"include,omitempty"`
}

// What a callback can be asked to include. None of it is told otherwise, since it may hold what is not the listener's
// business.
const (
	IncludeBody    = "body"    // the job's body
	IncludeHeaders = "headers" // the job's headers
	IncludeQuery   = "query"   // the query of the job's URL
)

// A Backlog says when a topic has one, and whom to tell: once, and once more when it is over.
type Backlog struct {
	Callback
	// OlderThan raises the alarm when a job has been due for longer; zero: never.
	OlderThan time.Duration `json:"older_than,omitempty"`
	// MoreThan raises it when more jobs than this are unfinished; zero: never.
	MoreThan int64 `json:"more_than,omitempty"`
}

// Raised judges a topic's state: the age of the oldest due job that nobody holds (zero: there is none), and the number of
// unfinished jobs.
func (b Backlog) Raised(oldest time.Duration, pending int64) bool {
	return b.OlderThan > 0 && oldest > b.OlderThan || b.MoreThan > 0 && pending > b.MoreThan
}
