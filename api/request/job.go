package request

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// A jobField is one field of a job, as a bit.
type jobField uint32

const (
	fieldID jobField = 1 << iota
	fieldTopic
	fieldLane
	fieldURL
	fieldMethod
	fieldHeaders
	fieldBody
	fieldBodyText
	fieldBodyBase64
	fieldContentType
	fieldDelay
	fieldRunAt
	fieldRetries
	fieldLadder
	fieldTimeout
	fieldExpiresIn
	fieldExpiresAt
	fieldLabels
	fieldOnDelivered
	fieldOnDead
)

const (
	fieldsOfBody = fieldBody | fieldBodyText | fieldBodyBase64
	fieldsOfSpec = fieldURL | fieldHeaders | fieldsOfBody | fieldRetries | fieldLadder | fieldTimeout | fieldLabels
	// FieldsEditable are the fields that an edit may change; fieldsRemovable those of them that it may set to null.
	FieldsEditable = fieldURL | fieldHeaders | fieldsOfBody | fieldContentType | fieldDelay | fieldRunAt | fieldRetries |
		fieldLadder | fieldTimeout | fieldExpiresIn | fieldExpiresAt | fieldLabels
	fieldsRemovable = fieldHeaders | fieldLadder | fieldTimeout | fieldExpiresIn | fieldExpiresAt | fieldLabels
)

// JobFields are the fields of a job.
var JobFields = map[string]jobField{
	"id": fieldID, "topic": fieldTopic, "lane": fieldLane, "url": fieldURL, "method": fieldMethod,
	"headers": fieldHeaders, "body": fieldBody, "body_text": fieldBodyText, "body_base64": fieldBodyBase64,
	"content_type": fieldContentType, "delay": fieldDelay, "run_at": fieldRunAt, "retries": fieldRetries,
	"ladder": fieldLadder, "timeout": fieldTimeout, "expires_in": fieldExpiresIn, "expires_at": fieldExpiresAt,
	"labels": fieldLabels, "on_delivered": fieldOnDelivered, "on_dead": fieldOnDead,
}

// A jobForm reads a job. It keeps which fields are present.
type jobForm struct {
	decoder
	job.New
	present jobField
}

// DecodeJob reads a registration. Times are compared with now. maxBody bounds the body, in bytes.
func DecodeJob(raw []byte, now time.Time, maxBody int64) (job.New, *response.Problem) {
	f := jobForm{New: job.New{Spec: job.Spec{Queue: job.Queue{Namespace: job.DefaultNamespace}}}}
	for name, value := range f.object("", raw) {
		bit := JobFields[string(name)]
		switch {
		case bit == 0:
			f.unknownField("", name, "a job")
		case isNull(value) && bit != fieldBody: // as if left out
		default:
			f.read(bit, value)
		}
	}
	p := f.check(now, maxBody)
	f.Header = job.CanonicalHeader(f.Header)
	canonicalHeaders(f.OnDelivered, f.OnDead)
	return f.New, p
}

// DecodeEdit reads an edit of a job.
func DecodeEdit(raw []byte, now time.Time, maxBody int64) (job.Edit, *response.Problem) {
	var f jobForm
	for name, value := range f.object("", raw) {
		switch bit := JobFields[string(name)]; {
		case bit == 0:
			f.unknownField("", name, "a job")
		case bit&FieldsEditable == 0:
			f.AddError("/"+string(name), "cannot be changed: cancel the job and register another")
		case !isNull(value) || bit == fieldBody:
			f.read(bit, value)
		case bit&fieldsRemovable == 0:
			f.AddError("/"+string(name), "must not be null")
		default:
			f.present |= bit
		}
	}
	if f.present&fieldContentType != 0 && f.present&fieldsOfBody == 0 {
		f.AddError("/content_type", "can only be changed together with a body")
	}
	if f.present == 0 && len(f.errors) == 0 {
		f.AddError("", "must set a field to change")
	}
	p := f.check(now, maxBody)
	if p == nil {
		p = f.problem(job.ValidateExpiry(&f.New, now))
	}
	f.Header = job.CanonicalHeader(f.Header)
	return f.edit(), p
}

// read reads one field.
func (f *jobForm) read(bit jobField, value []byte) {
	f.present |= bit
	switch bit {
	case fieldID:
		f.ID = f.name("/id", value)
	case fieldTopic:
		f.Topic = f.name("/topic", value)
	case fieldLane:
		f.Lane = f.name("/lane", value)
	case fieldURL:
		f.URL = f.name("/url", value)
	case fieldMethod:
		f.Method = f.name("/method", value)
	case fieldHeaders:
		f.Header = f.headers("/headers", value)
	case fieldBody:
		f.BodyKind, f.Body = job.BodyJSON, value
	case fieldBodyText:
		f.BodyKind, f.Body = job.BodyText, []byte(f.text("/body_text", value))
	case fieldBodyBase64:
		f.BodyKind, f.Body = job.BodyBase64, f.base64("/body_base64", value)
	case fieldContentType:
		f.ContentType = f.name("/content_type", value)
	case fieldDelay:
		f.Delay = f.duration("/delay", value)
	case fieldRunAt:
		f.RunAt = f.time("/run_at", value)
	case fieldRetries:
		f.Retries = new(clampInt(f.integer("/retries", value)))
	case fieldLadder:
		f.Ladder = f.ladder("/ladder", value)
	case fieldTimeout:
		f.Timeout = outOfRangeIfZero(f.duration("/timeout", value))
	case fieldExpiresIn:
		f.ExpiresIn = outOfRangeIfZero(f.duration("/expires_in", value))
	case fieldExpiresAt:
		f.ExpiresAt = f.time("/expires_at", value)
	case fieldLabels:
		f.Labels = f.labels("/labels", value)
	case fieldOnDelivered:
		f.OnDelivered = f.callback("/on_delivered", value, nil, false)
	case fieldOnDead:
		f.OnDead = f.callback("/on_dead", value, nil, false)
	}
}

// outOfRangeIfZero returns -1 for 0, which validation takes for unset.
func outOfRangeIfZero[N time.Duration | int | int64](n N) N {
	if n == 0 {
		return -1
	}
	return n
}

// clampInt converts to an int. Values that it clamps are out of every field's range.
func clampInt(n int64) int { return int(min(max(n, -1<<31), 1<<31-1)) }

// check validates the job, and sets its content type.
func (f *jobForm) check(now time.Time, maxBody int64) *response.Problem {
	if f.present&fieldDelay != 0 && f.present&fieldRunAt != 0 {
		f.errors = append(f.errors, job.MutuallyExclusive("/run_at", "delay"))
	}
	if f.present&fieldExpiresIn != 0 && f.present&fieldExpiresAt != 0 {
		f.errors = append(f.errors, job.MutuallyExclusive("/expires_at", "expires_in"))
	}
	f.rejectRedacted("/headers", f.Header)
	f.completeContentType()
	large := int64(len(f.Body)) > maxBody
	if large {
		f.AddError(f.bodyPointer(), "must be at most "+strconv.FormatInt(maxBody, 10)+" B")
	}
	p := f.problem(job.Validate(f.New, now))
	if large && p.Status == http.StatusUnprocessableEntity {
		p.Status = http.StatusRequestEntityTooLarge
	}
	return p
}

// completeContentType sets the default content type, and refuses a second body or content type.
func (f *jobForm) completeContentType() {
	switch kinds := f.present & fieldsOfBody; kinds {
	case 0, fieldBody, fieldBodyText, fieldBodyBase64:
	default:
		f.AddError("/body", "must be one of body, body_text and body_base64")
	}
	for name := range f.Header {
		if !strings.EqualFold(name, "Content-Type") {
			continue
		}
		if f.ContentType != "" {
			f.errors = append(f.errors, job.MutuallyExclusive("/content_type", "the header Content-Type"))
		}
		return
	}
	if f.ContentType == "" {
		f.ContentType = contentTypes[f.BodyKind]
	}
}

// contentTypes are the default content types.
var contentTypes = map[job.BodyKind]string{
	job.BodyJSON: "application/json", job.BodyText: "text/plain; charset=utf-8", job.BodyBase64: "application/octet-stream",
}

// bodyPointer returns the JSON pointer of the body.
func (f *jobForm) bodyPointer() string {
	switch f.BodyKind {
	case job.BodyText:
		return "/body_text"
	case job.BodyBase64:
		return "/body_base64"
	default:
		return "/body"
	}
}

// edit returns the edit.
func (f *jobForm) edit() job.Edit {
	has := func(bit jobField) bool { return f.present&bit != 0 }
	e := job.Edit{}
	if has(fieldDelay | fieldRunAt) {
		e.Due = &job.Moment{In: f.Delay, At: f.RunAt}
	}
	if has(fieldExpiresIn | fieldExpiresAt) {
		e.Expiry = &job.Moment{In: f.ExpiresIn, At: f.ExpiresAt}
	}
	if !has(fieldsOfSpec) {
		return e
	}
	e.Change = func(to *job.Spec) {
		if has(fieldURL) {
			to.URL = f.URL
		}
		if has(fieldHeaders) {
			to.Header = f.Header
		}
		if has(fieldsOfBody) {
			to.BodyKind, to.ContentType, to.Body = f.BodyKind, f.ContentType, f.Body
		}
		if has(fieldRetries) {
			to.Retries = f.Retries
		}
		if has(fieldLadder) {
			to.Ladder = f.Ladder
		}
		if has(fieldTimeout) {
			to.Timeout = f.Timeout
		}
		if has(fieldLabels) {
			to.Labels = f.Labels
		}
	}
	return e
}
