package nowpage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// lane is a lane that holds jobs back.
type lane struct {
	Topic, Lane      string
	TopicTo, LaneTo  string
	JobsTo           string
	Reasons          []reason
	Failure          *failure // nil: none is known
	Waiting, Running int64
	Oldest           time.Time
}

// reason is why a lane holds jobs back.
type reason struct {
	client.Obstacle

	Pill   web.Pill
	Before string // words before Until
	Remedy *web.Remedy
}

// failure is the newest failed attempt of a lane.
type failure struct {
	Words string
	Error string
	At    time.Time
	JobID string
	JobTo string
}

// reasons are the words and colours of reasons.
var reasons = map[string]web.Pill{
	"breaker_open":      {Class: "open", Text: "breaker open"},
	"breaker_half_open": {Class: "half-open", Text: "breaker half open"},
	"retry_after":       {Class: "held", Text: "asked for a pause"},
	"cooldown":          {Class: "held", Text: "in a cooldown by Ringback"},
	"order":             {Class: "held", Text: "waits for a failed job"},
	"topic_paused":      {Class: "paused", Text: "topic paused"},
	"lane_paused":       {Class: "paused", Text: "lane paused"},
	"lane_full":         {Class: "warn", Text: "at its concurrency"},
	"lane_rate":         {Class: "warn", Text: "at its rate"},
	"topic_rate":        {Class: "warn", Text: "at the rate of its topic"},
}

// reasonWords returns why a lane holds jobs back, in few words. Later versions of the API may have other codes.
func reasonWords(code string) string {
	if pill, ok := reasons[code]; ok {
		return pill.Text
	}
	return strings.ReplaceAll(code, "_", " ")
}

// failureWords returns what came of a failed attempt, as a clause.
func failureWords(f *client.LaneFailure) string {
	switch {
	case f.Status != 0:
		return fmt.Sprintf("answered %d", f.Status)
	case f.ErrorClass != "":
		return words.ErrorClass(f.ErrorClass)
	default:
		return "failed"
	}
}

func (s *state) laneTo(topic, lane string) string { return s.v.Path("topics", topic, "lanes", lane) }

// lanes returns the lanes that hold jobs back, but for those that only wait for their topic's pause.
func (s *state) lanes() []lane {
	if s.held == nil {
		return nil
	}
	var lanes []lane
	for i := range s.held.Items {
		item := &s.held.Items[i]
		if isPausedOnly(item) {
			continue
		}
		l := lane{
			Topic: item.Topic, Lane: item.Lane, TopicTo: s.v.Path("topics", item.Topic),
			LaneTo:  s.laneTo(item.Topic, item.Lane),
			JobsTo:  s.v.PathQuery(s.v.Path("jobs"), "topic", item.Topic, "lane", item.Lane),
			Waiting: item.Scheduled + item.Ready, Running: item.Running, Oldest: item.OldestDueAt,
		}
		for _, r := range item.Reasons {
			pill, ok := reasons[r.Code]
			if !ok {
				pill = web.Pill{Class: "plain", Text: reasonWords(r.Code)}
			}
			l.Reasons = append(l.Reasons, reason{r, pill, untilWords(r.Code), s.v.Remedy(r.Remedy)})
		}
		if f := item.LastFailure; f != nil {
			l.Failure = &failure{
				Words: failureWords(f), Error: f.Error, At: f.At, JobID: f.JobID,
				JobTo: s.v.Path("jobs", f.JobID),
			}
		}
		lanes = append(lanes, l)
	}
	return lanes
}

func isPausedOnly(l *client.HeldLane) bool {
	return len(l.Reasons) == 1 && l.Reasons[0].Code == "topic_paused"
}

// lanesNote says what the table of lanes lacks.
func (s *state) lanesNote() string {
	if s.held == nil {
		return ""
	}
	var notes []string
	if more := s.held.Total - len(s.held.Items); more > 0 {
		which, verb, end := "more lane", " hold jobs back", "; these are the worst."
		// none is listed
		if !slices.ContainsFunc(s.held.Items, func(l client.HeldLane) bool { return !isPausedOnly(&l) }) {
			which, end = "other lane", "."
		}
		if more == 1 {
			verb = " holds jobs back"
		}
		notes = append(notes, words.Count(int64(more), which)+verb+end)
	}
	if !s.held.Exact {
		notes = append(notes,
			"The search ended after "+words.Count(int64(s.held.LookedAt), "lane")+", so there may be others.")
	}
	return strings.Join(notes, " ")
}

// pause is a paused topic.
type pause struct {
	Topic, To string
	Since     time.Time
	By, Note  string
	Waiting   *int64 // nil: not known
}

// pauses returns the paused topics: of the first settings, and of lanes with jobs.
func (s *state) pauses() []pause {
	var all []pause
	for _, t := range s.settings {
		if !t.Paused {
			continue
		}
		all = append(all,
			pause{Topic: t.Name, To: s.v.Path("topics", t.Name), Since: t.PausedAt, By: t.PausedBy, Note: t.PauseNote})
	}
	if s.held != nil {
		for i := range s.held.Items {
			item := &s.held.Items[i]
			for _, r := range item.Reasons {
				if r.Code == "topic_paused" &&
					!slices.ContainsFunc(all, func(p pause) bool { return p.Topic == item.Topic }) {
					all = append(all, pause{
						Topic: item.Topic, To: s.v.Path("topics", item.Topic),
						Since: r.Since, By: r.By, Note: r.Note,
					})
				}
			}
		}
	}
	for i := range all {
		all[i].Waiting = s.waitingIn(all[i].Topic)
	}
	slices.SortFunc(all, func(a, b pause) int { return strings.Compare(a.Topic, b.Topic) })
	return all
}

// pausesWithJobs returns the paused topics but for those of which it is known that no job waits.
func (s *state) pausesWithJobs() []pause {
	return slices.DeleteFunc(s.pauses(), func(p pause) bool { return p.Waiting != nil && *p.Waiting == 0 })
}

// waitingIn returns how many jobs of a topic wait; nil: the topic is not among those that were counted.
func (s *state) waitingIn(topic string) *int64 {
	for i := range s.topics {
		if t := &s.topics[i]; t.Topic == topic {
			return new(t.Scheduled + t.Ready)
		}
	}
	if s.allCounted { // it has no jobs
		return new(int64(0))
	}
	return nil
}
