package request

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// PathNewSecretOwner returns the topic or lane in the path, which need not exist.
func PathNewSecretOwner(r *http.Request) (store.SecretOwner, error) {
	if r.PathValue("lane") == "" {
		topic, err := PathNewTopic(r)
		return store.SecretOwner{Namespace: job.DefaultNamespace, Topic: topic}, err
	}
	q, err := PathNewLane(r)
	return store.SecretOwner(q), err
}

// PathSecretOwner returns the topic or lane in the path.
func PathSecretOwner(r *http.Request) (store.SecretOwner, error) {
	if r.PathValue("lane") == "" {
		topic, err := PathTopic(r)
		return store.SecretOwner{Namespace: job.DefaultNamespace, Topic: topic}, err
	}
	q, err := PathLane(r)
	return store.SecretOwner(q), err
}

// PathJob returns the job in the path. An invalid id is not found.
func PathJob(r *http.Request) (job.Ref, error) {
	id := r.PathValue("id")
	if !job.IsID(id) {
		return job.Ref{}, response.NewProblem(http.StatusNotFound,
			"no job has such an id: ids are 1 to 64 of A-Z a-z 0-9 _ : and - (96 where they begin with rb:)")
	}
	return job.Ref{Namespace: job.DefaultNamespace, ID: id}, nil
}

// PathTopic returns the topic in the path. An invalid name is not found.
func PathTopic(r *http.Request) (string, error) {
	name := r.PathValue("topic")
	if !job.IsTopic(name) {
		return "", response.NewProblem(http.StatusNotFound,
			"no topic has such a name: names are 1 to 64 of A-Z a-z 0-9 . _ and -")
	}
	return name, nil
}

// PathNewTopic returns the topic in the path, which need not exist. The topic of callbacks is allowed.
func PathNewTopic(r *http.Request) (string, error) {
	name := r.PathValue("topic")
	if errs := nameErrors(name, ""); len(errs) > 0 {
		return "", response.Invalid(errs...)
	}
	return name, nil
}

// PathNewLane returns the lane in the path, which need not exist.
func PathNewLane(r *http.Request) (job.Queue, error) {
	q := job.Queue{Namespace: job.DefaultNamespace, Topic: r.PathValue("topic"), Lane: r.PathValue("lane")}
	if errs := nameErrors(q.Topic, q.Lane); len(errs) > 0 {
		return job.Queue{}, response.Invalid(errs...)
	}
	return q, nil
}

// nameErrors returns the errors of a new topic's and lane's names.
func nameErrors(topic, lane string) []job.FieldError {
	if topic == job.CallbackTopic {
		topic = ""
	}
	return job.Validate(job.New{Spec: job.Spec{Queue: job.Queue{Topic: topic, Lane: lane}}}, time.Time{})
}

// PathLane returns the lane in the path. An invalid name is not found.
func PathLane(r *http.Request) (job.Queue, error) {
	topic, err := PathTopic(r)
	if err != nil {
		return job.Queue{}, err
	}
	lane := r.PathValue("lane")
	if !job.IsLane(lane) {
		return job.Queue{}, response.NewProblem(http.StatusNotFound,
			"no lane has such a name: names are 1 to 128 of A-Z a-z 0-9 . _ : [ ] and -")
	}
	return job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane}, nil
}
