// This part of the package applies what a request's token may send and see within its role: its topics, bodies, and the
// settings of topics and lanes. Secret headers in callbacks and in the changes of bulk work are redacted for every
// token.

package api

import (
	"net/http"
	"slices"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
)

// hideBodies replaces the bodies of a job and of receivers' responses, unless the request's token may read them. It
// also replaces what the job itself has of the settings of a topic, unless the token may read those: a lane with the
// receiver's name, and of a callback receiver, headers and payload.
func hideBodies(r *http.Request, j *job.Job) {
	if !request.PrincipalOf(r.Context()).Allows(access.ReadTopic) {
		j.Lane = j.LaneWithoutHost()
	}
	if isCallbackOfSettings(r, j) {
		j.URL, j.FirstURL, j.Lane, j.Header = response.Redacted, "", response.Redacted, nil
		j.BodyKind, j.Body = job.BodyText, []byte(response.Redacted)
	}
	if request.PrincipalOf(r.Context()).Bodies {
		return
	}
	hideTemplate(r, &j.Spec)
	j.History = slices.Clone(j.History) // the service may have it
	for i := range j.History {
		if len(j.History[i].Body) > 0 {
			j.History[i].Body = []byte(response.Redacted)
		}
	}
}

// isCallbackOfSettings reports whether a job may come from the settings of a topic that the request's token may not
// read.
func isCallbackOfSettings(r *http.Request, j *job.Job) bool {
	return j.Kind != "" && !request.PrincipalOf(r.Context()).Allows(access.ReadTopic)
}

// hideTemplate replaces the body of what a job asks for, unless the request's token may read it.
func hideTemplate(r *http.Request, spec *job.Spec) {
	if spec.BodyKind != job.BodyNone && !request.PrincipalOf(r.Context()).Bodies {
		spec.BodyKind, spec.Body = job.BodyText, []byte(response.Redacted)
	}
}

// hideSettings replaces what a job's attempts and its explanation show of topics and lanes, unless the request's token
// may read them: URLs that are not the job's own and whatever tells their hosts, and texts with limits, counts and
// notes. The job's bodies are hidden before.
func hideSettings(r *http.Request, j *job.Job, x *job.Explanation) *job.Explanation {
	if request.PrincipalOf(r.Context()).Allows(access.ReadTopic) {
		return x
	}
	j.History = slices.Clone(j.History) // the service may have it
	isCallback := isCallbackOfSettings(r, j)
	for i := range j.History {
		// The URL of a callback's attempt is the callback's own, which is hidden by then, so its whole answer is.
		if a := &j.History[i]; a.URL != "" || isCallback {
			a.HideReceiver(isCallback)
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
		shown.WaitingFor = x.WaitingFor.General()
	}
	return &shown
}
