package api

import (
	"errors"
	"net/http"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// maxPolicy bounds a policy's request, in bytes.
const maxPolicy = 512 << 10

// topicsStandard is the default number of topics in a list.
const topicsStandard = 100

// topics lists topics in order of name.
func (a *api) topics(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r, "limit", "cursor")
	limit, after := q.Limit(topicsStandard), q.Get("cursor")
	if err := q.Err(); err != nil {
		return err
	}
	return a.serveList(w, r, limit, func(o *response.Buffer) error {
		// One more than shown tells whether there are more.
		topics, err := a.service.Topics(r.Context(), job.DefaultNamespace, after, limit+1)
		if err != nil {
			return err
		}
		o.Open()
		o.Array("items")
		for _, t := range topics[:min(limit, len(topics))] {
			o.Open()
			o.Topic(t, a.service.Effective(t.Policy))
			o.Close()
		}
		o.CloseArray()
		if len(topics) > limit {
			o.Text("next_cursor", topics[limit-1].Name)
		}
		o.Close()
		return nil
	})
}

// topic answers with a topic's effective policy.
func (a *api) topic(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathTopic(r)
	if err != nil {
		return err
	}
	t, err := a.findTopic(r, name)
	if err != nil {
		return err
	}
	t.Durability = nil // of a change only
	a.answerTopic(w, t)
	return nil
}

// putTopic sets a whole policy.
func (a *api) putTopic(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathNewTopic(r)
	if err != nil {
		return err
	}
	text, err := request.ReadJSON(w, r, maxPolicy)
	if err != nil {
		return err
	}
	return a.changeTopic(w, r, name, func(stored policy.Topic) (policy.Topic, *response.Problem) {
		return request.PutTopic(text, stored)
	})
}

// patchTopic changes some fields of a policy.
func (a *api) patchTopic(w http.ResponseWriter, r *http.Request) error {
	name, err := a.knownTopic(r)
	if err != nil {
		return err
	}
	text, err := request.ReadJSON(w, r, maxPolicy)
	if err != nil {
		return err
	}
	return a.changeTopic(w, r, name, func(stored policy.Topic) (policy.Topic, *response.Problem) {
		return request.PatchTopic(text, stored)
	})
}

// pause pauses or resumes a topic.
func (a *api) pause(paused bool) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		name, err := a.knownTopic(r)
		if err != nil {
			return err
		}
		if err := request.RequireNoBody(r); err != nil {
			return err
		}
		return a.changeTopic(w, r, name, func(stored policy.Topic) (policy.Topic, *response.Problem) {
			stored.Paused = paused
			return stored, nil
		})
	}
}

// knownTopic returns the topic in the path, which must exist.
func (a *api) knownTopic(r *http.Request) (string, error) {
	name, err := request.PathTopic(r)
	if err == nil {
		_, err = a.findTopic(r, name)
	}
	return name, err
}

// findTopic returns a topic that was put or named by a job. The topic of callbacks always exists.
func (a *api) findTopic(r *http.Request, name string) (store.Topic, error) {
	t, err := a.service.Topic(r.Context(), job.DefaultNamespace, name)
	if name == job.CallbackTopic && errors.Is(err, store.ErrNotFound) {
		return store.Topic{Namespace: job.DefaultNamespace, Name: name}, nil
	}
	return t, noTopic(err)
}

// changeTopic changes a policy and answers with it.
func (a *api) changeTopic(
	w http.ResponseWriter, r *http.Request, name string, change func(policy.Topic) (policy.Topic, *response.Problem),
) error {
	put, err := a.service.ChangeTopic(r.Context(), job.DefaultNamespace, name, func(stored *policy.Topic) error {
		changed, p := change(*stored)
		if p == nil && name == job.CallbackTopic {
			p = rejectSelfNotification(changed)
		}
		if p != nil {
			return p
		}
		*stored = changed
		return nil
	})
	if err != nil {
		return err
	}
	a.answerTopic(w, put)
	return nil
}

// rejectSelfNotification refuses callbacks of the callback topic: callbacks send no callbacks, and its backlog alarm
// would add to the backlog.
func rejectSelfNotification(t policy.Topic) *response.Problem {
	const detail = "is not supported for " + job.CallbackTopic + ": callbacks send no callbacks"
	var errs []job.FieldError
	if t.OnDelivered != nil {
		errs = append(errs, job.FieldError{Field: "/on_delivered", Detail: detail})
	}
	if t.OnDead != nil {
		errs = append(errs, job.FieldError{Field: "/on_dead", Detail: detail})
	}
	if t.OnBacklog != nil {
		errs = append(errs, job.FieldError{
			Field: "/on_backlog", Detail: "is not supported for " + job.CallbackTopic + ": the alarm would be part of its own backlog",
		})
	}
	if len(errs) == 0 {
		return nil
	}
	return response.Invalid(errs...)
}

// noTopic explains how a topic is created.
func noTopic(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return response.NewProblem(http.StatusNotFound, "no such topic: create it with PUT, or register a job")
	}
	return err
}

// answerTopic answers with a topic and the durability of its change.
func (a *api) answerTopic(w http.ResponseWriter, t store.Topic) {
	o := response.NewBuffer()
	defer o.Free()
	o.Open()
	o.Topic(t, a.service.Effective(t.Policy))
	o.Durability(t.Durability)
	o.Close()
	o.Send(w, http.StatusOK)
}
