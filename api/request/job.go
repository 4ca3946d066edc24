package request

import (
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Whether an edit may change a field of a job.
type editRule int

const (
	fixed    editRule = iota
	editable          // but not to null
	nullable          // null sets the default, or is a body
)

// JobField is a field of a job.
type JobField struct {
	pointer string
	spec    bool // it is one field of job.Spec, of the same name
	read    func(f *jobForm, at string, raw []byte)
	edit    editRule
	// null means that null is a value, not the same as leaving the field out of a registration.
	null bool
	// names are the fields of job.Spec that an edit changes, as in job.Edit; none for times, and for the content type,
	// which goes with the body.
	names []string
}

// Editable reports whether an edit may change the field.
func (f JobField) Editable() bool { return f.edit != fixed }

// specField returns a field that is a member of job.Spec. Null is read as its zero value; of a callback, it switches it
// off.
func specField(m *job.Member) JobField {
	f := JobField{spec: true, read: func(f *jobForm, at string, raw []byte) {
		if !isNull(raw) {
			f.readMember(m, at, raw, m.Of(reflect.ValueOf(&f.New).Elem()), source{})
		}
	}}
	if m.Type == reflect.TypeFor[*policy.Callback]() {
		f.null = true
		f.read = func(f *jobForm, at string, raw []byte) {
			m.Of(reflect.ValueOf(&f.New).Elem()).Set(reflect.ValueOf(f.newCallback(at, raw)))
		}
	}
	return f
}

// editOf returns the rule of a member.
func editOf(m *job.Member) editRule {
	switch {
	case m.Is("nullable"):
		return nullable
	case m.Is("editable"):
		return editable
	default:
		return fixed
	}
}

// bodyField returns a field with a body.
func bodyField(edit editRule, kind job.BodyKind, read func(*decoder, string, []byte) []byte) JobField {
	return JobField{
		edit: edit,
		null: kind == job.BodyJSON,
		read: func(f *jobForm, at string, raw []byte) {
			f.bodies++
			f.BodyKind, f.Body = kind, read(&f.decoder, at, raw)
		},
		names: []string{"body", "content_type"},
	}
}

// JobFields are the fields of a job by name: the members of job.New, of which some have readers of their own, and those
// of the body.
var JobFields = jobFields(map[string]JobField{
	"body": bodyField(nullable, job.BodyJSON, func(_ *decoder, _ string, raw []byte) []byte { return raw }),
	"body_text": bodyField(editable, job.BodyText,
		func(d *decoder, at string, raw []byte) []byte { return []byte(d.text(at, raw)) }),
	"body_base64": bodyField(editable, job.BodyBase64, (*decoder).base64),
	"content_type": {read: func(f *jobForm, at string, raw []byte) {
		f.ContentType = f.name(at, raw)
	}},

	"delay": {read: func(f *jobForm, at string, raw []byte) {
		f.dueTimes++
		f.Delay = f.duration(at, raw)
	}},
	"run_at": {read: func(f *jobForm, at string, raw []byte) {
		f.dueTimes++
		f.RunAt = f.time(at, raw)
	}},
	"expires_in": {read: func(f *jobForm, at string, raw []byte) {
		f.expiries++
		set(&f.ExpiresIn, f.positiveDuration)(at, raw)
	}},
	"expires_at": {read: func(f *jobForm, at string, raw []byte) {
		f.expiries++
		set(&f.ExpiresAt, f.time)(at, raw)
	}},
})

// jobFields adds the members of job.New to the fields with readers of their own.
func jobFields(all map[string]JobField) map[string]JobField {
	members := job.MembersOf(reflect.TypeFor[job.New]()).All
	for i := range members {
		m := &members[i]
		if m.Is("answer") {
			continue
		}
		field, hasReader := all[m.Name]
		if !hasReader {
			field = specField(m)
		}
		field.edit = editOf(m)
		all[m.Name] = field
	}
	for name, field := range all {
		field.pointer = "/" + name
		if field.spec {
			field.names = []string{name}
		}
		all[name] = field
	}
	return all
}

// A jobForm reads a job.
type jobForm struct {
	decoder
	job.New
	bodies, dueTimes, expiries int      // fields with a body, a due time, an expiry
	keyed                      bool     // the id is that of the header IdempotencyKey
	changes                    []string // names of the fields of job.Spec that an edit changes
}

// IdempotencyKey is the header with the id of a job whose body has none.
const IdempotencyKey = "Idempotency-Key"

// DecodeJob reads a registration, without its namespace. keys are the values of the header IdempotencyKey. Times are
// compared with now. maxBody bounds the body, in bytes.
func DecodeJob(raw []byte, keys []string, now time.Time, maxBody int64) (job.New, *response.Problem) {
	var f jobForm
	for name, value := range f.object("", raw) {
		field, known := JobFields[string(name)]
		switch {
		case !known:
			f.unknownField("", name, "a job", maps.Keys(JobFields))
		case isNull(value) && !field.null: // as if left out
		default:
			field.read(&f, field.pointer, value)
		}
	}
	f.readKey(keys)
	p := f.check(now, maxBody)
	f.Header = job.CanonicalHeader(f.Header)
	canonicalHeaders(f.OnDelivered, f.OnDead)
	return f.New, p
}

// readKey takes the id from the header IdempotencyKey, with or without quotes.
func (f *jobForm) readKey(keys []string) {
	if len(keys) == 0 {
		return
	}
	key := keys[0]
	if inner, ok := strings.CutPrefix(key, `"`); ok {
		key = strings.TrimSuffix(inner, `"`)
	}
	switch {
	case len(keys) > 1:
		f.AddError(IdempotencyKey, "must be sent once")
	case key == "":
		f.AddError(IdempotencyKey, "must not be empty: leave it out instead")
	case f.ID == "":
		f.ID, f.keyed = key, true
	case f.ID != key:
		f.AddError(IdempotencyKey, "must equal the id in the body, or be left out")
	}
}

// DecodeEdit reads an edit of a job.
func DecodeEdit(raw []byte, now time.Time, maxBody int64) (job.Edit, *response.Problem) {
	var f jobForm
	f.readEdit(raw, nil)
	p := f.checkEdit(now, maxBody)
	return f.edit(), p
}

// readEdit reads the fields of an edit, except some that refused gives a reason for.
func (f *jobForm) readEdit(raw []byte, refused map[string]string) {
	named := false
	for name, value := range f.object("", raw) {
		field, known := JobFields[string(name)]
		switch {
		case !known:
			f.unknownField("", name, "a job", maps.Keys(JobFields))
			continue
		case refused[string(name)] != "":
			f.AddError(field.pointer, refused[string(name)])
			continue
		case field.edit == fixed:
			f.AddError(field.pointer, "cannot be changed: cancel the job and register another")
			continue
		case field.edit != nullable && isNull(value):
			f.AddError(field.pointer, "must not be null")
			continue
		}
		named = true
		field.read(f, field.pointer, value)
		f.changes = append(f.changes, field.names...)
	}
	if f.ContentType != "" && f.bodies == 0 {
		f.AddError("/content_type", "can only be changed together with a body")
	}
	if !named && len(f.errors) == 0 {
		f.AddError("", "must set a field to change")
	}
}

// checkEdit validates an edit.
func (f *jobForm) checkEdit(now time.Time, maxBody int64) *response.Problem {
	p := f.check(now, maxBody)
	if p == nil {
		p = f.problem(job.ValidateExpiry(&f.New, now))
	}
	f.Header = job.CanonicalHeader(f.Header)
	return p
}

// edit returns the edit.
func (f *jobForm) edit() job.Edit {
	e := job.Edit{Fields: f.changes, Spec: f.Spec}
	if f.dueTimes > 0 {
		e.Due = &job.TimeOrDelay{In: f.Delay, At: f.RunAt}
	}
	if f.expiries > 0 {
		e.Expiry = &job.TimeOrDelay{In: f.ExpiresIn, At: f.ExpiresAt}
	}
	return e
}

// TimeField returns the JSON pointer of the time that an edit changes, of the expiry rather than of the due time.
func TimeField(e job.Edit) string {
	switch {
	case e.Expiry != nil && e.Expiry.At.IsZero():
		return "/expires_in"
	case e.Expiry != nil:
		return "/expires_at"
	case e.Due != nil && e.Due.At.IsZero():
		return "/delay"
	default:
		return "/run_at"
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
	if f.dueTimes > 1 {
		f.errors = append(f.errors, job.MutuallyExclusive("/run_at", "delay"))
	}
	if f.expiries > 1 {
		f.errors = append(f.errors, job.MutuallyExclusive("/expires_at", "expires_in"))
	}
	f.rejectRedacted("/headers", f.Header)
	f.completeContentType()
	large := int64(len(f.Body)) > maxBody
	if large {
		f.AddError(f.bodyPointer(), "must be at most "+strconv.FormatInt(maxBody, 10)+" B")
	}
	checked := job.Validate(f.New, now)
	for i := range checked {
		if f.keyed && checked[i].Field == "/id" {
			checked[i].Field = IdempotencyKey
		}
	}
	p := f.problem(checked)
	if large && p.Code == response.InvalidField {
		return response.TooLargeFields(p.Fields...)
	}
	return p
}

// completeContentType sets the default content type, and refuses a second body or content type.
func (f *jobForm) completeContentType() {
	if f.bodies > 1 {
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
		f.ContentType = f.BodyKind.ContentType()
	}
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
