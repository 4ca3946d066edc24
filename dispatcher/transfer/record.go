package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringback/ringback/dispatcher/tenancy"
	"github.com/ringback/ringback/dispatcher/work"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// jobLine is a line with a job. Names are those of the API. Durations are in nanoseconds.
type jobLine struct {
	job.Spec
	job.Progress

	// Body and BodyBase64 are in place of Spec.Body: a text, or what is none.
	Body       *string `json:"body,omitempty"`
	BodyBase64 []byte  `json:"body_base64,omitzero"`
	// History has attempts, then events, in their stored forms.
	History     []json.RawMessage `json:"history,omitempty"`
	Fingerprint []byte            `json:"fingerprint,omitzero"`
	MaxAge      time.Duration     `json:"max_age,omitzero"`
}

// lineOf returns the line of a record. A running job is scheduled in it: its lease ends with the move. It is cancelled
// if that was requested.
func lineOf(r *store.Record, now time.Time) *jobLine {
	l := &jobLine{Spec: r.Spec, Progress: r.Progress, Fingerprint: r.Fingerprint, MaxAge: r.MaxAge}
	switch {
	case isCancelled(&r.Job):
		l.State, l.FinishedAt, l.Reason, l.CancelRequested = job.Cancelled, job.Millis(now), job.ReasonCancelled, false
	case !l.State.Ended():
		l.State = job.Scheduled
	}
	body := r.Body
	if r.Topic == job.WorkTopic && !l.State.Ended() {
		body = work.PortableBody(body)
	}
	if l.Spec.Body = nil; body != nil && isText(body) {
		l.Body = new(string(body))
	} else {
		l.BodyBase64 = body
	}
	for i := range r.History {
		l.History = append(l.History, r.History[i].JSON())
	}
	for i := range r.Events {
		l.History = append(l.History, r.Events[i].JSON())
	}
	// A job that has lost its progress may have kept its history.
	l.Attempts, l.Version = max(l.Attempts, countedAttempts(r)), max(l.Version, int64(len(r.Events))+1)
	return l
}

// isText reports whether a body is written as text: as that it is hardly longer, and can be read.
func isText(body []byte) bool {
	return utf8.Valid(body) && !bytes.ContainsFunc(body,
		func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' && c != '\r' })
}

// isCancelled reports whether a job is running and ends as cancelled with its lease.
func isCancelled(j *job.Job) bool { return j.CancelRequested && !j.State.Ended() }

// record returns the record of a line, or what is wrong with it.
func (l *jobLine) record() (store.Record, error) {
	r := store.Record{Job: job.Job{Spec: l.Spec, Progress: l.Progress}, Fingerprint: l.Fingerprint, MaxAge: l.MaxAge}
	switch {
	case l.Body != nil && l.BodyBase64 != nil:
		return r, errors.New("body cannot be combined with body_base64")
	case l.Body != nil:
		r.Body = []byte(*l.Body)
	default:
		r.Body = l.BodyBase64
	}
	for _, text := range l.History {
		if err := r.AddEntry(text); err != nil {
			return r, fmt.Errorf("history: %w", err)
		}
	}
	if len(r.History)+len(r.Events) != len(l.History) {
		return r, fmt.Errorf("history has more than %d attempts, releases or events", job.MaxAttempts)
	}
	for i, text := range l.History {
		if canonical := entry(&r.Job, i); string(canonical) != string(text) {
			return r, fmt.Errorf("history/%d is not as it was exported", i)
		}
	}
	return r, check(&r)
}

// entry returns the stored form of an entry of the history, attempts first.
func entry(j *job.Job, i int) []byte {
	if i < len(j.History) {
		return j.History[i].JSON()
	}
	return j.Events[i-len(j.History)].JSON()
}

// countedAttempts returns the number of attempts in the history that count.
func countedAttempts(r *store.Record) (n int) {
	for i := range r.History {
		if r.History[i].Kind.Counts() {
			n++
		}
	}
	return n
}

// maxCount bounds numbers of attempts, versions and generations.
const maxCount = 1 << 40

// check checks what engines rely on.
func check(r *store.Record) error {
	if err := checkNames(r); err != nil {
		return err
	}
	for name, n := range map[string]int64{
		"version": r.Version - 1, "generation": int64(r.Generation), "attempts": int64(r.Attempts),
		"failed_attempts": int64(r.FailedAttempts), "consecutive_lost": int64(r.ConsecutiveLost),
		"status": int64(r.Status), "max_age": int64(r.MaxAge / time.Millisecond),
	} {
		if n < 0 || n > maxCount {
			return fmt.Errorf("%s is out of range", name)
		}
	}
	for name, t := range map[string]time.Time{
		"created_at": r.CreatedAt, "due_at": r.DueAt, "first_due_at": r.FirstDueAt, "expires_at": r.ExpiresAt,
		"finished_at": r.FinishedAt,
	} {
		required := name != "expires_at" && name != "finished_at"
		if t.IsZero() && required || !t.IsZero() && (t.Unix() <= 0 || t.Year() > 9999) || !t.Equal(job.Millis(t)) {
			return fmt.Errorf("%s must be a time in whole milliseconds", name)
		}
	}
	switch {
	case r.State != job.Scheduled && !r.State.Ended():
		return errors.New("state must be scheduled, delivered, dead or cancelled")
	case r.State.Ended() == r.FinishedAt.IsZero():
		return errors.New("finished_at is for jobs that have ended")
	case r.CancelRequested:
		return errors.New("cancel_requested is for running jobs")
	case countedAttempts(r) > r.Attempts:
		return errors.New("history has more attempts than attempts says")
	case int64(len(r.Events)) > r.Version-1:
		return errors.New("history has more events than version says")
	}
	return nil
}

// checkNames checks the names and the specification of a job.
func checkNames(r *store.Record) error {
	switch {
	case !job.IsNamespace(r.Namespace):
		return errors.New("namespace is not valid")
	case !job.IsTopic(r.Topic):
		return errors.New("topic is not valid")
	case !job.IsLane(r.Lane):
		return errors.New("lane is not valid")
	case !job.IsID(r.ID):
		return errors.New("id is not valid")
	case len(r.Body) > job.MaxBody:
		return fmt.Errorf("the body is larger than %d B", job.MaxBody)
	case len(r.Fingerprint) > 255:
		return errors.New("fingerprint is too long")
	case r.BodyKind > job.BodyBase64:
		return errors.New("body_kind is not known")
	case strings.ContainsFunc(string(r.Reason)+string(r.ErrorClass), func(c rune) bool { return c <= ' ' }):
		return errors.New("reason and error_class must be one word each")
	case r.Status != 0 && r.ErrorClass != "":
		return errors.New("status cannot be combined with error_class")
	}
	for name, values := range r.Header {
		if !job.IsFieldName(name) {
			return fmt.Errorf("headers: %q is not a name", name)
		}
		if _, sealed := job.Sealed(values); sealed {
			continue
		}
		for _, value := range values {
			if !job.IsFieldValue(value) {
				return fmt.Errorf("headers: the value of %s is not valid", name)
			}
		}
	}
	return nil
}

// mainKinds are the kinds of documents of the main store, and storeKinds those that each store has for its namespaces.
var (
	mainKinds  = []string{tenancy.KindNamespace, tenancy.KindToken, tenancy.KindLastUses}
	storeKinds = []string{store.KindTopic, store.KindSchedule}
)

// check checks the names of a document.
func (d *document) check() error {
	switch {
	case !slices.Contains(slices.Concat(mainKinds, storeKinds, []string{store.KindLane}), d.Kind):
		return fmt.Errorf("the kind %q is not known", d.Kind)
	case !job.IsNamespace(d.Namespace):
		return errors.New("namespace is not valid")
	case !job.IsTopic(d.Name) && !(d.Kind == store.KindSchedule && job.IsID(d.Name)):
		return errors.New("name is not valid")
	case (d.Kind == store.KindLane) != (d.Lane != ""), d.Lane != "" && !job.IsLane(d.Lane):
		return errors.New("lane is not valid")
	case len(d.Value) == 0 || d.Value[0] != '{':
		return errors.New("value must be an object")
	}
	return nil
}
