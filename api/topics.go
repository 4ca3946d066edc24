package api

import (
	"context"
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

// topics lists topics in order of name.
func (a *api) topics(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r, request.TopicCursor)
	if err != nil {
		return err
	}
	return a.serveList(w, r, p.limit, func(o *response.Buffer) error {
		topics, err := a.service.Topics(r.Context(), namespaceOf(r), p.after, p.limit+1)
		if err != nil {
			return err
		}
		writePage(o, p, topics, func(t *store.Topic) { o.Topic(t, a.service.Effective(t.Policy)) },
			func(t *store.Topic) string { return t.Name })
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
	if same, err := notModified(w, r, t.Revision); same || err != nil {
		return err
	}
	t.Durability = nil // of a change only
	a.answerTopic(w, t)
	return nil
}

// putTopic sets a whole policy.
func (a *api) putTopic(w http.ResponseWriter, r *http.Request) error {
	return a.decodeTopic(w, r, request.PathNewTopic, request.PutTopic, a.service.ReplaceTopic)
}

// patchTopic changes some fields of a policy.
func (a *api) patchTopic(w http.ResponseWriter, r *http.Request) error {
	return a.decodeTopic(w, r, a.knownTopic, request.PatchTopic, a.service.ChangeTopic)
}

// decodeTopic changes the policy of the topic that name returns as decode says.
func (a *api) decodeTopic(
	w http.ResponseWriter, r *http.Request, name func(*http.Request) (string, error),
	decode func([]byte, policy.Topic) (policy.Topic, *response.Problem), write writeTopic,
) error {
	topic, err := name(r)
	if err != nil {
		return err
	}
	text, err := request.ReadJSON(w, r, maxPolicy)
	if err != nil {
		return err
	}
	return a.changeTopic(w, r, topic, func(stored policy.Topic) (policy.Topic, *response.Problem) {
		return decode(text, stored)
	}, write)
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
		}, a.service.ChangeTopic)
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
	t, err := a.service.Topic(r.Context(), namespaceOf(r), name)
	if name == job.CallbackTopic && errors.Is(err, store.ErrNotFound) {
		return store.Topic{Namespace: namespaceOf(r), Name: name}, nil
	}
	return t, noTopic(err)
}

// writeTopic is Topics.ChangeTopic or Topics.ReplaceTopic.
type writeTopic func(ctx context.Context, namespace, name string, ifRevision int64, change func(*policy.Topic) error) (store.Topic, error)

// changeTopic changes a policy and answers with it.
func (a *api) changeTopic(
	w http.ResponseWriter, r *http.Request, name string, change func(policy.Topic) (policy.Topic, *response.Problem), write writeTopic,
) error {
	ifRevision, err := request.IfRevision(r)
	if err != nil {
		return err
	}
	put, err := write(r.Context(), namespaceOf(r), name, ifRevision, func(stored *policy.Topic) error {
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

// rejectSelfNotification refuses callbacks of the callback topic: callbacks send no callbacks, and a callback about
// their backlog would add to it.
func rejectSelfNotification(t policy.Topic) *response.Problem {
	var errs []job.FieldError
	refuse := func(set bool, field, reason string) {
		if set {
			errs = append(errs, job.FieldError{Field: field, Detail: "is not supported for " + job.CallbackTopic + ": " + reason})
		}
	}
	refuse(t.OnDelivered != nil, "/on_delivered", "callbacks send no callbacks")
	refuse(t.OnDead != nil, "/on_dead", "callbacks send no callbacks")
	refuse(t.OnBacklog != nil, "/on_backlog", "the callback would add to the backlog that it reports")
	if len(errs) == 0 {
		return nil
	}
	return response.Invalid(errs...)
}

// notModified answers a GET whose If-None-Match names the revision, and reports whether it did.
func notModified(w http.ResponseWriter, r *http.Request, revision int64) (bool, error) {
	same, err := request.NotModified(r, revision)
	if same {
		w.Header().Set("Etag", request.ETag(revision))
		w.WriteHeader(http.StatusNotModified)
	}
	return same, err
}

// noTopic explains how a topic is created.
func noTopic(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return response.NewProblem(response.NotFound, "no such topic: create it with PUT, or register a job")
	}
	return err
}

// answerTopic answers with a topic and the durability of its change.
func (a *api) answerTopic(w http.ResponseWriter, t store.Topic) {
	w.Header().Set("Etag", request.ETag(t.Revision))
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.Topic(&t, a.service.Effective(t.Policy))
		o.Durability(t.Durability)
	})
}
