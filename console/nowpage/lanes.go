package nowpage

import (
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// reasons are the words and colours of reasons.
var reasons = map[string]web.Pill{
	"breaker_open":      {Class: "open", Text: "breaker open"},
	"breaker_half_open": {Class: "half-open", Text: "breaker half open"},
	"retry_after":       {Class: "held", Text: "asked for a pause"},
	"cooldown":          {Class: "held", Text: "in a cooldown by Ringback"},
	"failing":           {Class: "bad", Text: "failing"},
	"order":             {Class: "held", Text: "waits for a failed job"},
	"topic_paused":      {Class: "paused", Text: "topic paused"},
	"lane_paused":       {Class: "paused", Text: "lane paused"},
	"lane_full":         {Class: "warn", Text: "at its concurrency"},
	"lane_rate":         {Class: "warn", Text: "at its rate"},
	"topic_rate":        {Class: "warn", Text: "at the rate of its topic"},
}

// reasonPill returns why a lane holds jobs back, in few words. Later versions of the API may have other codes.
func reasonPill(code string) web.Pill {
	if pill, ok := reasons[code]; ok {
		return pill
	}
	return web.Pill{Class: "plain", Text: strings.ReplaceAll(code, "_", " ")}
}

// waiting returns the number of jobs of a lane that wait, due or not.
func waiting(l *client.TroubledLane) int64 { return l.Scheduled + l.Ready }

// lanes returns the lanes that hold jobs back, but for those that only wait for their topic's pause.
func (s *state) lanes() (lanes []*client.TroubledLane) {
	if s.troubled == nil {
		return nil
	}
	for i := range s.troubled.Items {
		if item := &s.troubled.Items[i]; !isPausedOnly(item) {
			lanes = append(lanes, item)
		}
	}
	return lanes
}

func isPausedOnly(l *client.TroubledLane) bool {
	return len(l.Reasons) == 1 && l.Reasons[0].Code == "topic_paused"
}

// lanesNote says what the table of lanes lacks.
func (s *state) lanesNote() string {
	if s.troubled == nil {
		return ""
	}
	var notes []string
	if more := s.troubled.Total - len(s.troubled.Items); more > 0 {
		which, verb, end := "more lane", " hold jobs back", "; these are the worst."
		// none is listed
		if !slices.ContainsFunc(s.troubled.Items, func(l client.TroubledLane) bool { return !isPausedOnly(&l) }) {
			which, end = "other lane", "."
		}
		if more == 1 {
			verb = " holds jobs back"
		}
		notes = append(notes, words.Count(int64(more), which)+verb+end)
	}
	if !s.troubled.Exact {
		notes = append(notes,
			"The search ended after "+words.Count(int64(s.troubled.LookedAt), "lane")+", so there may be others.")
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
	if s.troubled != nil {
		for i := range s.troubled.Items {
			item := &s.troubled.Items[i]
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
