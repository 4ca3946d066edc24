package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/seal"
	"github.com/ringback/ringback/store"
)

// waitingFor returns what keeps the job from running. Of several obstacles it is
//
//  1. one that lasts until somebody acts: a pause, then a secret;
//  2. else the one that ends last, of those whose end is known: the due time, a cooldown, a rate; or the job's end, if
//     it
//     will be dead by then;
//  3. else a job that comes before it in an ordered lane;
//  4. else one that ends with an attempt in flight: a probe, the lane's limit, the topic's limit, the process's
//     workers; or a
//     client or program that takes the job.
func (x *explanation) waitingFor(ctx context.Context) (*job.Wait, error) {
	if wait := cmp.Or(x.pause(), x.unreadableSecret()); wait != nil {
		return wait, nil
	}
	if x.stateErr != nil {
		return nil, x.stateErr
	}
	topicRate, err := x.topicRate(ctx)
	if err != nil {
		return nil, err
	}
	if wait := latest(x.retry(), x.cooldown(), x.laneRate(), topicRate, x.dueTime()); wait != nil {
		return cmp.Or(x.end(wait.Until), wait), nil
	}
	if wait, err := x.order(ctx); wait != nil || err != nil {
		return wait, err
	}
	if wait := cmp.Or(x.probe(), x.laneLimit(), x.consumer(), x.topicLimit()); wait != nil {
		return wait, nil
	}
	return x.worker(ctx)
}

// latest returns the wait that ends last, the first of equal ones; nil: there is none.
func latest(waits ...*job.Wait) (last *job.Wait) {
	for _, wait := range waits {
		if wait != nil && (last == nil || wait.Until.After(last.Until)) {
			last = wait
		}
	}
	return last
}

// end returns the wait for the end of a job that will be dead instead of attempted at a time; nil: it will be
// attempted.
func (x *explanation) end(at time.Time) *job.Wait {
	j := x.job
	reason := policy.Progress{
		FailedAttempts: j.FailedAttempts, ConsecutiveLost: j.ConsecutiveLost, Age: at.Sub(j.FirstDueAt),
		Expires: !j.ExpiresAt.IsZero(), ExpiresIn: j.ExpiresAt.Sub(at),
	}.EndReason(x.terms)
	var remedy string
	switch reason {
	case "":
		return nil
	case policy.ReasonExpired:
		remedy = fmt.Sprintf("an attempt is possible at %s only. PATCH /v1/jobs/%s to set a later expires_at",
			at.UTC().Format(time.RFC3339), j.ID)
		at = j.ExpiresAt
	case policy.ReasonMaxAge:
		remedy = fmt.Sprintf("its max_age is %s. PATCH %s to set a longer "+
			"max_age", units.FormatDuration(x.terms.MaxAge), x.topicPath())
	default:
		remedy = fmt.Sprintf("its attempts were lost, and it has %d retries. PATCH /v1/jobs/%s to set "+
			"more", *x.terms.Retries, j.ID)
	}
	return waitFor(job.WaitEnd, at, "Will be dead (%s) without another attempt: %s.", reason, remedy)
}

// waitFor returns a wait until a time; zero: its end is not known.
func waitFor(kind job.WaitKind, until time.Time, format string, args ...any) *job.Wait {
	return &job.Wait{Kind: kind, Until: until, Detail: fmt.Sprintf(format, args...)}
}

// topicPath and lanePath are the paths of the job's topic and lane in the API.
func (x *explanation) topicPath() string { return "/v1/topics/" + x.job.Topic }

func (x *explanation) lanePath() string {
	return x.topicPath() + "/lanes/" + url.PathEscape(x.job.Lane)
}

// pause returns the pause of the topic or the lane. Settings that are not readable are a pause, too.
func (x *explanation) pause() *job.Wait {
	switch {
	case x.topic.Stored.Unreadable:
		return waitFor(job.WaitPaused, time.Time{},
			"The policy of topic %s is not readable, so its jobs are held: PUT %s again, then resume the "+
				"topic.", x.job.Topic, x.topicPath())
	case x.lane.Unreadable:
		return waitFor(job.WaitPaused, time.Time{},
			"The settings of lane %s of topic %s are not readable, so its jobs are held: PUT %s "+
				"again.", x.job.Lane, x.job.Topic, x.lanePath())
	case x.topic.Resolved.Paused:
		return waitFor(job.WaitPaused, time.Time{}, "Topic %s is paused%s: POST %s/resume to resume it.", x.job.Topic,
			circumstances(x.topic.Resolved.Pause), x.topicPath())
	case x.lane.Settings.Paused:
		return waitFor(job.WaitPaused, time.Time{}, "Lane %s of topic %s is paused%s: POST %s/resume to resume it.",
			x.job.Lane, x.job.Topic, circumstances(x.lane.Settings.Pause), x.lanePath())
	}
	return nil
}

// circumstances returns since when there is a pause, by whom and why, as far as it is known.
func circumstances(p policy.Pause) string {
	text := ""
	if !p.At.IsZero() {
		text += " since " + p.At.UTC().Format(time.RFC3339)
	}
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Note != "" {
		text += fmt.Sprintf(" (%s)", p.Note)
	}
	return text
}

// unreadableSecret returns the wait for a secret that the attempt needs and that this process cannot open. A process
// that does not deliver may have no key at all, and then cannot know.
func (x *explanation) unreadableSecret() *job.Wait {
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
	return waitFor(job.WaitSecret, time.Time{},
		"%s is not readable with the keys of this process: set it again, or start the processes with the key that "+
			"sealed it (%s).",
		what, seal.Setting)
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
	if len(x.lane.Settings.Secrets) > 0 {
		if _, err := x.opts.Sealer.Signer(x.job.Queue, x.lane.Settings.Secrets); err != nil {
			return "A signing secret of lane " + x.job.Lane + " of topic " + x.job.Topic
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
		{"lane " + x.job.Lane + " of topic " + x.job.Topic, x.lane.Settings.Headers},
		{"topic " + x.job.Topic, x.topic.Resolved.Headers},
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
func (x *explanation) retry() *job.Wait {
	j, failed := x.job, x.job.FailedAttempts
	if j.State != job.Scheduled || failed == 0 {
		return nil
	}
	rung := fmt.Sprintf("Waits after failed attempt %d of %d for rung %d of %d (%s)",
		failed, *x.terms.Retries+1, min(failed, len(x.terms.Ladder)), len(x.terms.Ladder),
		units.FormatDuration(x.terms.Ladder.Rung(failed)))
	if failed > *x.terms.Retries {
		rung = fmt.Sprintf("Waits after failed attempt %d for its last one, since it has fewer retries by now (%d)",
			failed, *x.terms.Retries)
	}
	switch {
	case !x.topic.Resolved.Deliver.Pushes():
		return waitFor(job.WaitRetry, j.DueAt, "%s, or for as long as its consumer asked for: POST /v1/jobs/%s/run "+
			"to run it now.", rung, j.ID)
	case x.url() == "":
		return waitFor(job.WaitRetry, j.DueAt,
			"%s. Neither the job, its lane nor its topic has a URL, so the next attempt fails, too: PATCH %s or %s "+
				"to set a url, then POST /v1/jobs/%s/run to run it now.",
			rung, x.topicPath(), x.lanePath(), j.ID)
	}
	return waitFor(job.WaitRetry, j.DueAt,
		"%s, or longer if the receiver's Retry-After asked for it: POST /v1/jobs/%s/run to run it now.", rung, j.ID)
}

// dueTime returns the wait for the due time of a job without a failed attempt.
func (x *explanation) dueTime() *job.Wait {
	if x.job.State != job.Scheduled || x.job.FailedAttempts > 0 {
		return nil
	}
	return waitFor(job.WaitDue, x.job.DueAt, "Waits for its due time: POST /v1/jobs/%s/run to run it now.", x.job.ID)
}

// cooldown returns the wait for the end of the lane's cooldown, which an open breaker begins with.
func (x *explanation) cooldown() *job.Wait {
	until := x.state.CooldownUntil
	switch cause := x.state.CooldownCause; {
	case until.IsZero():
		return nil
	case x.state.BreakerOpen:
		return waitFor(job.WaitBreaker, until,
			"The breaker of lane %s is open after failures in a row: when its cooldown ends, one job is attempted as "+
				"a probe.", x.job.Lane)
	case cause == store.CooldownBreaker:
		return waitFor(job.WaitCooldown, until,
			"The whole lane %s has the cooldown of its breaker, which has closed since: Ringback makes no attempt "+
				"before it ends.", x.job.Lane)
	case cause == store.CooldownUnreadable:
		return waitFor(job.WaitCooldown, until,
			"The whole lane %s has a cooldown, because settings or secrets of an attempt were not readable: Ringback "+
				"tries again when it ends.", x.job.Lane)
	default:
		return waitFor(job.WaitRetryAfter, until, "The receiver of lane %s asked for a pause (Retry-After), which "+
			"holds for the whole lane.", x.job.Lane)
	}
}

// limits returns the limits of the lane, and limitOwner the settings that set one of them.
func (x *explanation) limits() policy.Limits {
	return x.lane.Settings.Limits().Over(x.topic.Resolved.Limits())
}

func (x *explanation) limitOwner(ofLane bool) string {
	if ofLane {
		return x.lanePath()
	}
	return x.topicPath()
}

// laneRate returns the wait for the next start that the lane's rate allows.
func (x *explanation) laneRate() *job.Wait {
	if x.state.NextStart.IsZero() {
		return nil
	}
	return waitFor(job.WaitRate, x.state.NextStart,
		"Lane %s has used up its lane_rate of %s: the next start is free then, and PATCH %s raises the rate.",
		x.job.Lane, units.FormatRate(x.limits().Rate), x.limitOwner(x.lane.Settings.LaneRate.Limited()))
}

// order returns the wait for the job of an ordered lane that has to end first.
func (x *explanation) order(ctx context.Context) (*job.Wait, error) {
	ref := x.state.Next
	if ref.ID == "" || ref == x.job.Ref() || !x.limits().Ordered {
		return nil, nil //nolint:nilnil // no wait
	}
	next, err := x.opts.Store.Get(ctx, ref)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && next.State.Ended():
		return nil, nil //nolint:nilnil // it has ended since
	case err != nil:
		return nil, err
	case next.State == job.Scheduled:
		return waitFor(job.WaitOrder, next.DueAt,
			"Lane %s is ordered, and job %s has to end first: it waits for its next attempt. POST /v1/jobs/%s/run "+
				"attempts it now, and DELETE /v1/jobs/%[2]s cancels it, so that the next one follows.",
			x.job.Lane, next.ID, next.ID), nil
	default:
		return waitFor(job.WaitOrder, time.Time{}, "Lane %s is ordered, and job %s has to end first: it is %s.",
			x.job.Lane, next.ID, next.State), nil
	}
}

// probe returns the wait for the probe of a breaker that is half open.
func (x *explanation) probe() *job.Wait {
	switch {
	case !x.state.BreakerOpen:
		return nil
	case x.state.Running > 0:
		return waitFor(job.WaitBreaker, time.Time{}, "The breaker of lane %s is half open, and its probe is in "+
			"flight: if that succeeds, the other jobs follow.", x.job.Lane)
	default:
		return waitFor(job.WaitBreaker, time.Time{}, "The breaker of lane %s is half open: the next attempt of the "+
			"lane is its probe, and if that succeeds, the other jobs follow.", x.job.Lane)
	}
}

// laneLimit returns the wait for an attempt of a lane that has no room for another.
func (x *explanation) laneLimit() *job.Wait {
	most := x.limits().Concurrency
	if x.state.Running < int64(most) {
		return nil
	}
	return waitFor(job.WaitLaneFull, time.Time{},
		"Lane %s is at its lane_concurrency of %d: the job follows when an attempt ends, and PATCH %s raises the "+
			"limit.", x.job.Lane, most, x.limitOwner(x.lane.Settings.LaneConcurrency > 0))
}

// topicRate returns the wait for the next start that the topic's rate grants.
func (x *explanation) topicRate(ctx context.Context) (*job.Wait, error) {
	rate := x.topic.Resolved.Rate
	if !rate.Limited() {
		return nil, nil //nolint:nilnil // no wait
	}
	next, err := x.opts.Store.NextStart(ctx, x.job.Namespace, x.job.Topic, rate)
	if err != nil || next.IsZero() {
		return nil, err
	}
	return waitFor(job.WaitRate, next,
		"Topic %s has used up its rate of %s: the next start is free then, and PATCH %s raises the rate.",
		x.job.Topic, units.FormatRate(rate), x.topicPath()), nil
}

// topicLimit returns the wait for an attempt of a topic of which this process may make no more.
func (x *explanation) topicLimit() *job.Wait {
	most := x.topic.Resolved.Workers
	if x.opts.Pool == nil || x.opts.Pool.TopicInFlight(x.job.Namespace, x.job.Topic) < most {
		return nil
	}
	return waitFor(job.WaitTopicFull, time.Time{},
		"Topic %s has as many attempts in flight as a process makes of it (workers: %d): the job follows when one "+
			"ends, and PATCH %s raises the limit.",
		x.job.Topic, most, x.topicPath())
}

// consumer returns the wait for a client that asks for the job, or for a program that has a function for it.
func (x *explanation) consumer() *job.Wait {
	switch x.topic.Resolved.Deliver {
	case policy.DeliverPull:
		return waitFor(job.WaitWorker, time.Time{}, "The job is due and waits for a client to lease it: POST "+
			"%s/lease.", x.topicPath())
	case policy.DeliverHandler:
		if x.opts.Pool == nil || !x.opts.Pool.Handles(x.job.Namespace, x.job.Topic) {
			return waitFor(job.WaitWorker, time.Time{},
				"The job is due and waits for a Go program with a handler of topic %s: if none runs, start one, or "+
					"PATCH %s with another deliver.", x.job.Topic, x.topicPath())
		}
	}
	return nil
}

// worker returns the wait for a worker: nothing else keeps the job from running.
func (x *explanation) worker(ctx context.Context) (*job.Wait, error) {
	if !x.state.Led {
		return waitFor(job.WaitWorker, time.Time{}, "No process delivers now: start one with the role worker."), nil
	}
	if x.opts.Pool == nil {
		return x.otherWorker(ctx)
	}
	if s := x.opts.Pool.State(); s.InFlight >= s.Workers {
		return waitFor(job.WaitWorker, time.Time{},
			"All workers of this process are in use (%d): the job follows when one is free, and more processes or a "+
				"larger --workers would help.", s.Workers), nil
	}
	return x.turn(), nil
}

// otherWorker is worker in a process that does not deliver. It does not know how the attempts of the topic are spread
// over the processes that do.
func (x *explanation) otherWorker(ctx context.Context) (*job.Wait, error) {
	most := x.topic.Resolved.Workers
	state, err := x.opts.Store.TopicState(ctx, x.job.Namespace, x.job.Topic, policy.Rate{})
	if err != nil {
		return nil, err
	}
	if state.Running < int64(most) {
		return x.turn(), nil
	}
	return waitFor(job.WaitWorker, time.Time{},
		"The job is due and waits for a worker that takes its topic: all processes together have %d attempts of "+
			"topic %s in flight, and each makes at most %d (workers), which PATCH %s raises.",
		state.Running, x.job.Topic, most, x.topicPath()), nil
}

// turn returns the wait for the due jobs of the lane that come first, or for any worker.
func (x *explanation) turn() *job.Wait {
	if x.state.Ready > 1 && !x.limits().Ordered {
		return waitFor(job.WaitWorker, time.Time{},
			"The job is one of %d due jobs of lane %s, which follow one another in order of their due times.",
			x.state.Ready, x.job.Lane)
	}
	return waitFor(job.WaitWorker, time.Time{}, "The job is due and waits for a free worker.")
}
