package api

import (
	"net/http"
	"strings"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// maxHistories bounds the topics whose history is asked for by name.
	maxHistories = 100
	// maxWorstLanes bounds the lanes beside the history of a topic.
	maxWorstLanes = 20
)

// history shows what became of attempts in a namespace, and in the topics that are named.
func (a onStore) history(w http.ResponseWriter, r *http.Request) error {
	q, topics := request.NewQuery(r), []string{store.AllTopics}
	if names := q.Get("topics"); names != "" {
		topics = append(topics, strings.Split(names, ",")...)
	}
	for _, topic := range topics[1:] {
		if !job.IsTopic(topic) {
			q.AddError("?topics", "must be names of topics, separated by commas")
			break
		}
	}
	if len(topics) > 1+maxHistories {
		q.AddError("?topics", "must name at most 100 topics")
	}
	by := q.Get("by")
	if by != "" && by != "minutes" && by != "hours" {
		q.AddError("?by", "must be minutes or hours")
	}
	if err := q.Err(); err != nil {
		return err
	}
	return a.serveList(w, r, len(topics), func(o *response.Buffer) error {
		all, err := a.store.History(r.Context(), namespaceOf(r), topics)
		if err != nil {
			return err
		}
		for i := range all {
			switch by {
			case "minutes":
				all[i].Hours = nil
			case "hours":
				all[i].Minutes = nil
			}
		}
		o.Buckets(&all[0])
		response.Objects(o, "items", all[1:], o.TopicBuckets)
		return nil
	})
}

// topicHistory shows what became of the attempts of a topic.
func (a onStore) topicHistory(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathTopic(r)
	if err != nil {
		return err
	}
	if _, err := a.countsOf(r, name, true); err != nil {
		return err
	}
	all, err := a.store.History(r.Context(), namespaceOf(r), []string{name})
	if err != nil {
		return err
	}
	worst, err := a.store.WorstLanes(r.Context(), namespaceOf(r), name, maxWorstLanes)
	if err != nil {
		return err
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.TopicBuckets(&all[0])
		response.Objects(o, "lanes", worst, func(l *store.WorstLane) {
			o.Members(l)
			o.Buckets(&l.History)
		})
	})
	return nil
}
