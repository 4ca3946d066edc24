package api

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

func (a *api) statsEndpoints() []endpoint {
	return []endpoint{
		at("GET /v1/stats", access.ReadStats, ofAll, a.on(onStore.stats), paged()),
		at("GET /v1/topics/{topic}/stats", access.ReadStats, ofPath, a.on(onStore.topicStats), paged("lane")),
		at("GET /v1/history", access.ReadStats, ofAll, a.on(onStore.history), query("topics", "by")),
		at("GET /v1/topics/{topic}/history", access.ReadStats, ofPath, a.on(onStore.topicHistory)),
		at("GET /v1/stream", access.WatchUpdates, ofRequest, a.on(onStore.watchUpdates),
			query("topic", "lane", "verdict"), endless),
	}
}

// stats counts all jobs, and those of a page of topics.
func (a onStore) stats(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r, request.Topics)
	if err != nil {
		return err
	}
	totals, err := a.store.Totals(r.Context(), namespaceOf(r))
	if err != nil {
		return err
	}
	topics, err := a.store.TopicStats(r.Context(), store.StatsFilter{
		Namespace: namespaceOf(r), After: p.after, Limit: p.limit + 1,
	})
	if err != nil {
		return err
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.Object("totals")
		o.Members(&totals)
		o.Close()
		writePage(o, p, topics, func(o *response.Buffer, t *store.TopicStats) {
			o.Text("topic", t.Topic)
			o.Members(t)
		}, func(t *store.TopicStats) string { return t.Topic })
	})
	return nil
}

// topicStats counts a topic's jobs, and the unfinished ones of its lanes, or only those of the lane that is named.
func (a onStore) topicStats(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathTopic(r)
	if err != nil {
		return err
	}
	q := request.NewQuery(r)
	p, lane := readPage(q, request.Lanes), q.Lane()
	if lane != "" && (q.Get("limit") != "" || q.Get("cursor") != "") {
		q.AddError("?lane", "cannot be combined with limit or cursor")
	}
	if err := q.Err(); err != nil {
		return err
	}
	if lane != "" {
		return a.laneCounts(w, r, job.Queue{Namespace: namespaceOf(r), Topic: name, Lane: lane})
	}
	counts, err := a.countsOf(r, name, false)
	if err != nil {
		return err
	}
	lanes, err := a.store.LaneStats(r.Context(), namespaceOf(r), name, p.after, p.limit+1)
	if err != nil {
		return err
	}
	now := time.Now()
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.Text("topic", name)
		o.Members(&counts)
		writePage(o, p, lanes, func(o *response.Buffer, l *store.LaneStats) { o.LaneStats(l, now) },
			func(l *store.LaneStats) string { return l.Lane })
	})
	return nil
}

// laneCounts counts the unfinished jobs of a lane.
func (a onStore) laneCounts(w http.ResponseWriter, r *http.Request, queue job.Queue) error {
	counts, err := a.store.LaneCounts(r.Context(), queue)
	if err != nil {
		return err
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.Text("topic", queue.Topic)
		o.LaneStats(&counts, time.Now())
	})
	return nil
}

// countsOf counts a topic's jobs, with nameOnly only those that were registered, at less cost. It returns an error when
// there is no such topic.
func (a onStore) countsOf(r *http.Request, name string, nameOnly bool) (store.TopicStats, error) {
	all, err := a.store.TopicStats(r.Context(), store.StatsFilter{
		Namespace: namespaceOf(r), Topics: []string{name}, NamesOnly: nameOnly,
	})
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
