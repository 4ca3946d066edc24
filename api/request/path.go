package request

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// PathJob returns the job in the path. An invalid id is not found.
func PathJob(r *http.Request) (job.Ref, error) {
	id := r.PathValue("id")
	if !job.IsID(id) {
		return job.Ref{}, response.NewProblem(response.NotFound,
			"no job has such an id: ids are 1 to 64 of A-Z a-z 0-9 _ : and - (96 where they begin with rb:)")
	}
	return job.Ref{Namespace: namespaceOf(r), ID: id}, nil
}

// PathTopic returns the topic in the path. An invalid name is not found.
func PathTopic(r *http.Request) (string, error) {
	q, err := PathQueue(r)
	return q.Topic, err
}

// PathNewTopic returns the topic in the path, which need not exist. The topic of callbacks is allowed.
func PathNewTopic(r *http.Request) (string, error) {
	q, err := PathNewQueue(r)
	return q.Topic, err
}

// PathQueue returns the topic and the lane in the path, or the topic alone. An invalid name is not found.
func PathQueue(r *http.Request) (job.Queue, error) {
	q := pathQueue(r)
	switch {
	case !job.IsTopic(q.Topic):
		return job.Queue{}, response.NewProblem(response.NotFound,
			"no topic has such a name: names are 1 to 64 of A-Z a-z 0-9 . _ and -")
	case q.Lane != "" && !job.IsLane(q.Lane):
		return job.Queue{}, response.NewProblem(response.NotFound,
			"no lane has such a name: names are 1 to 128 of A-Z a-z 0-9 . _ : [ ] and -")
	}
	return q, nil
}

// PathNewQueue is PathQueue for a topic or a lane that need not exist.
func PathNewQueue(r *http.Request) (job.Queue, error) {
	q := pathQueue(r)
	checked := q
	if q.Topic == job.CallbackTopic || q.Topic == job.EventTopic && q.Lane == "" {
		checked.Topic = "" // clients may configure it
	}
	if errs := job.Validate(job.New{Spec: job.Spec{Queue: checked}}, time.Time{}); len(errs) > 0 {
		return job.Queue{}, response.Invalid(errs...)
	}
	return q, nil
}

// namespaceOf returns the namespace of a request.
func namespaceOf(r *http.Request) string { return PrincipalOf(r.Context()).Namespace }

func pathQueue(r *http.Request) job.Queue {
	return job.Queue{Namespace: namespaceOf(r), Topic: r.PathValue("topic"), Lane: r.PathValue("lane")}
}
