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
	// ID is the id of the job, which makes its registration safe to repeat: the same id registers one job. You can send
	// it as the header `Idempotency-Key` instead. Default: a generated one.
	ID    string `json:"id,omitzero" api:"id,always" validate:"omitempty,id"`
	Queue        // topic and lane never change after registration

	// URL is where the job is sent. Default: that of the lane, else of the topic.
	URL string `json:"url,omitzero" api:"url,editable" validate:"omitempty,target"`
	// Method is the HTTP method of the request.
	Method string `json:"method,omitzero" api:"method,or=POST" validate:"omitempty,method"`
	// Header is the headers of the request. Default: those of the lane and the topic.
	Header map[string][]string `json:"headers,omitzero" api:"headers,nullable"`
	// ContentType is the header `Content-Type`, which says what the body is. An edit changes it only together with a
	// body. Default: `application/json`, `text/plain` or `application/octet-stream`, by the kind of body.
	ContentType string   `json:"content_type,omitzero" api:"content_type,editable" validate:"omitempty,media_type"`
	BodyKind    BodyKind `json:"body_kind,omitzero"`
	Body        []byte   `json:"body,omitzero"`
	// Labels are names and values to find the job by. Default: none.
	Labels map[string]string `json:"labels,omitzero" api:"labels,nullable"`

	policy.Terms

	// Kind is what the job is for, if Ringback created it. `callback`: reports the end of a job. `backlog`: reports a
	// topic's backlog. `work`: does bulk work. `schedule`: makes ticks. Null: a client registered it.
	Kind string `json:"kind,omitzero" api:"kind,answer"`
	// Origin is what a callback is about: the id of the job, or the name of the topic. Of the job of an event, the id
	// of the event.
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
	// Delay is the time until the next attempt (of a new job: the first), such as `90s`, `1h30m` or `2d`. It counts by
	// the store's clock. Default: now.
	Delay time.Duration `api:"delay,editable" validate:"ahead"`
	// RunAt is the time of the next attempt (of a new job: the first). At most ten years ahead; a time in the past
	// means now. Cannot be combined with `delay`. Default: now.
	RunAt time.Time `api:"run_at,editable"`
	// ExpiresIn is the time from this request to the expiry. In a schedule it counts from the registration of each job.
	// No attempt starts and no retry is scheduled after the expiry: the job dies with the reason `expired`, also while
	// it waits. It must not be before the job is due. Default: never.
	ExpiresIn time.Duration `api:"expires_in,nullable" validate:"omitempty,expiry"`
	// ExpiresAt is the time of the expiry: no attempt starts after it. At most twenty years ahead. It must not be
	// before the job is due. One in the past is refused for a new job only: repeating a registration returns its job.
	// Cannot be combined with `expires_in`. Default: never.
	ExpiresAt time.Time `api:"expires_at,nullable"`
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
