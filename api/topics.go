package api

import (
	"context"
	"errors"
	"net/http"
	"reflect"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// maxPolicy bounds a policy's request, in bytes.
const maxPolicy = 512 << 10

func (a *api) topicEndpoints() []endpoint {
	const topic = "/v1/topics/{topic}"
	return []endpoint{
		at("GET /v1/topics", access.ReadTopic, ofAll, a.on(onStore.topics), paged("defaults")),
		at("GET "+topic, access.ReadTopic, ofPath, a.on(onStore.topic), query("defaults")),
		at("PUT "+topic, access.ChangeTopic, ofPath, a.on(onStore.putTopic), query(dryRun, "defaults"), ofSettings),
		at("PATCH "+topic, access.ChangeTopic, ofPath, a.on(onStore.patchTopic), ofSettings),
		at("DELETE "+topic, access.DeleteTopic, ofPath, a.on(onStore.deleteTopic), query("purge"), ofSettings),
		at("POST "+topic+"/pause", access.PauseTopic, ofPath, a.on(pauseTopic), ofSettings),
		at("POST "+topic+"/resume", access.ResumeTopic, ofPath, a.on(resumeTopic), ofSettings),
	}
}

// topics lists topics in order of name.
func (a onStore) topics(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	p, defaults := readPage(q, request.Topics), q.Bool("defaults", true)
	if err := q.Err(); err != nil {
		return err
	}
	return a.serveList(w, r, p.limit, func(o *response.Buffer) error {
		topics, err := a.store.Topics(r.Context(), namespaceOf(r), p.after, p.limit+1)
		if err != nil {
			return err
		}
		writePage(o, p, topics, func(o *response.Buffer, t *store.Topic) {
			t.Durability = nil // of a change only
			o.Topic(t, a.shownPolicy(r.Context(), t, defaults))
		}, func(t *store.Topic) string { return t.Name })
		return nil
	})
}

// shownPolicy returns a topic's policy as answers show it: with every default filled in, or as it is stored.
func (a onStore) shownPolicy(ctx context.Context, t *store.Topic, defaults bool) policy.Topic {
	if !defaults {
		return t.Policy
	}
	p := a.store.Effective(ctx, t.Namespace, t.Policy)
	p.MaxAge = p.Terms(policy.Terms{}).MaxAge
	p.Success = p.Success.WithDefaults()
	return p
}

// topic answers with a topic's policy.
func (a onStore) topic(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathTopic(r)
	if err != nil {
		return err
	}
	q := request.NewQuery(r)
	defaults := q.Bool("defaults", true)
	if err := q.Err(); err != nil {
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
	a.answerTopic(w, r, t, defaults)
	return nil
}

// putTopic sets a whole policy.
func (a onStore) putTopic(w http.ResponseWriter, r *http.Request) error {
	return a.decodeTopic(w, r, request.PathNewTopic, request.PutTopic, a.store.ReplaceTopic)
}

// patchTopic changes some fields of a policy.
func (a onStore) patchTopic(w http.ResponseWriter, r *http.Request) error {
	return a.decodeTopic(w, r, a.knownTopic, func(text []byte, stored policy.Topic) (policy.Topic, *response.Problem) {
		return request.PatchTopic(text, stored, request.PrincipalOf(r.Context()).Bodies)
	}, a.store.ChangeTopic)
}

// decodeTopic changes the policy of the topic that name returns as decode says.
func (a onStore) decodeTopic(
	w http.ResponseWriter, r *http.Request, name func(*http.Request) (string, error),
	decode func([]byte, policy.Topic) (policy.Topic, *response.Problem), write writeTopic,
) error {
	topic, err := name(r)
	if err != nil {
		return err
	}
	q := request.NewQuery(r)
	dry := q.Bool("dry_run", false)
	defaults := q.Bool("defaults", !dry)
	if err := q.Err(); err != nil {
		return err
	}
	text, err := request.ReadJSON(w, r, maxPolicy)
	if err != nil {
		return err
	}
	return a.changeTopic(w, r, topic, dry, defaults, func(stored policy.Topic) (policy.Topic, *response.Problem) {
		return decode(text, stored)
	}, write)
}

// pauseTopic and resumeTopic pause and resume a topic.
var pauseTopic, resumeTopic = pauses(onStore.knownTopic,
	func(a onStore, w http.ResponseWriter, r *http.Request, name string, set setPause) error {
		change := func(stored policy.Topic) (policy.Topic, *response.Problem) {
			set(&stored.Paused, &stored.Pause)
			return stored, nil
		}
		return a.changeTopic(w, r, name, false, true, change, a.store.ChangeTopic)
	})

// deleteTopic removes a topic, and with purge=true its unfinished jobs and dead letters before.
func (a onStore) deleteTopic(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathTopic(r)
	if err != nil {
		return err
	}
	switch {
	case name == job.CallbackTopic:
		return response.Invalid(job.FieldError{Field: "/topic", Detail: "is Ringback's own and cannot be deleted: " +
			"PUT {} resets its policy"})
	case job.IsReserved(name):
		return ownTopic()
	}
	q := request.NewQuery(r)
	deletion := store.TopicDeletion{
		Namespace: namespaceOf(r), Name: name, Purge: q.Bool("purge", false),
		Actor: request.PrincipalOf(r.Context()).Actor,
	}
	if err := q.Err(); err != nil {
		return err
	}
	if err := request.RequireNoBody(r); err != nil {
		return err
	}
	if deletion.IfRevision, err = request.IfRevision(r); err != nil {
		return err
	}
	done, err := a.store.DeleteTopic(r.Context(), deletion)
	if done.Cancelled > 0 || done.Purged > 0 {
		a.audit(r, "topic.purge", "topic", name, "cancelled", done.Cancelled, "purged", done.Purged)
	}
	if err != nil {
		return stillInUse(noTopic(err), deletion.Purge)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// stillInUse explains how a topic with unfinished jobs is deleted.
func stillInUse(err error, purge bool) error {
	e, ok := errors.AsType[*store.TopicInUseError](err)
	switch {
	case !ok:
		return err
	case e.Unfinished > 0 && !purge:
		return response.NewProblem(response.WrongState, e.Error()+
			": wait until they have ended, or cancel them with purge=true")
	case e.Unfinished > 0 && e.Unfinished == e.Running:
		return response.NewProblem(response.WrongState,
			e.Error()+": they are cancelled when their attempts end, repeat the request then")
	}
	return response.NewProblem(response.WrongState, e.Error()+": repeat the request to continue")
}

// knownTopic returns the topic in the path, which must exist, and which clients may change.
func (a onStore) knownTopic(r *http.Request) (string, error) {
	name, err := request.PathTopic(r)
	if err == nil && job.IsReserved(name) && name != job.CallbackTopic {
		err = ownTopic()
	}
	if err == nil {
		_, err = a.findTopic(r, name)
	}
	return name, err
}

// ownTopic refuses a change of a topic of Ringback's own jobs, which a pause would stop.
func ownTopic() error {
	return response.Invalid(job.FieldError{
		Field: "/topic",
		Detail: "is Ringback's own: of the topics that begin with _, only " + job.CallbackTopic + " can be changed, " +
			"and by PUT how long those of " + job.EventTopic + " are kept",
	})
}

// findTopic returns a topic that was put or named by a job. The topic of callbacks always exists.
func (a onStore) findTopic(r *http.Request, name string) (store.Topic, error) {
	t, err := a.store.Topic(r.Context(), namespaceOf(r), name)
	if name == job.CallbackTopic && errors.Is(err, store.ErrNotFound) {
		return store.Topic{Namespace: namespaceOf(r), Name: name}, nil
	}
	return t, noTopic(err)
}

// writeTopic is Topics.ChangeTopic or Topics.ReplaceTopic.
type writeTopic func(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*policy.Topic) error,
) (store.Topic, error)

// changeTopic changes a policy and answers with it; with dry it answers with what would be stored. With defaults the
// answer has every default filled in.
func (a onStore) changeTopic(
	w http.ResponseWriter, r *http.Request, name string, dry, defaults bool,
	change func(policy.Topic) (policy.Topic, *response.Problem), write writeTopic,
) error {
	ifRevision, err := request.IfRevision(r)
	if err != nil {
		return err
	}
	opts := changeOptions(r, ifRevision)
	put, err := write(r.Context(), namespaceOf(r), name, opts, store.DryRun(func(stored *policy.Topic) error {
		changed, p := change(*stored)
		switch {
		case p != nil:
		case name == job.CallbackTopic:
			p = rejectSelfNotification(changed)
		case name == job.EventTopic:
			p = rejectAllButRetention(changed)
		}
		if p != nil {
			return p
		}
		*stored = changed
		return nil
	}, dry))
	if err != nil {
		return err
	}
	a.answerTopic(w, r, put, defaults)
	return nil
}

// rejectSelfNotification refuses callbacks of the callback topic: callbacks send no callbacks, and a callback about
// their backlog would add to it.
func rejectSelfNotification(t policy.Topic) *response.Problem {
	var errs []job.FieldError
	refuse := func(set bool, field, reason string) {
		if set {
			errs = append(errs,
				job.FieldError{Field: field, Detail: "is not supported for " + job.CallbackTopic + ": " + reason})
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

// rejectAllButRetention refuses all settings of the topic of events but how long they are kept.
func rejectAllButRetention(t policy.Topic) *response.Problem {
	kept := policy.Topic{KeepDelivered: t.KeepDelivered, ManagedBy: t.ManagedBy}
	if reflect.DeepEqual(t, kept) {
		return nil
	}
	return response.Invalid(job.FieldError{
		Field: "/", Detail: "of " + job.EventTopic + " only keep_delivered can be set",
	})
}

// noTopic explains how a topic is created.
func noTopic(err error) error {
	return orNotFound(err, "no such topic: create it, or register a job")
}

// answerTopic answers with a topic and the durability of its change.
func (a onStore) answerTopic(w http.ResponseWriter, r *http.Request, t store.Topic, defaults bool) {
	answerDocument(w, r, http.StatusOK, t.Revision, func(o *response.Buffer) {
		o.Topic(&t, a.shownPolicy(r.Context(), &t, defaults))
	})
}
