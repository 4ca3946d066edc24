package obstacles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// waitingFor returns what keeps the job from running. Of several obstacles it is
//
//  1. one that lasts until somebody acts: a pause, then a secret;
//  2. else the one that ends last, of those whose end is known: the due time, a cooldown, a rate; or the job's end, if
//     it will be dead by then;
//  3. else a job that comes before it in an ordered lane;
//  4. else one that ends with an attempt in flight: a probe, the lane's limit, the topic's limit, the process's
//     workers; or a client or program that takes the job.
func (x *explanation) waitingFor(ctx context.Context) (*job.Obstacle, error) {
	if wait := cmp.Or(x.topicPause(), x.lanePause(), x.unreadableSecret()); wait != nil {
		return wait, nil
	}
	if x.stateErr != nil {
		return nil, x.stateErr
	}
	topicNext, err := x.topicNext(ctx)
	if err != nil {
		return nil, err
	}
	counts := &x.state.LaneStats
	wait := latest(x.retry(), x.cooldown(counts), x.rate(x.state.NextStart), x.topicRate(topicNext), x.dueTime())
	if wait != nil {
		return cmp.Or(x.end(wait.Until), wait), nil
	}
	if wait, err := x.turnBefore(ctx); wait != nil || err != nil {
		return wait, err
	}
	if wait := cmp.Or(x.probe(counts), x.full(counts.Running), x.consumer(), x.topicFull()); wait != nil {
		return wait, nil
	}
	return x.worker(ctx)
}

// latest returns the wait that ends last, the first of equal ones; nil: there is none.
func latest(waits ...*job.Obstacle) (last *job.Obstacle) {
	for _, wait := range waits {
		if wait != nil && (last == nil || wait.Until.After(last.Until)) {
			last = wait
		}
	}
	return last
}

// end returns the wait for the end of a job that will be dead instead of attempted at a time; nil: it will be
// attempted.
func (x *explanation) end(at time.Time) *job.Obstacle {
	j := x.job
	reason := policy.Progress{
		FailedAttempts: j.FailedAttempts, ConsecutiveLost: j.ConsecutiveLost, Age: at.Sub(j.FirstDueAt),
		Expires: !j.ExpiresAt.IsZero(), ExpiresIn: j.ExpiresAt.Sub(at),
	}.EndReason(x.terms)
	const format = "will be dead (%s) without another attempt: %s"
	switch reason {
	case "":
		return nil
	case policy.ReasonExpired:
		o := obstacle(job.ObstacleEnd, j.ExpiresAt, format, reason,
			"an attempt is possible at "+at.UTC().Format(job.TimeLayout)+" only")
		return remedied(o, x.ofJob(job.RemedyEdit, j.ID), ". %s to set a later expires_at")
	case policy.ReasonMaxAge:
		o := obstacle(job.ObstacleEnd, at, format, reason, "its max_age is "+units.FormatDuration(x.terms.MaxAge))
		return remedied(o, x.ofTopic(job.RemedySet), ". %s to set a longer max_age")
	default:
		o := obstacle(job.ObstacleEnd, at, format, reason,
			fmt.Sprintf("its attempts were lost, and it has %d retries", *x.terms.Retries))
		return remedied(o, x.ofJob(job.RemedyEdit, j.ID), ". %s to set more")
	}
}

// unreadableSecret returns the wait for a secret that the attempt needs and that this process cannot open. A process
// that does not deliver may have no key at all, and then cannot know.
func (x *explanation) unreadableSecret() *job.Obstacle {
	if x.opts.NoKey {
		return nil
	}
	var what string
	switch x.topic.Resolved.Deliver {
	case policy.DeliverPull: // clients get no secrets
	case policy.DeliverHandler:
		what = x.unreadableHeader()
	default:
		what = cmp.Or(x.unreadableCredential(), x.unreadableHeader())
	}
	if what == "" {
		return nil
	}
	return obstacle(job.ObstacleSecret, time.Time{},
		"%s is not readable with the keys of this process: set it again, or start the processes with the key that "+
			"sealed it (%s)", what, seal.Setting)
}

// unreadableCredential returns what cannot be opened of the attempt's signer and certificate; empty: nothing. A
// callback is signed with the secrets of its subject's topic, and the secrets of a lane replace those of its topic.
func (x *explanation) unreadableCredential() string {
	topic := x.topic
	if x.job.Kind != "" {
		topic = x.opts.Policies.Get(x.job.Namespace, cmp.Or(x.job.Labels[job.LabelTopic], x.job.Topic))
	}
	credentials := topic.Credentials
	failed := credentials != nil && credentials.Err != nil
	if failed && credentials.Certificate == nil && topic.Resolved.ClientCert != nil {
		return "The client certificate or a signing secret of topic " + topic.Stored.Name
	}
	if len(x.settings.Settings.Secrets) > 0 {
		if _, err := x.opts.Sealer.Signer(x.job.Queue, x.settings.Settings.Secrets); err != nil {
			return "A signing secret of " + x.names.laneOfTopic
		}
		return ""
	}
	if failed {
		return "A signing secret of topic " + topic.Stored.Name
	}
	return ""
}

// unreadableHeader returns a secret header that cannot be opened; empty: none. Those of the job override those of the
// lane, and these those of the topic. A function gets only those of the job.
func (x *explanation) unreadableHeader() string {
	overridden := make(map[string]bool)
	headers := []struct {
		owner  string
		header map[string][]string
	}{
		{"the job", x.job.Header},
		{x.names.laneOfTopic, x.settings.Settings.Headers},
		{x.names.topic, x.topic.Resolved.Headers},
	}
	if !x.topic.Resolved.Deliver.Pushes() {
		headers = headers[:1]
	}
	for _, of := range headers {
		for _, name := range slices.Sorted(maps.Keys(of.header)) {
			if sealed, ok := job.Sealed(of.header[name]); ok && !overridden[name] {
				if _, err := x.opts.Sealer.OpenHeader(name, sealed); err != nil {
					return "The secret header " + name + " of " + of.owner
				}
			}
			overridden[name] = true
		}
	}
	return ""
}

// retry returns the wait for the due time of a job whose last attempt failed.
func (x *explanation) retry() *job.Obstacle {
	j, failed := x.job, x.job.FailedAttempts
	if j.State != job.Scheduled || failed == 0 {
		return nil
	}
	rung := fmt.Sprintf("waits after failed attempt %d of %d for rung %d of %d (%s)",
		failed, *x.terms.Retries+1, min(failed, len(x.terms.Ladder)), len(x.terms.Ladder),
		units.FormatDuration(x.terms.Ladder.Rung(failed)))
	if failed > *x.terms.Retries {
		rung = fmt.Sprintf("waits after failed attempt %d for its last one, since it has fewer retries by now (%d)",
			failed, *x.terms.Retries)
	}
	run, hint := x.ofJob(job.RemedyRun, j.ID), ": %s to run it now"
	switch {
	case !x.topic.Resolved.Deliver.Pushes():
		o := obstacle(job.ObstacleRetry, j.DueAt, "%s, or for as long as its consumer asked for", rung)
		return remedied(o, run, hint)
	case x.url() == "":
		o := obstacle(job.ObstacleRetry, j.DueAt,
			"%s. Neither the job, its lane nor its topic has a URL, so the next attempt fails, too", rung)
		return remedied(o, x.ofTopic(job.RemedySet), ": %s or %s to set a url, then %s to run it now",
			strings.TrimPrefix(x.ofLane(job.RemedySet).Request(), "PATCH "), run.Request())
	}
	rung += ", or longer if the receiver's Retry-After asked for it"
	if facts := failures(x.state.Health, ""); facts != "" {
		rung += "; " + facts
	}
	return remedied(obstacle(job.ObstacleRetry, j.DueAt, "%s", rung), run, hint)
}

// dueTime returns the wait for the due time of a job without a failed attempt.
func (x *explanation) dueTime() *job.Obstacle {
	if x.job.State != job.Scheduled || x.job.FailedAttempts > 0 {
		return nil
	}
	o := obstacle(job.ObstacleDue, x.job.DueAt, "waits for its due time")
	return remedied(o, x.ofJob(job.RemedyRun, x.job.ID), ": %s to run it now")
}

// turnBefore returns the wait for the job of an ordered lane that has to end first.
func (x *explanation) turnBefore(ctx context.Context) (*job.Obstacle, error) {
	ref := x.state.Next
	if ref.ID == "" || ref == x.job.Ref() || !x.limits().Ordered {
		return nil, nil // no wait
	}
	next, err := x.opts.Store.Get(ctx, ref)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil // it has ended since
	case err != nil:
		return nil, err
	}
	return x.order(&next), nil
}

// topicNext returns the next start that the topic's rate grants; zero: it grants one now, or there is no rate.
func (x *explanation) topicNext(ctx context.Context) (time.Time, error) {
	rate := x.topic.Resolved.Rate
	if !rate.Limited() {
		return time.Time{}, nil
	}
	return x.opts.Store.NextStart(ctx, x.job.Namespace, x.job.Topic, rate)
}

// topicFull returns the wait for an attempt of a topic of which this process may make no more.
func (x *explanation) topicFull() *job.Obstacle {
	most := x.topic.Resolved.Workers
	if x.opts.Pool == nil || x.opts.Pool.TopicInFlight(x.job.Namespace, x.job.Topic) < most {
		return nil
	}
	o := obstacle(job.ObstacleTopicFull, time.Time{},
		"%s has as many attempts in flight as a process makes of it (workers: %d): the job follows when one ends",
		x.names.topic, most)
	return remedied(o, x.ofTopic(job.RemedySet), ", and %s raises the limit")
}

// consumer returns the wait for a client that asks for the job, or for a program that has a function for it.
func (x *explanation) consumer() *job.Obstacle {
	switch x.topic.Resolved.Deliver {
	case policy.DeliverPull:
		return remedied(worker("the job is due and waits for a client to lease it"), x.ofTopic(job.RemedyLease), ": %s")
	case policy.DeliverHandler:
		if x.opts.Pool == nil || !x.opts.Pool.Handles(x.job.Namespace, x.job.Topic) {
			o := worker("the job is due and waits for a Go program with a handler of %s: if none runs, start one",
				x.names.topic)
			return remedied(o, x.ofTopic(job.RemedySet), ", or %s with another deliver")
		}
	}
	return nil
}

// worker returns a wait for a worker, whose end is never known.
func worker(format string, args ...any) *job.Obstacle {
	return obstacle(job.ObstacleWorker, time.Time{}, format, args...)
}

// worker returns the wait for a worker: nothing else keeps the job from running.
func (x *explanation) worker(ctx context.Context) (*job.Obstacle, error) {
	if !x.state.Led {
		return worker("no process delivers now: start one with the role worker"), nil
	}
	if x.opts.Pool == nil {
		return x.otherWorker(ctx)
	}
	if s := x.opts.Pool.State(); s.InFlight >= s.Workers {
		return worker("all workers of this process are in use (%d): the job follows when one is free, and more "+
			"processes or a larger --workers would help", s.Workers), nil
	}
	return x.turn(), nil
}

// otherWorker is worker in a process that does not deliver. It does not know how the attempts of the topic are spread
// over the processes that do.
func (x *explanation) otherWorker(ctx context.Context) (*job.Obstacle, error) {
	most := x.topic.Resolved.Workers
	state, err := x.opts.Store.TopicState(ctx, x.job.Namespace, x.job.Topic, policy.Rate{})
	if err != nil {
		return nil, err
	}
	if state.Running < int64(most) {
		return x.turn(), nil
	}
	o := worker("the job is due and waits for a worker that takes its topic: all processes together have %d attempts "+
		"of %s in flight, and each makes at most %d (workers)", state.Running, x.names.topic, most)
	return remedied(o, x.ofTopic(job.RemedySet), ", which %s raises"), nil
}

// turn returns the wait for the due jobs of the lane that come first, or for any worker.
func (x *explanation) turn() *job.Obstacle {
	if x.state.Ready > 1 && !x.limits().Ordered {
		return worker("the job is one of %d due jobs of %s, which follow one another in order of their due times",
			x.state.Ready, x.names.lane)
	}
	return worker("the job is due and waits for a free worker")
}
