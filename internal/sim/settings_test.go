package sim

import (
	"math"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A reign is settings, and when they came into force.
type reign[T any] struct {
	settings T
	from     time.Time
}

// arrival is how long a process may go by settings after others have replaced them: it may fail to read those, and the
// attempts that it has claimed go on.
const arrival = 40 * time.Second

// since returns what was in force at some time after another.
func since[T any](reigns []reign[T], at time.Time) (settings []T) {
	for i := range reigns {
		if i == len(reigns)-1 || reigns[i+1].from.After(at) {
			settings = append(settings, reigns[i].settings)
		}
	}
	return settings
}

// put notes a change of the settings of a topic or a lane.
func (l *ledger) put(token store.Token, doc store.Document, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isRepeated("PutDocument", token, revision) {
		return
	}
	if doc.Revision = 0; doc.Value != nil {
		doc.Revision = 1
	}
	switch doc.Key.Kind {
	case store.KindTopic:
		topic, err := doc.Topic()
		if err != nil {
			l.breach("%v", err)
		}
		l.reign(topic.Name, topic.Policy)
	case store.KindSchedule:
		l.putSchedule(doc, revision)
	case store.KindLane:
		lane, err := doc.Lane()
		if err != nil {
			l.breach("%v", err)
		}
		l.lanes[lane.Queue] = append(l.lanes[lane.Queue], reign[policy.Lane]{lane.Settings, time.Now()})
	}
}

// reign notes that a topic has a policy from now on.
func (l *ledger) reign(topic string, p policy.Topic) {
	l.reigned = time.Now()
	l.topics[topic] = append(l.topics[topic], reign[policy.Topic]{p.WithDefaults(defaults), time.Now()})
}

// topicsSince returns the policies of a topic that were in force at some time after another.
func (l *ledger) topicsSince(topic string, at time.Time) []policy.Topic {
	if len(l.topics[topic]) == 0 {
		return []policy.Topic{defaults}
	}
	return since(l.topics[topic], at)
}

// limitsSince returns the limits of a queue that may have been in force at some time after another.
func (l *ledger) limitsSince(q job.Queue, at time.Time) (all []policy.Limits) {
	lanes := since(l.lanes[q], at)
	if len(lanes) == 0 || l.lanes[q][0].from.After(at) {
		lanes = append(lanes, policy.Lane{})
	}
	for _, topic := range l.topicsSince(q.Topic, at) {
		for _, lane := range lanes {
			all = append(all, lane.Limits().Over(topic.Limits()))
		}
	}
	return all
}

// limits returns the limits of a queue that are in force, and since when.
func (l *ledger) limits(q job.Queue) (policy.Limits, time.Time) {
	now := l.limitsSince(q, time.Now())
	var from time.Time
	if topics := l.topics[q.Topic]; len(topics) > 0 {
		from = topics[len(topics)-1].from
	}
	if lanes := l.lanes[q]; len(lanes) > 0 && lanes[len(lanes)-1].from.After(from) {
		from = lanes[len(lanes)-1].from
	}
	return now[len(now)-1], from
}

// concurrency returns the largest concurrency of a lane by which an attempt may be under way.
func (l *ledger) concurrency(q job.Queue) (most int) {
	for _, limits := range l.limitsSince(q, time.Now().Add(-arrival)) {
		most = max(most, limits.Concurrency)
	}
	return most
}

// bounds are the extremes of what a process may go by after a failure of a job that was claimed at a time: of its
// retries, and of its wait. It may store its verdict late.
type bounds struct {
	fewest, most      int
	shortest, longest time.Duration
}

func (l *ledger) bounds(s *job.Spec, failed int, claimed time.Time) bounds {
	b := bounds{fewest: math.MaxInt, shortest: math.MaxInt64}
	for _, topic := range l.topicsSince(s.Topic, claimed.Add(-arrival)) {
		terms := topic.Terms(s.Terms)
		rung := terms.Ladder.Rung(failed)
		b.fewest, b.most = min(b.fewest, *terms.Retries), max(b.most, *terms.Retries)
		b.shortest = min(b.shortest, rung)
		b.longest = max(b.longest, rung+time.Duration(terms.Jitter*float64(rung)))
	}
	return b
}

// startOfTopic counts a start of a topic, and startOfLane one of a lane. In a window of a rate that was changed the
// largest one counts.
func (l *ledger) startOfTopic(q job.Queue) {
	var rates []policy.Rate
	for _, topic := range l.topicsSince(q.Topic, time.Now().Add(-ratePeriod-arrival)) {
		rates = append(rates, topic.Rate)
	}
	l.countStart(job.Queue{Namespace: q.Namespace, Topic: q.Topic}, rates)
}

func (l *ledger) startOfLane(q job.Queue) {
	var rates []policy.Rate
	for _, limits := range l.limitsSince(q, time.Now().Add(-ratePeriod-arrival)) {
		rates = append(rates, limits.Rate)
	}
	l.countStart(q, rates)
}

// countStart counts a start of a queue, or, without a lane, of a topic.
func (l *ledger) countStart(of job.Queue, rates []policy.Rate) {
	now := time.Now()
	starts := slices.DeleteFunc(l.starts[of], func(at time.Time) bool { return now.Sub(at) >= ratePeriod })
	l.starts[of] = append(starts, now)
	largest := 0
	for _, rate := range rates {
		if !rate.Limited() {
			return
		}
		largest = max(largest, rate.Starts)
	}
	if n := len(l.starts[of]); n > largest {
		l.breach("%s: %d starts within %v, allowed are %d", of, n, ratePeriod, largest)
	}
}
