package dispatcher

import (
	"maps"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
)

// Details of the fields that differ.
const (
	differs   = "differs from the stored job"
	mayDiffer = "may differ: values of secret headers are not compared"
)

// takenError compares a registration with the stored job of its id. request is the registration as it was sent, n with
// its defaults. Secret values, and the other fields of a job of another topic, are not compared: a client that may not
// read them does not learn whether a guess is right.
func (d *Dispatcher) takenError(request, n *job.New, stored *job.Job) *job.TakenError {
	e := &job.TakenError{ID: n.ID}
	add := func(field, detail string) {
		e.Differs = append(e.Differs, job.FieldError{Field: field, Detail: detail})
	}
	if n.Topic != stored.Topic {
		add("/topic", differs)
		return e
	}
	if request.Lane != "" && n.Lane != stored.Lane {
		add("/lane", differs)
	}
	sent, kept := withoutSecrets(d.sealer.VisibleSpec(n.Spec)), withoutSecrets(d.sealer.VisibleSpec(stored.Spec))
	for _, name := range codec.Diff(sent, kept) {
		if name != "headers" {
			add("/"+name, differs)
			continue
		}
		names := slices.Concat(slices.Collect(maps.Keys(sent.Header)), slices.Collect(maps.Keys(kept.Header)))
		slices.Sort(names)
		for _, header := range slices.Compact(names) {
			if (header == job.HeaderTraceparent || header == job.HeaderTracestate) && !job.HasTrace(request.Header) {
				continue // they are of the requests
			}
			if !slices.Equal(sent.Header[header], kept.Header[header]) {
				add(job.JSONPointer("/headers", header), differs)
			}
		}
	}
	if field := differentDueTime(n, stored); field != "" {
		add(field, differs)
	}
	if field := differentExpiry(n, stored); field != "" {
		add(field, differs)
	}
	if e.Cancelled = stored.State == job.Cancelled && len(e.Differs) == 0; !e.Cancelled && len(e.Differs) == 0 {
		for _, header := range slices.Sorted(maps.Keys(n.Header)) {
			if job.SecretHeader(header) && !stored.CreatedAt.IsZero() {
				add(job.JSONPointer("/headers", header), mayDiffer)
			}
		}
	}
	return e
}

// withoutSecrets returns a specification with the values of secret headers removed.
func withoutSecrets(s job.Spec) job.Spec {
	s.Header = redactHeaders(s.Header)
	for _, c := range []**policy.Callback{&s.OnDelivered, &s.OnDead} {
		if *c != nil {
			shown := **c
			shown.Headers = redactHeaders(shown.Headers)
			*c = &shown
		}
	}
	return s
}

// rounding bounds the difference between a time in a request and in the store, which has whole milliseconds.
const rounding = 2 * time.Millisecond

// differentDueTime returns the field of a due time that differs from that of a stored job; empty: equal, or unknown
// because the job was revived or is not kept.
func differentDueTime(n *job.New, stored *job.Job) string {
	if stored.Generation > 0 || stored.CreatedAt.IsZero() {
		return ""
	}
	field, due := "/delay", stored.CreatedAt.Add(max(n.Delay, 0))
	if !n.RunAt.IsZero() {
		field, due = "/run_at", n.RunAt
		if due.Before(stored.CreatedAt) {
			due = stored.CreatedAt
		}
	}
	if due.Sub(stored.FirstDueAt).Abs() <= rounding {
		return ""
	}
	return field
}

// differentExpiry is differentDueTime for the expiry.
func differentExpiry(n *job.New, stored *job.Job) string {
	if stored.Generation > 0 || stored.CreatedAt.IsZero() {
		return ""
	}
	field, expiry := "/expires_at", n.ExpiresAt
	if expiry.IsZero() && n.ExpiresIn > 0 {
		field, expiry = "/expires_in", stored.CreatedAt.Add(n.ExpiresIn)
	}
	if expiry.IsZero() != stored.ExpiresAt.IsZero() || expiry.Sub(stored.ExpiresAt).Abs() > rounding {
		return field
	}
	return ""
}

// redacted replaces the values of secret headers.
const redacted = "[redacted]"

// redactHeaders returns headers with the values of secret headers replaced.
func redactHeaders(header map[string][]string) map[string][]string {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(header)), job.SecretHeader) {
		return header
	}
	shown := maps.Clone(header)
	for name := range header {
		if job.SecretHeader(name) {
			shown[name] = []string{redacted}
		}
	}
	return shown
}
