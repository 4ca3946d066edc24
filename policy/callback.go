package policy

import "time"

// Callback is the request that is sent for an event of a job or a topic.
type Callback struct {
	// URL is where the callback is sent.
	URL string `json:"url" api:"url" validate:"omitempty,target"`
	// Method is the HTTP method of the request.
	Method string `json:"method,omitempty" api:"method,or=POST" validate:"omitempty,method"`
	// Headers are sent with the callback. They cannot contain `Content-Type`.
	//
	// Names are canonical.
	Headers map[string][]string `json:"headers,omitempty" api:"headers"`
	// Retries is the number of attempts after the first. Default: those of the topic `_callbacks`.
	Retries *int `json:"retries,omitempty" api:"retries" validate:"omitnil,retries"`
	// Timeout is the limit of a whole attempt. Default: that of the topic `_callbacks`.
	Timeout time.Duration `json:"timeout,omitempty" api:"timeout" validate:"omitempty,timeout"`
	// Include is additional content of the callback. `body`: the job's body. `headers`: its headers, with those as
	// `[redacted]` that carry secrets or are stored encrypted. `query`: the query of its URL. Default: none.
	Include []string `json:"include,omitempty" api:"include,always" validate:"max=3,dive,oneof=body headers query"`
	// Off is set in a job that has no callback although its topic may have one. All other fields are zero then.
	Off bool `json:"off,omitempty"`
}

// Or returns a job's own callback, or its topic's when it has none; nil: no callback.
func (c *Callback) Or(topic *Callback) *Callback {
	switch {
	case c == nil:
		return topic
	case c.Off:
		return nil
	default:
		return c
	}
}

// Optional parts of a callback's payload. They are left out by default, since they may be confidential.
const (
	IncludeBody    = "body"    // the job's body
	IncludeHeaders = "headers" // the job's headers
	IncludeQuery   = "query"   // the query of the job's URL
)

// Backlog configures the callback about a topic's backlog. It is sent once when a limit is exceeded, and once when the
// backlog is below its limits again.
type Backlog struct {
	Callback
	// OlderThan limits for how long the oldest job has been due. Null: no limit.
	OlderThan time.Duration `json:"older_than,omitempty" api:"older_than" validate:"omitempty,backlog"`
	// MoreThan limits the number of unfinished jobs. Null: no limit.
	MoreThan int64 `json:"more_than,omitempty" api:"more_than" validate:"omitempty,min=1"`
}

// Exceeded reports whether a limit is exceeded. oldest is how long the oldest unclaimed job has been due (zero: no due
// job), pending the number of unfinished jobs.
func (b Backlog) Exceeded(oldest time.Duration, pending int64) bool {
	return b.OlderThan > 0 && oldest > b.OlderThan || b.MoreThan > 0 && pending > b.MoreThan
}
