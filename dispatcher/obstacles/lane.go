package obstacles

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// subject is a lane with the settings that decide over its jobs. Its methods return obstacles of the lane; nil: none.
type subject struct {
	queue    job.Queue
	topic    *documents.Topic
	settings store.Lane
	names    names
}

// names are how sentences call a lane, its topic and its jobs.
type names struct{ topic, lane, laneOfTopic, ofLane, whole, next, first string }

// namesOf returns the names for a sentence about a job. With the job, its reader does not see lane and topic.
func namesOf(q job.Queue) names {
	topic, lane := "topic "+q.Topic, "lane "+q.Lane
	return names{topic, lane, lane + " of " + topic, " of " + lane, lane, "the job", ": it waits"}
}

// listed are the names for a list of lanes, in which a lane's topic, its name and its pause have places of their own.
var listed = names{
	"the topic", "the lane", "the lane", "", "lane", "the next job", ", which has failed and waits",
}

// limits returns the limits of the lane.
func (s *subject) limits() policy.Limits {
	return s.settings.Settings.Limits().Over(s.topic.Resolved.Limits())
}

// ofTopic and ofLane return remedies about the topic or the lane, and ofOwner about the one that sets a limit.
func (s *subject) ofTopic(action job.RemedyAction) job.Remedy {
	return job.Remedy{Action: action, Topic: s.queue.Topic}
}

func (s *subject) ofLane(action job.RemedyAction) job.Remedy {
	return job.Remedy{Action: action, Topic: s.queue.Topic, Lane: s.queue.Lane}
}

func (s *subject) ofOwner(action job.RemedyAction, isLanes bool) job.Remedy {
	if isLanes {
		return s.ofLane(action)
	}
	return s.ofTopic(action)
}

// ofJob returns a remedy about a job of the lane.
func (s *subject) ofJob(action job.RemedyAction, id string) job.Remedy {
	return job.Remedy{Action: action, Topic: s.queue.Topic, Lane: s.queue.Lane, ID: id}
}

// obstacle returns an obstacle that ends at a time; zero: its end is not known. The sentence gets a capital letter.
func obstacle(code job.ObstacleCode, until time.Time, format string, args ...any) *job.Obstacle {
	facts := fmt.Sprintf(format, args...)
	return &job.Obstacle{Code: code, Until: until, Facts: strings.ToUpper(facts[:1]) + facts[1:]}
}

// remedied adds a remedy. The hint continues the sentence: its first %s stands for the request, others for the texts.
func remedied(o *job.Obstacle, remedy job.Remedy, hint string, texts ...any) *job.Obstacle {
	o.Remedy, o.Hint = remedy, fmt.Sprintf(hint, append([]any{remedy.Request()}, texts...)...)
	return o
}

// topicPause returns the pause of the topic. A policy that is not readable is one, too.
func (s *subject) topicPause() *job.Obstacle {
	switch {
	case s.topic.Stored.Unreadable:
		o := obstacle(job.ObstacleTopicPaused, time.Time{},
			"the policy of %s is not readable, so its jobs are held", s.names.topic)
		return remedied(o, s.ofTopic(job.RemedyPut), ": %s again, then resume the topic")
	case s.topic.Resolved.Paused:
		return s.pause(job.ObstacleTopicPaused, s.topic.Resolved.Pause, s.names.topic, s.ofTopic(job.RemedyResume))
	}
	return nil
}

// lanePause returns the pause of the lane. Settings that are not readable are one, too.
func (s *subject) lanePause() *job.Obstacle {
	switch {
	case s.settings.Unreadable:
		o := obstacle(job.ObstacleLanePaused, time.Time{},
			"the settings of %s are not readable, so its jobs are held", s.names.laneOfTopic)
		return remedied(o, s.ofLane(job.RemedyPut), ": %s again")
	case s.settings.Settings.Paused:
		return s.pause(job.ObstacleLanePaused, s.settings.Settings.Pause, s.names.laneOfTopic,
			s.ofLane(job.RemedyResume))
	}
	return nil
}

// pause returns a pause, and says since when, by whom and why, as far as that is known.
func (s *subject) pause(code job.ObstacleCode, p policy.Pause, paused string, resume job.Remedy) *job.Obstacle {
	text := ""
	if s.names != listed {
		if !p.At.IsZero() {
			text += " since " + p.At.UTC().Format(job.TimeLayout)
		}
		if p.By != "" {
			text += " by " + p.By
		}
		if p.Note != "" {
			text += fmt.Sprintf(" (%s)", p.Note)
		}
	}
	o := obstacle(code, time.Time{}, "%s is paused%s", paused, text)
	o.Since, o.By, o.Note = p.At, p.By, p.Note
	return remedied(o, resume, ": %s to resume it")
}

// cooldown returns the cooldown of the lane, which an open breaker begins with.
func (s *subject) cooldown(counts *store.LaneStats) *job.Obstacle {
	until := counts.CooldownUntil
	switch cause := counts.CooldownCause; {
	case until.IsZero():
		return nil
	case counts.BreakerOpen:
		return obstacle(job.ObstacleBreakerOpen, until,
			"the breaker%s is open after failures in a row: when its cooldown ends, one job is attempted as a probe",
			s.names.ofLane)
	case cause == store.CooldownBreaker:
		return obstacle(job.ObstacleCooldown, until,
			"the whole %s has the cooldown of its breaker, which has closed since: Ringback makes no attempt before "+
				"it ends", s.names.whole)
	case cause == store.CooldownUnreadable:
		return obstacle(job.ObstacleCooldown, until,
			"the whole %s has a cooldown, because settings or secrets of an attempt were not readable: Ringback tries "+
				"again when it ends", s.names.whole)
	default:
		return obstacle(job.ObstacleRetryAfter, until,
			"the receiver%s asked for a pause (Retry-After), which holds for the whole lane", s.names.ofLane)
	}
}

// failing returns that the receiver fails. It holds nothing back: jobs wait for their retries.
func (s *subject) failing(h *policy.Health) *job.Obstacle {
	facts := failures(h, s.names.ofLane)
	if facts == "" {
		return nil
	}
	o := obstacle(job.ObstacleFailing, time.Time{}, "%s", facts)
	o.Since = h.Since
	return o
}

// failures returns what a receiver has failed, and its newest answer; empty: it does not fail.
func failures(h *policy.Health, ofLane string) string {
	now := time.Now()
	if !h.Failing(now) {
		return ""
	}
	layout := "15:04 UTC"
	if now.Sub(h.Since) > 12*time.Hour {
		layout = "2006-01-02 " + layout
	}
	last := string(h.Failure.Class)
	if h.Failure.Status > 0 {
		last = strconv.Itoa(h.Failure.Status)
	}
	return fmt.Sprintf("the receiver%s has failed %d of %d attempts since %s, last %s",
		ofLane, h.Failed, h.Attempts, h.Since.UTC().Format(layout), cmp.Or(last, "without an answer"))
}

// probe returns the wait for the probe of a breaker that is half open.
func (s *subject) probe(counts *store.LaneStats) *job.Obstacle {
	switch {
	case !counts.BreakerOpen || !counts.CooldownUntil.IsZero():
		return nil
	case counts.Running > 0:
		return obstacle(job.ObstacleBreakerHalfOpen, time.Time{},
			"the breaker%s is half open, and its probe is in flight: if that succeeds, the other jobs follow",
			s.names.ofLane)
	default:
		return obstacle(job.ObstacleBreakerHalfOpen, time.Time{},
			"the breaker%s is half open: the next attempt of the lane is its probe, and if that succeeds, the other "+
				"jobs follow", s.names.ofLane)
	}
}

// full returns the wait for an attempt of a lane that has no room for another.
func (s *subject) full(running int64) *job.Obstacle {
	limits := s.limits()
	switch {
	case running < int64(limits.Concurrency):
		return nil
	case limits.Ordered:
		return obstacle(job.ObstacleLaneFull, time.Time{},
			"%s is ordered, and a job is running: the next one follows when it has ended", s.names.lane)
	}
	o := obstacle(job.ObstacleLaneFull, time.Time{},
		"%s is at its lane_concurrency of %d: %s follows when an attempt ends", s.names.lane, limits.Concurrency,
		s.names.next)
	return remedied(o, s.ofOwner(job.RemedySet, s.settings.Settings.LaneConcurrency > 0), ", and %s raises the limit")
}

// rate returns the wait for the next start that the lane's rate allows; zero: it allows one now.
func (s *subject) rate(next time.Time) *job.Obstacle {
	if next.IsZero() {
		return nil
	}
	o := obstacle(job.ObstacleLaneRate, next, "%s has used up its lane_rate of %s: the next start is free then",
		s.names.lane, units.FormatRate(s.limits().Rate))
	return remedied(o, s.ofOwner(job.RemedySet, s.settings.Settings.LaneRate.Limited()), ", and %s raises the rate")
}

// topicRate returns the wait for the next start that the topic's rate grants; zero: it grants one now.
func (s *subject) topicRate(next time.Time) *job.Obstacle {
	if next.IsZero() {
		return nil
	}
	o := obstacle(job.ObstacleTopicRate, next, "%s has used up its rate of %s: the next start is free then",
		s.names.topic, units.FormatRate(s.topic.Resolved.Rate))
	return remedied(o, s.ofTopic(job.RemedySet), ", and %s raises the rate")
}

// order returns the wait for the job of an ordered lane that has to end first.
func (s *subject) order(next *job.Job) *job.Obstacle {
	switch {
	case next.State.Ended():
		return nil
	case next.State != job.Scheduled:
		return obstacle(job.ObstacleOrder, time.Time{}, "%s is ordered, and job %s has to end first: it is %s",
			s.names.lane, next.ID, next.State)
	}
	o := obstacle(job.ObstacleOrder, next.DueAt,
		"%s is ordered, and job %s has to end first%s for its next attempt", s.names.lane, next.ID, s.names.first)
	return remedied(o, s.ofJob(job.RemedyRun, next.ID),
		". %s attempts it now, and %s cancels it, so that the next one follows",
		s.ofJob(job.RemedyCancel, next.ID).Request())
}
