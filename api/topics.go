package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// maxPolicy bounds a policy's request, in bytes.
const maxPolicy = 512 << 10

// Sizes of the list of topics.
const (
	topicsStandard = 100
	topicsMost     = 500
)

// topics lists topics in order of name.
func (a *api) topics(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r, "limit", "cursor")
	limit, after := q.limit(topicsStandard, topicsMost), q.get("cursor")
	if err := q.err(); err != nil {
		return err
	}
	all, err := a.service.Topics(r.Context(), job.DefaultNamespace)
	if err != nil {
		return err
	}
	first, found := slices.BinarySearchFunc(all, after, func(t store.Topic, name string) int {
		return strings.Compare(t.Name, name)
	})
	if found {
		first++
	}
	o := newOut()
	defer o.free()
	o.open()
	o.array("items")
	rest := all[first:]
	for _, t := range rest[:min(limit, len(rest))] {
		o.open()
		a.topicInto(o, t)
		o.close()
	}
	o.closeArray()
	if len(rest) > limit {
		o.text("next_cursor", rest[limit-1].Name)
	}
	o.close()
	o.send(w, http.StatusOK)
	return nil
}

// topic shows a topic's policy as it holds.
func (a *api) topic(w http.ResponseWriter, r *http.Request) error {
	name, err := pathTopic(r)
	if err != nil {
		return err
	}
	t, err := a.service.Topic(r.Context(), job.DefaultNamespace, name)
	if err != nil {
		return noTopic(err)
	}
	t.Reached = nil // of a change, which this is not
	a.answerTopic(w, t)
	return nil
}

// putTopic writes a whole policy.
func (a *api) putTopic(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("topic")
	faults := job.Validate(job.New{Spec: job.Spec{Queue: job.Queue{Topic: name}}}, time.Time{})
	if len(faults) > 0 {
		return invalid(faults...)
	}
	text, err := readJSON(w, r, maxPolicy)
	if err != nil {
		return err
	}
	return a.changeTopic(w, r, name, true, func(stored policy.Topic) (policy.Topic, *problem) {
		return putPolicy(text, stored)
	})
}

// patchTopic changes what is named of a policy.
func (a *api) patchTopic(w http.ResponseWriter, r *http.Request) error {
	name, err := pathTopic(r)
	if err != nil {
		return err
	}
	text, err := readJSON(w, r, maxPolicy)
	if err != nil {
		return err
	}
	return a.changeTopic(w, r, name, false, func(stored policy.Topic) (policy.Topic, *problem) {
		return patchPolicy(text, stored)
	})
}

// pause pauses a topic, or resumes it.
func (a *api) pause(paused bool) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		name, err := pathTopic(r)
		if err != nil {
			return err
		}
		if err := noBody(r); err != nil {
			return err
		}
		return a.changeTopic(w, r, name, false, func(stored policy.Topic) (policy.Topic, *problem) {
			stored.Paused = paused
			return stored, nil
		})
	}
}

// A change of a policy is made of what is stored, and written only over that: when another change came between, it is
// made again, after a pause.
const (
	changeTries = 10
	changePause = 2 * time.Millisecond
)

// changeTopic changes a policy and shows it. With create a topic that nobody has put or named begins with this.
func (a *api) changeTopic(
	w http.ResponseWriter, r *http.Request, name string, create bool, change func(policy.Topic) (policy.Topic, *problem),
) error {
	ctx := r.Context()
	for try := 1; ; try++ {
		t, err := a.service.Topic(ctx, job.DefaultNamespace, name)
		switch {
		case create && errors.Is(err, store.ErrNotFound):
			t = store.Topic{Namespace: job.DefaultNamespace, Name: name}
		case err != nil:
			return noTopic(err)
		}
		changed, p := change(t.Policy)
		if p != nil {
			return p
		}
		t.Policy = changed
		put, err := a.service.PutTopic(ctx, t)
		switch {
		case err == nil:
			a.answerTopic(w, put)
			return nil
		case !errors.Is(err, store.ErrVersion):
			return err
		case try == changeTries:
			return refuse(http.StatusConflict, "the topic is being changed by others all the time: try again")
		}
		if err := pauseFor(ctx, changePause+rand.N(changePause*time.Duration(try))); err != nil {
			return err
		}
	}
}

// pauseFor waits, unless ctx ends first.
func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// noTopic says of a topic that is not found how one begins.
func noTopic(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return refuse(http.StatusNotFound, "there is no such topic: a PUT or the first job makes it")
	}
	return err
}

// answerTopic shows a topic, and how durable its change was.
func (a *api) answerTopic(w http.ResponseWriter, t store.Topic) {
	o := newOut()
	defer o.free()
	o.open()
	a.topicInto(o, t)
	o.durability(t.Reached)
	o.close()
	o.send(w, http.StatusOK)
}

// topicInto writes the members of a topic's policy with every default filled in.
func (a *api) topicInto(o *out, t store.Topic) {
	p := a.service.Effective(t.Policy)
	o.text("topic", t.Name)
	o.number("revision", t.Revision)
	o.durations("ladder", p.Ladder)
	o.number("retries", int64(*p.Retries))
	o.share("jitter", *p.Jitter)
	o.duration("timeout", p.Timeout)
	o.duration("max_age", p.Terms(policy.Terms{}).MaxAge)
	o.number("workers", int64(p.Workers))
	o.number("lane_concurrency", int64(p.LaneConcurrency))
	o.text("url", p.URL)
	o.headers("headers", p.Headers)
	o.texts("give_up_on", p.GiveUpOn)
	o.keep("keep_delivered", p.KeepDelivered)
	o.keep("keep_dead", p.KeepDead)
	o.duration("id_window", *p.IDWindow)
	o.flag("paused", p.Paused)
}

// keep writes what is kept of ended jobs.
func (o *out) keep(name string, k policy.Keep) {
	o.object(name)
	o.duration("for", *k.For)
	o.number("max", *k.Max)
	o.text("max_bytes", job.FormatSize(*k.MaxBytes))
	o.close()
}
