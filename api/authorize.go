package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// namespaceOf returns the namespace of a request.
func namespaceOf(r *http.Request) string { return request.PrincipalOf(r.Context()).Namespace }

// actorOf returns the name of a request's token, for the events of jobs.
func actorOf(ctx context.Context) string { return request.PrincipalOf(ctx).Actor }

// changeOptions returns the options of a change of settings by a request's client.
func changeOptions(r *http.Request, ifRevision int64) store.ChangeOptions {
	return store.ChangeOptions{
		IfRevision: ifRevision, Updated: policy.Update{At: job.Millis(time.Now()), By: actorOf(r.Context())},
	}
}

// authorize refuses a request that its token does not allow: by its role, or by the topics that it is restricted to.
func (a *api) authorize(r *http.Request, e endpoint) error {
	if e.action == access.Open {
		return nil
	}
	p := request.PrincipalOf(r.Context())
	if !p.Allows(e.action) {
		return forbidRole(p, e.action)
	}
	if len(p.Topics) == 0 {
		return nil
	}
	switch e.topic {
	case ofPath:
		return checkTopic(r.Context(), r.PathValue("topic"))
	case ofJob:
		return a.checkTopicOfJob(r, p)
	case ofRequest, ofWork, ofEvent, ofSchedule, ofItems, ofNone:
		return nil
	default:
		return response.NewProblem(response.Forbidden, "this concerns all topics, and "+restriction(p))
	}
}

// forbidRole explains which role is required.
func forbidRole(p *access.Principal, action access.Action) error {
	if action.NeedsRoot() {
		return response.NewProblem(response.Forbidden, string(action)+" requires a root token")
	}
	var roles []string
	for _, role := range access.RolesFor(action) {
		roles = append(roles, string(role))
	}
	return response.NewProblem(response.Forbidden,
		string(action)+" requires a token with the role "+strings.Join(roles, " or ")+": this token has the role "+
			string(p.Role))
}

// checkTopicOfJob refuses a job of a topic that the token may not use, as if it did not exist.
func (a *api) checkTopicOfJob(r *http.Request, p *access.Principal) error {
	ref, err := request.PathJob(r)
	if err != nil {
		return err
	}
	s, err := a.service.FindStore(r.Context(), ref.Namespace)
	if err != nil {
		return err
	}
	found, err := s.Get(r.Context(), ref)
	if err == nil && !p.Topics.Match(found.Topic) {
		err = store.ErrNotFound
	}
	return err
}
