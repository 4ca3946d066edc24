package held

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// add adds a reason that ends at a time; zero: its end is not known.
func (l *lane) add(code store.HoldCode, until time.Time, format string, args ...any) {
	l.Reasons = append(l.Reasons, store.HoldReason{Code: code, Until: until, Detail: fmt.Sprintf(format, args...)})
}

// addPause adds a pause.
func (l *lane) addPause(code store.HoldCode, p policy.Pause, format string, args ...any) {
	l.Reasons = append(l.Reasons,
		store.HoldReason{Code: code, Detail: fmt.Sprintf(format, args...), Since: p.At, By: p.By, Note: p.Note})
}

// topicPath and lanePath are the paths of the lane's topic and of the lane in the API.
func (l *lane) topicPath() string { return "/v1/topics/" + l.Queue.Topic }

func (l *lane) lanePath() string { return l.topicPath() + "/lanes/" + url.PathEscape(l.Queue.Lane) }

// addReasons adds the reasons that follow from counts and settings: first what fails, then pauses, then limits.
func (l *lane) addReasons(counts *store.LaneStats, settings *store.Lane, now time.Time) {
	l.addCooldown(counts, now)
	if l.Scheduled+l.Ready > 0 {
		l.addPauses(settings)
	}
	if l.Ready == 0 {
		return
	}
	switch {
	case l.Running < int64(l.limits.Concurrency):
	case l.limits.Ordered:
		l.add(store.HoldLaneFull, time.Time{}, "The lane is ordered, and a job is running: the next one follows when "+
			"it has ended.")
	default:
		l.add(store.HoldLaneFull, time.Time{}, "The lane is at its lane_concurrency of %d: the next job follows when "+
			"an attempt ends, and PATCH %s raises the limit.",
			l.limits.Concurrency, l.limitOwner(settings.Settings.LaneConcurrency > 0))
	}
	if until := l.topic.rateUntil; !until.IsZero() {
		l.add(store.HoldTopicRate, until,
			"The topic has used up its rate of %s: the next start is free then, and PATCH %s raises the rate.",
			units.FormatRate(l.topic.policy.Resolved.Rate), l.topicPath())
	}
}

// addCooldown adds the state of the breaker, or another cooldown.
func (l *lane) addCooldown(counts *store.LaneStats, now time.Time) {
	cooling := counts.CooldownUntil.After(now)
	switch {
	case counts.BreakerOpen && cooling:
		l.add(store.HoldBreakerOpen, counts.CooldownUntil,
			"The breaker is open after failures in a row: when its cooldown ends, one job is attempted as a probe.")
	case counts.BreakerOpen && counts.Running > 0:
		l.add(store.HoldBreakerHalfOpen, time.Time{}, "The breaker is half open, and its probe is in flight: if that "+
			"succeeds, the other jobs follow.")
	case counts.BreakerOpen:
		l.add(store.HoldBreakerHalfOpen, time.Time{},
			"The breaker is half open: the next attempt of the lane is its probe, and if that succeeds, the other "+
				"jobs follow.")
	case !cooling:
	case counts.CooldownCause == store.CooldownBreaker:
		l.add(store.HoldCooldown, counts.CooldownUntil,
			"The whole lane has the cooldown of its breaker, which has closed since: Ringback makes no attempt "+
				"before it ends.")
	case counts.CooldownCause == store.CooldownUnreadable:
		l.add(store.HoldCooldown, counts.CooldownUntil,
			"The whole lane has a cooldown, because settings or secrets of an attempt were not readable: Ringback "+
				"tries again when it ends.")
	default:
		l.add(store.HoldRetryAfter, counts.CooldownUntil, "The receiver asked for a pause (Retry-After), which holds "+
			"for the whole lane.")
	}
}

// addPauses adds the pauses of topic and lane. Settings that are not readable are a pause, too.
func (l *lane) addPauses(settings *store.Lane) {
	p := l.topic.policy
	switch {
	case p.Stored.Unreadable:
		l.addPause(store.HoldTopicPaused, policy.Pause{},
			"The policy of the topic is not readable, so its jobs are held: PUT %s again, then resume the "+
				"topic.", l.topicPath())
	case p.Resolved.Paused:
		l.addPause(
			store.HoldTopicPaused, p.Resolved.Pause, "The topic is paused: POST %s/resume to resume it.", l.topicPath(),
		)
	}
	switch {
	case settings.Unreadable:
		l.addPause(store.HoldLanePaused, policy.Pause{}, "The settings of the lane are not readable, so its jobs are "+
			"held: PUT %s again.", l.lanePath())
	case settings.Settings.Paused:
		l.addPause(store.HoldLanePaused, settings.Settings.Pause,
			"The lane is paused: POST %s/resume to resume it.", l.lanePath())
	}
}

// limitOwner returns the path of the settings that set a limit.
func (l *lane) limitOwner(ofLane bool) string {
	if ofLane {
		return l.lanePath()
	}
	return l.topicPath()
}

// addStateReasons adds the reasons that follow from the state of the queue: its rate, and the job that comes first.
func (s *search) addStateReasons(ctx context.Context, l *lane, state store.QueueState) error {
	if !state.NextStart.IsZero() {
		ofLane := l.topic.settings[l.Queue.Lane].Settings.LaneRate.Limited()
		l.add(store.HoldLaneRate, state.NextStart,
			"The lane has used up its lane_rate of %s: the next start is free then, and PATCH %s raises the rate.",
			units.FormatRate(l.limits.Rate), l.limitOwner(ofLane))
	}
	if !l.limits.Ordered || state.Next.ID == "" || state.Running > 0 {
		return nil
	}
	next, err := s.opts.Store.GetIn(ctx, l.Queue, state.Next)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil // it has ended since
	case err != nil:
		return err
	case next.State == job.Scheduled && next.FailedAttempts > 0:
		l.add(store.HoldOrder, next.DueAt,
			"The lane is ordered, and job %s has to end first, which has failed and waits for its next attempt. POST "+
				"/v1/jobs/%[1]s/run attempts it now, and DELETE /v1/jobs/%[1]s cancels it, so that the next one "+
				"follows.",
			next.ID)
	}
	return nil
}
