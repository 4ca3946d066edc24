package api

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// lanesStandard is how many lanes are listed unless a client says otherwise.
const lanesStandard = 100

// topicsCounted is how many topics are counted one by one unless a client says otherwise.
const topicsCounted = 100

// stats counts all jobs together, and those of a page of topics.
func (a *api) stats(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r, "limit", "after")
	limit, after := q.limit(topicsCounted), q.get("after")
	if after != "" && !job.IsTopic(after) {
		q.fault("?after", "must be the name of a topic, as next_after gives it")
	}
	if err := q.err(); err != nil {
		return err
	}
	totals, err := a.service.Totals(r.Context(), job.DefaultNamespace)
	if err != nil {
		return err
	}
	// One more than is shown tells whether there are more.
	topics, err := a.service.TopicStats(r.Context(), store.StatsFilter{
		Namespace: job.DefaultNamespace, After: after, Limit: limit + 1,
	})
	if err != nil {
		return err
	}
	o := newOut()
	defer o.free()
	o.open()
	o.object("totals")
	o.counts(totals)
	o.close()
	o.array("topics")
	for _, t := range topics[:min(limit, len(topics))] {
		o.open()
		o.text("topic", t.Topic)
		o.counts(t)
		o.close()
	}
	o.closeArray()
	if len(topics) > limit {
		o.text("next_after", topics[limit-1].Topic)
	}
	o.close()
	o.send(w, http.StatusOK)
	return nil
}

// counts writes the numbers of a topic, or of all.
func (o *out) counts(t store.TopicStats) {
	o.number("registered", t.Registered)
	o.number("scheduled", t.Scheduled)
	o.number("ready", t.Ready)
	o.number("running", t.Running)
	o.number("delivered", t.Delivered)
	o.number("dead", t.Dead)
	o.number("cancelled", t.Cancelled)
	o.time("oldest_due", t.OldestDue)
	o.number("lanes_open", t.OpenBreakers)
}

// topicStats counts a topic's jobs, and the unfinished ones of its lanes.
func (a *api) topicStats(w http.ResponseWriter, r *http.Request) error {
	name, err := pathTopic(r)
	if err != nil {
		return err
	}
	q := newQuery(r, "limit", "after")
	limit, after := q.limit(lanesStandard), q.get("after")
	if after != "" && !job.IsLane(after) {
		q.fault("?after", "must be the name of a lane, as next_after gives it")
	}
	if err := q.err(); err != nil {
		return err
	}
	counts, err := a.countsOf(r, name)
	if err != nil {
		return err
	}
	// One more than is shown tells whether there are more.
	lanes, err := a.service.Lanes(r.Context(), job.DefaultNamespace, name, after, limit+1)
	if err != nil {
		return err
	}
	o := newOut()
	defer o.free()
	o.open()
	o.text("topic", name)
	o.counts(counts)
	o.array("lanes")
	now := time.Now()
	for _, l := range lanes[:min(limit, len(lanes))] {
		o.open()
		o.laneCounts(l, now)
		o.close()
	}
	o.closeArray()
	if len(lanes) > limit {
		o.text("next_after", lanes[limit-1].Lane)
	}
	o.close()
	o.send(w, http.StatusOK)
	return nil
}

// laneCounts writes the numbers of a lane, and how its breaker stands.
func (o *out) laneCounts(l store.LaneStats, now time.Time) {
	o.text("lane", l.Lane)
	o.number("scheduled", l.Scheduled)
	o.number("ready", l.Ready)
	o.number("running", l.Running)
	held := l.CooldownUntil.After(now)
	breaker := "closed"
	switch {
	case l.BreakerOpen && held:
		breaker = "open"
	case l.BreakerOpen:
		breaker = "half_open" // a probe may be made, or is under way
	}
	o.text("breaker", breaker)
	if held {
		o.time("held_until", l.CooldownUntil)
	}
}

// countsOf counts a topic's jobs; a topic without any is looked up.
func (a *api) countsOf(r *http.Request, name string) (store.TopicStats, error) {
	all, err := a.service.TopicStats(r.Context(), store.StatsFilter{Namespace: job.DefaultNamespace, Topics: []string{name}})
	if err != nil {
		return store.TopicStats{}, err
	}
	for _, t := range all {
		if t.Topic == name && t.Registered > 0 {
			return t, nil
		}
	}
	_, err = a.findTopic(r, name)
	return store.TopicStats{}, err
}
