package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/api/jsonscan"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// hideBodies replaces the bodies of a job and of receivers' responses, unless the request's token may read them.
func hideBodies(r *http.Request, j *job.Job) {
	if access.PrincipalOf(r.Context()).Bodies {
		return
	}
	if j.BodyKind != job.BodyNone {
		j.BodyKind, j.Body = job.BodyText, []byte(response.Redacted)
	}
	j.History = slices.Clone(j.History) // the service may have it
	for i := range j.History {
		if len(j.History[i].Body) > 0 {
			j.History[i].Body = []byte(response.Redacted)
		}
	}
}

// hideSettings replaces what a job's attempts and its explanation show of topics and lanes, unless the request's token may read
// them: URLs that are not the job's own, and texts with limits, counts and notes.
func hideSettings(r *http.Request, j *job.Job, x *job.Explanation) *job.Explanation {
	if access.PrincipalOf(r.Context()).Allows(access.ReadTopic) {
		return x
	}
	j.History = slices.Clone(j.History) // the service may have it
	for i := range j.History {
		if j.History[i].URL != "" {
			j.History[i].URL = response.Redacted
			j.History[i].RemoteAddr = ""
		}
	}
	if x == nil {
		return nil
	}
	shown := *x
	if x.Effective != nil {
		effective := *x.Effective
		if effective.URL != j.URL {
			effective.URL = response.Redacted
		}
		shown.Effective = &effective
	}
	if x.WaitingFor != nil {
		shown.WaitingFor = &job.Wait{Kind: x.WaitingFor.Kind, Until: x.WaitingFor.Until, Detail: x.WaitingFor.Kind.Summary()}
	}
	return &shown
}

// redactCallback redacts secret headers in the payload of a callback: the job's, and those of the receiver's response.
// Payloads other than JSON objects are returned unchanged.
func redactCallback(payload []byte) []byte {
	if !json.Valid(payload) {
		return payload
	}
	if payload = jsonscan.SkipSpace(payload); payload[0] != '{' {
		return payload
	}
	o := new(response.Buffer)
	o.Open()
	for name, value := range jsonscan.Members(payload) {
		if value[0] == '{' {
			value = redactHeaders(value)
		}
		o.Member(string(name), value)
	}
	o.Close()
	return o.Bytes()
}

// redactHeaders redacts the secret headers of a job or of an attempt.
func redactHeaders(object []byte) []byte {
	o := new(response.Buffer)
	o.Open()
	for name, value := range jsonscan.Members(object) {
		if string(name) != "headers" && string(name) != "response_headers" || value[0] != '{' {
			o.Member(string(name), value)
			continue
		}
		o.Object(string(name))
		for header, values := range jsonscan.Members(value) {
			if job.SecretHeader(string(header)) {
				values = []byte(`"` + response.Redacted + `"`)
			}
			o.Member(string(header), values)
		}
		o.Close()
	}
	o.Close()
	return o.Bytes()
}

// checkBodies refuses a change of jobs by a token that may not read bodies, if it sends them to another URL, or contains
// the placeholder that the token got instead.
func checkBodies(ctx context.Context, url string, edit *job.Edit) error {
	if access.PrincipalOf(ctx).Bodies {
		return nil
	}
	if edit == nil {
		edit = &job.Edit{}
	}
	if url != "" || edit.Spec.URL != "" {
		return response.NewProblem(response.Forbidden, "this token may not read bodies, so it cannot send those of jobs to another URL: leave out url")
	}
	return checkPlaceholder(ctx, &edit.Spec)
}

// checkPlaceholder refuses a body that is the placeholder of bodies, from a token that may not read them.
func checkPlaceholder(ctx context.Context, spec *job.Spec) error {
	if spec.BodyKind != job.BodyText || string(spec.Body) != response.Redacted || access.PrincipalOf(ctx).Bodies {
		return nil
	}
	return response.Invalid(job.FieldError{
		Field: "/body_text", Detail: "is the placeholder of a body that this token may not read: send the body itself",
	})
}
