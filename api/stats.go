package api

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// lanesStandard is the default number of lanes in a list.
const lanesStandard = 100

// topicsCounted is the default number of topics in the statistics.
const topicsCounted = 100

// stats counts all jobs, and those of a page of topics.
func (a *api) stats(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r, "limit", "after")
	limit, after := q.Limit(topicsCounted), q.Get("after")
	if after != "" && !job.IsTopic(after) {
		q.AddError("?after", "must be the name of a topic, as next_after gives it")
	}
	if err := q.Err(); err != nil {
		return err
	}
	totals, err := a.service.Totals(r.Context(), job.DefaultNamespace)
	if err != nil {
		return err
	}
	// One more than shown tells whether there are more.
	topics, err := a.service.TopicStats(r.Context(), store.StatsFilter{
		Namespace: job.DefaultNamespace, After: after, Limit: limit + 1,
	})
	if err != nil {
		return err
	}
	o := response.NewBuffer()
	defer o.Free()
	o.Open()
	o.Object("totals")
	o.TopicStats(totals)
	o.Close()
	o.Array("topics")
	for _, t := range topics[:min(limit, len(topics))] {
		o.Open()
		o.Text("topic", t.Topic)
		o.TopicStats(t)
		o.Close()
	}
	o.CloseArray()
	if len(topics) > limit {
		o.Text("next_after", topics[limit-1].Topic)
	}
	o.Close()
	o.Send(w, http.StatusOK)
	return nil
}

// topicStats counts a topic's jobs, and the unfinished ones of its lanes.
func (a *api) topicStats(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathTopic(r)
	if err != nil {
		return err
	}
	q := request.NewQuery(r, "limit", "after")
	limit, after := q.Limit(lanesStandard), q.Get("after")
	if after != "" && !job.IsLane(after) {
		q.AddError("?after", "must be the name of a lane, as next_after gives it")
	}
	if err := q.Err(); err != nil {
		return err
	}
	counts, err := a.countsOf(r, name)
	if err != nil {
		return err
	}
	// One more than shown tells whether there are more.
	lanes, err := a.service.LaneStats(r.Context(), job.DefaultNamespace, name, after, limit+1)
	if err != nil {
		return err
	}
	o := response.NewBuffer()
	defer o.Free()
	o.Open()
	o.Text("topic", name)
	o.TopicStats(counts)
	o.Array("lanes")
	now := time.Now()
	for _, l := range lanes[:min(limit, len(lanes))] {
		o.Open()
		o.LaneStats(l, now)
		o.Close()
	}
	o.CloseArray()
	if len(lanes) > limit {
		o.Text("next_after", lanes[limit-1].Lane)
	}
	o.Close()
	o.Send(w, http.StatusOK)
	return nil
}

// countsOf counts a topic's jobs. It returns an error when there is no such topic.
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
