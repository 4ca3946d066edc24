package storetest

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/store"
)

type option func(*store.NewJob)

// entry returns a job that is due now, with an id of a client.
func (s *suite) entry(id string, options ...option) store.NewJob {
	e := store.NewJob{New: job.New{Spec: job.Spec{
		ID: id, Queue: s.queue, URL: "http://" + s.queue.Lane + "/hooks", Method: "POST",
	}}}
	for _, o := range options {
		o(&e)
	}
	e.Fingerprint = codec.Fingerprint(&e.New)
	return e
}

func in(q job.Queue) option          { return func(e *store.NewJob) { e.Queue = q } }
func delayed(d time.Duration) option { return func(e *store.NewJob) { e.Delay = d } }
func body(text string) option {
	return func(e *store.NewJob) { e.Body, e.BodyKind = []byte(text), job.BodyText }
}
func at(url string) option { return func(e *store.NewJob) { e.URL = url } }

func timeout(d time.Duration) option { return func(e *store.NewJob) { e.Timeout = d } }
func expires(d time.Duration) option { return func(e *store.NewJob) { e.ExpiresIn = d } }
func labelled(key, value string) option {
	return func(e *store.NewJob) { e.Labels = map[string]string{key: value} }
}

func (s *suite) ref(id string) job.Ref { return job.Ref{Namespace: s.queue.Namespace, ID: id} }
