package job

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ringback/ringback/policy"
)

// BodyKind is the form in which a body was sent and is returned. Its JSON form is a number.
type BodyKind uint8

// The kinds of bodies. The zero value is no body.
const (
	BodyNone   BodyKind = iota
	BodyJSON            // JSON, stored byte for byte
	BodyText            // body_text
	BodyBase64          // body_base64
)

var contentTypes = map[BodyKind]string{
	BodyJSON: "application/json", BodyText: "text/plain; charset=utf-8", BodyBase64: "application/octet-stream",
}

// ContentType returns the default content type of a body. Stored jobs rely on it: it never changes.
func (k BodyKind) ContentType() string { return contentTypes[k] }

// Spec is a job's specification. Ladder, Retries and Timeout are in the embedded Terms. Its JSON form is that of
// exports and of the documents and jobs that contain one. Headers with secrets are in it as they are stored.
type Spec struct {
	ID    string `json:"id,omitzero"`
	Queue        // topic and lane never change after registration

	URL         string              `json:"url,omitzero"`    // empty: the topic's
	Method      string              `json:"method,omitzero"` // POST, PUT, PATCH, GET or DELETE
	Header      map[string][]string `json:"headers,omitzero"`
	ContentType string              `json:"content_type,omitzero"`
	BodyKind    BodyKind            `json:"body_kind,omitzero"`
	Body        []byte              `json:"body,omitzero"`
	Labels      map[string]string   `json:"labels,omitzero"`

	policy.Terms

	// Kind is set for jobs that Ringback creates and empty for registered jobs. Origin is the id of the job that a
	// callback is about; of a callback about a backlog, the topic's name.
	Kind   string `json:"kind,omitzero"`
	Origin string `json:"origin,omitzero"`

	// CreatedBy is the name of the client that registered the job, at most MaxActor bytes; empty: unknown. It is not
	// part of the fingerprint.
	CreatedBy string `json:"created_by,omitzero"`
	// FirstURL is the URL before its first change; empty: it was not changed, or was empty.
	FirstURL string `json:"first_url,omitzero"`

	// Unknown holds stored fields that this version does not know. A rewrite keeps them.
	Unknown []byte `json:"unknown,omitzero"`
}

// AttemptURL returns the URL of attempts whose Attempt.URL is empty. It is the same for the life of the job, so that
// most attempts need not store their URL.
func (s *Spec) AttemptURL() string { return cmp.Or(s.FirstURL, s.URL) }

// SetURL changes the URL.
func (s *Spec) SetURL(url string) {
	if url != s.URL {
		s.FirstURL, s.URL = s.AttemptURL(), url
	}
}

// Ref returns the job's Ref.
func (s Spec) Ref() Ref { return Ref{s.Namespace, s.ID} }

// specRules are the rules of the fields of Spec and New, and of fields of the same name in policies.
var specRules = []rule{
	{
		field: "ID", name: "id", tags: "omitempty,id",
		message: "must be 1 to 64 of A-Z a-z 0-9 _ : and -, not beginning with rb: (leave it out to be given one)",
	},
	{
		field: "Topic", name: "topic", tags: "omitempty,topic",
		message: "must be 1 to 64 of A-Z a-z 0-9 . _ and -, not beginning with _, and neither . nor ..",
	},
	{
		field: "Lane", name: "lane", tags: "omitempty,lane",
		message: "must be 1 to 128 of A-Z a-z 0-9 . _ : [ ] and -, and neither . nor ..",
	},
	{field: "URL", name: "url", tags: "omitempty,target"},
	{
		field: "Method", name: "method", tags: "omitempty,oneof=POST PUT PATCH GET DELETE",
		message: "must be POST, PUT, PATCH, GET or DELETE",
	},
	{
		field: "ContentType", name: "content_type", tags: "omitempty,max=255,field_value",
		message: "must be a media type of at most 255 B, without line breaks and control characters",
	},
	{field: "Delay", name: "delay", tags: rangeTags(0, MaxAhead), message: "must be 0s to 3653d (ten years)"},
	{
		field: "ExpiresIn", name: "expires_in", tags: "omitempty," + rangeTags(time.Millisecond, 2*MaxAhead),
		message: "must be 1ms to 7306d (twenty years)",
	},
	{
		field: "Retries", name: "retries", tags: fmt.Sprintf("omitnil,min=0,max=%d", MaxRetries),
		message: "must be 0 to 1000",
	},
	{
		field: "Ladder", name: "ladder",
		tags: fmt.Sprintf("omitnil,min=1,max=%d,dive,%s", policy.MaxRungs,
			rangeTags(policy.MinRung, policy.MaxRung)),
		message: "must have 1 to 100 rungs", elementMessage: "must be 1ms to 30d",
	},
	{
		field: "Timeout", name: "timeout", tags: "omitempty," + rangeTags(MinTimeout, MaxTimeout),
		message: "must be 100ms to 10m",
	},
}

// New is a job to be registered.
type New struct {
	Spec
	// Delay is added to the store's clock. RunAt, if set, takes precedence; a time in the past means now.
	Delay time.Duration
	RunAt time.Time
	// ExpiresIn counts from registration. ExpiresAt, if set, takes precedence. Both zero: never.
	ExpiresIn time.Duration
	ExpiresAt time.Time
}

// TimeOrDelay is a point in time, by the store's clock: At, or if At is zero, In from now.
type TimeOrDelay struct {
	In time.Duration
	At time.Time
}

// Edit is a change to a scheduled or ready job.
type Edit struct {
	// IfVersion is the version that the job must have; zero: any.
	IfVersion int64
	// Fields are the names of the fields that change, as in codec.Diff, and Spec has their new values.
	Fields []string
	Spec   Spec
	// Due is the new due time, Expiry the new expiry, whose zero removes it. Nil: unchanged.
	Due    *TimeOrDelay
	Expiry *TimeOrDelay
	// Actor is the name of the client; empty: unknown.
	Actor string
}
