package nowpage

import (
	"slices"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/job"
)

// severityOf returns how bad the worst reason is for which a lane holds jobs back, which is its first one; zero: it has
// none that is known.
func severityOf(l *client.TroubledLane) job.Severity {
	if len(l.Reasons) == 0 {
		return 0
	}
	return job.ObstacleCode(l.Reasons[0].Code).Severity()
}

func isFailing(l *client.TroubledLane) bool { return severityOf(l) == job.SeverityFailing }

// isAtLimitOnly reports whether a lane holds jobs back for its limits alone.
func isAtLimitOnly(l *client.TroubledLane) bool { return severityOf(l) == job.SeverityLimit }

// failing returns the lanes whose receivers fail. more reports whether there may be others.
func (s *state) failing() (lanes []*client.TroubledLane, more bool) {
	if s.troubled == nil {
		return nil, false
	}
	for i := range s.troubled.Items {
		if item := &s.troubled.Items[i]; isFailing(item) {
			lanes = append(lanes, item)
		}
	}
	n := len(s.troubled.Items)
	return lanes, !s.troubled.Exact || n > 0 && s.troubled.Total > n && isFailing(&s.troubled.Items[n-1])
}

// holding returns the lanes that hold jobs back for other reasons, but for the pause of their topic alone.
func (s *state) holding() []*client.TroubledLane { return slices.DeleteFunc(s.lanes(), isFailing) }

// addLanes names lanes, and says why they hold jobs back.
func (s *state) addLanes(l *lead, lanes []*client.TroubledLane) {
	s.addList(l, len(lanes), func(i int) {
		lane := lanes[i]
		l.addLink(lane.Lane, s.v.Path("topics", lane.Topic, "lanes", lane.Lane))
		l.add(" of topic ")
		l.addLink(lane.Topic, s.v.Path("topics", lane.Topic))
		l.add(" (")
		s.addReason(l, lane)
		l.add(")")
	})
}

// addReason says how many attempts of a lane fail, since when, the newest failure, and what else is the worst reason.
func (s *state) addReason(l *lead, lane *client.TroubledLane) {
	between := ""
	if h := lane.Health; h != nil && isFailing(lane) {
		l.add("since ")
		l.addTime(h.Since)
		l.add(", %d\u00a0%% of its latest attempts", h.FailedPercent)
		between = ", "
	}
	if f := lane.LastFailure; f != nil && isFailing(lane) {
		l.add("%snewest: %s", between, words.Failure(f.Status, f.ErrorClass))
		between = ", "
	}
	reason := &lane.Reasons[0]
	if reason.Code != string(job.ObstacleFailing) || between == "" {
		l.add("%s%s", between, reasonPill(reason.Code).Text)
	}
	if !reason.Until.IsZero() {
		l.add("%s", untilText(reason.Code))
		l.addTime(reason.Until)
	}
}

// untilText returns the words before the end of a reason.
func untilText(code string) string {
	if code == "retry_after" { // it may have asked for more
		return ", left alone until "
	}
	return " until "
}

// addList adds up to maxNamed items with commas, and the number of the others.
func (s *state) addList(l *lead, n int, add func(i int)) {
	named := n
	if n > maxNamed {
		named = maxNamed - 1
	}
	for i := range named {
		switch {
		case i == 0:
		case i == named-1 && named == n:
			l.add(" and ")
		default:
			l.add(", ")
		}
		add(i)
	}
	if named < n {
		l.add(" and %s more", words.Number(int64(n-named)))
	}
}

// addPauses adds a sentence about paused topics.
func (s *state) addPauses(l *lead) {
	if paused := s.pauses(); len(paused) > 0 {
		l.worsen()
		s.addPaused(l, " Topic", paused)
		l.add(".")
	}
}

// addPaused adds a clause about paused topics, which begins with the word for one.
func (s *state) addPaused(l *lead, topic string, paused []pause) {
	n := int64(len(paused))
	l.add("%s ", words.Verb(n, topic, topic+"s"))
	s.addList(l, len(paused), func(i int) { l.addLink(paused[i].Topic, paused[i].To) })
	l.add("%s", words.Verb(n, " is paused", " are paused"))
}
