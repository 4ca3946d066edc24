package nowpage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

const (
	// maxNamed bounds the receivers and topics that the first sentence names.
	maxNamed = 3
	// late is how late the oldest job is when the page says so: attempts begin within milliseconds otherwise.
	late = 10 * time.Second
	// enough is the number of failed attempts that say that nothing is delivered.
	enough = 3
)

// lead is the first sentence of the page: whether callbacks flow.
type lead struct {
	Class string // ok, warn or bad; empty: nothing is known to be well or in trouble
	Parts []part
}

// part is a part of a sentence: a text, which may be a link or stay in one line, or a time.
type part struct {
	Text  string
	To    string
	Whole bool
	Time  time.Time
}

// add adds a text. A sentence after another one begins with a space.
func (l *lead) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(l.Parts) == 0 {
		text = strings.TrimPrefix(text, " ")
	}
	l.Parts = append(l.Parts, part{Text: text})
}

// worsen sets the class warn, unless the sentence has a worse one.
func (l *lead) worsen() {
	if l.Class != "bad" {
		l.Class = "warn"
	}
}

func (l *lead) addLink(text, to string) {
	l.Parts = append(l.Parts, part{Text: text, To: to, Whole: true})
}
func (l *lead) addTime(t time.Time) { l.Parts = append(l.Parts, part{Time: t}) }

// lead returns the first sentence.
func (s *state) lead() lead {
	var l lead
	failing, more := s.failing()
	switch {
	case s.fault != "" && len(s.Stores) > 0:
		l.Class = "warn"
		l.add("%s", words.Sentence("The store cannot be read now: "+s.fault))
		return l
	case s.fault != "": // others may be ready
		l.Class = "bad"
		l.add("%s It is not known whether callbacks flow.", words.Sentence("This process is not ready: "+s.fault))
		return l
	case s.isFresh():
		l.add("No job has been registered yet.")
		return l
	case s.isStuck() && len(failing) == 0:
		l.Class = "bad"
		s.addStuck(&l)
		s.addDied(&l)
		return l
	}
	holding := s.holding()
	if !s.isLate() {
		holding = slices.DeleteFunc(holding, isAtLimitOnly)
	}
	holds := len(failing) > 0 || len(holding) > 0 || len(s.pausesWithJobs()) > 0
	if len(failing) > 0 {
		l.Class = "warn"
		s.addFailing(&l, failing, more)
	}
	s.addPauses(&l)
	if len(holding) > 0 {
		s.addHolding(&l, holding)
	}
	if s.isLate() && holds {
		l.Class = "warn"
		l.add(" The oldest due job has waited for %s.", s.lateWords())
	}
	s.addDied(&l)
	for _, store := range s.Stores {
		if !store.Ready {
			l.Class = "bad"
			l.add(" %s", words.Sentence("Store "+store.Name+" is not ready: "+store.Detail))
		}
	}
	s.addFlow(&l, holds)
	return l
}

// addFailing says which receivers fail.
func (s *state) addFailing(l *lead, lanes []*client.TroubledLane, more bool) {
	l.add(" %s ", words.Verb(int64(len(lanes)), "The receiver of", "The receivers of"))
	if more {
		l.add("at least ")
	}
	l.add("%s: ", words.CountVerb(int64(len(lanes)), "lane", "fails", "fail"))
	s.addLanes(l, lanes)
	l.add(".")
}

// addDied says how many jobs died in the last hour.
func (s *state) addDied(l *lead) {
	if s.Hour == nil || s.Hour.Sum().Dead == 0 {
		return
	}
	l.worsen()
	l.add(" ")
	l.addLink(words.CountVerb(s.Hour.Sum().Dead, "job", "died", "died"),
		s.v.PathQuery(s.v.Path("dead"), "ended_after", "1h"))
	l.add(" in the last hour.")
}

// oldestLate returns how late the oldest job that waits is, or was when jobs were counted; below 0: it is not due.
func (s *state) oldestLate() time.Duration {
	if s.counts == nil || s.counts.OldestDueAt.IsZero() {
		return -1
	}
	return s.countedAt().Sub(s.counts.OldestDueAt)
}

// countedAt returns when jobs were counted.
func (s *state) countedAt() time.Time { return s.v.Now.Add(-s.age) }

// isLate reports whether a job is so late that the page says so.
func (s *state) isLate() bool { return s.oldestLate() >= late }

// isStuck reports whether nothing was delivered lately, although jobs are due or attempts were made.
func (s *state) isStuck() bool {
	return s.isWhole() && s.lately.Delivered == 0 && (s.isLate() || s.lately.Failed >= enough)
}

// isWhole reports whether the numbers are of all topics that the token may see.
func (s *state) isWhole() bool { return s.Hour != nil && (s.Restricted == nil || s.counts != nil) }

// addStuck says that nothing is delivered, and why, if no receiver is known to fail.
func (s *state) addStuck(l *lead) {
	l.add("Nothing is being delivered: ")
	paused, holding := s.pausesWithJobs(), s.holding()
	switch {
	case s.lately.Failed >= enough:
		l.add("all attempts of the last minutes failed.")
		s.addPauses(l)
		if len(holding) > 0 {
			s.addHolding(l, holding)
		}
	case len(paused) > 0:
		s.addPaused(l, "topic", paused)
		l.add(".")
	case len(holding) > 0:
		s.addLanes(l, holding)
		l.add("%s jobs back.", words.Verb(int64(len(holding)), " holds", " hold"))
	default:
		s.addUnexplained(l)
	}
}

// addUnexplained says that jobs are due, and that nothing is known to hold them back.
func (s *state) addUnexplained(l *lead) {
	if n := s.counts.Running; n > 0 { // they may take long
		l.Class = "warn"
		l.add("%s running, and the oldest due job has waited for %s.",
			words.CountVerb(n, "attempt", "is", "are"), s.lateWords())
		return
	}
	l.add("the oldest due job has waited for %s", s.lateWords())
	switch {
	case s.troubled == nil:
	case s.troubled.Exact:
		l.add(", and no lane holds it back")
	default:
		l.add(", and none of the %s that were looked at holds it back", words.Count(int64(s.troubled.LookedAt), "lane"))
	}
	topic := s.oldestTopic()
	if topic == nil {
		l.add(". Perhaps no process delivers its topic, or no client leases its jobs.")
		return
	}
	link := func() { l.addLink(topic.Name, s.v.Path("topics", topic.Name)) }
	switch topic.Deliver {
	case "pull":
		l.Class = "warn" // clients may lease rarely
		l.add(". Topic ")
		link()
		l.add(" is pulled: perhaps no client leases its jobs.")
	case "handler":
		l.add(". Perhaps no program with a handler of topic ")
		link()
		l.add(" is running.")
	default:
		l.add(". Perhaps no process delivers topic ")
		link()
		l.add(".")
	}
}

// oldestTopic returns the settings of the topic whose job has been due for longest; nil: they are not known.
func (s *state) oldestTopic() *client.Topic {
	i := slices.IndexFunc(s.topics,
		func(c client.TopicCounts) bool { return c.OldestDueAt.Equal(s.counts.OldestDueAt) })
	if i < 0 {
		return nil
	}
	j := slices.IndexFunc(s.settings, func(t *client.Topic) bool { return t.Name == s.topics[i].Topic })
	if j < 0 {
		return nil
	}
	return s.settings[j]
}

// lateWords returns how late the oldest job is.
func (s *state) lateWords() string { return words.Duration(s.oldestLate().Truncate(time.Second)) }

// addFlow says whether callbacks flow. Where something fails or holds jobs back, it says so only if others are
// delivered.
func (s *state) addFlow(l *lead, holds bool) {
	isLate, delivered := s.isLate(), s.lately.Delivered > 0
	known := s.troubled != nil && (s.troubled.Exact || s.troubled.LookedAt > 0)
	if l.Class == "" && (s.counts != nil || delivered) {
		l.Class = "ok"
	}
	switch {
	case isLate && !holds:
		l.worsen()
		l.add(" Callbacks are late: the oldest due job has waited for %s, since ", s.lateWords())
		l.addTime(s.counts.OldestDueAt)
		l.add(".")
	case holds && delivered:
		l.add(" Some callbacks are delivered.")
	case holds && s.isStuck():
		l.Class = "bad"
		l.add(" Nothing is being delivered.")
	case holds:
	case delivered && !known:
		l.worsen()
		l.add(" Callbacks are delivered. It is not known whether receivers fail: no lane could be looked at.")
	case delivered:
		l.add(" Callbacks flow.")
	case s.counts == nil:
		l.Class = ""
		l.add(" It is not known whether callbacks flow: not all topics of your token can be counted.")
	case s.counts.Scheduled+s.counts.Ready+s.counts.Running == 0:
		l.add(" Nothing waits: all jobs have ended.")
	case s.counts.Running == 0 && s.oldestLate() < 0 && !s.counts.OldestDueAt.IsZero():
		l.add(" Nothing is due: %s, the next one at ", words.CountVerb(s.counts.Scheduled+
			s.counts.Ready, "job", "waits", "wait"))
		l.addTime(s.counts.OldestDueAt)
		l.add(".")
	case !isLate && s.counts.Running > 0:
		l.add(" No job is late: %s running.", words.CountVerb(s.counts.Running, "attempt", "is", "are"))
	case !isLate:
		l.add(" No job is late.")
	}
}

// addHolding says which lanes hold jobs back although their receivers do not fail.
func (s *state) addHolding(l *lead, lanes []*client.TroubledLane) {
	l.Class = "warn"
	l.add(" %s jobs back: ", words.CountVerb(int64(len(lanes)), "lane", "holds", "hold"))
	s.addLanes(l, lanes)
	l.add(".")
}
