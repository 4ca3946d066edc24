package job

import (
	"cmp"
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
	ID    string `json:"id,omitzero" api:"id" validate:"omitempty,id"`
	Queue        // topic and lane never change after registration

	// URL is empty for the topic's.
	URL         string              `json:"url,omitzero" api:"url,editable" validate:"omitempty,target"`
	Method      string              `json:"method,omitzero" api:"method" validate:"omitempty,method"`
	Header      map[string][]string `json:"headers,omitzero" api:"headers,nullable"`
	ContentType string              `json:"content_type,omitzero" api:"content_type" validate:"omitempty,media_type"`
	BodyKind    BodyKind            `json:"body_kind,omitzero"`
	Body        []byte              `json:"body,omitzero"`
	Labels      map[string]string   `json:"labels,omitzero" api:"labels,nullable"`

	policy.Terms

	// Kind is set for jobs that Ringback creates and empty for registered jobs. Origin is the id of the job that a
	// callback is about; of a callback about a backlog, the topic's name.
	Kind   string `json:"kind,omitzero" api:"kind,answer"`
	Origin string `json:"origin,omitzero" api:"origin,answer"`

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

// New is a job to be registered.
type New struct {
	Spec
	// Delay is added to the store's clock. RunAt, if set, takes precedence; a time in the past means now.
	Delay time.Duration `api:"delay" validate:"ahead"`
	RunAt time.Time
	// ExpiresIn counts from registration. ExpiresAt, if set, takes precedence. Both zero: never.
	ExpiresIn time.Duration `api:"expires_in" validate:"omitempty,expiry"`
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
