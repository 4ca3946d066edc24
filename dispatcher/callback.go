package dispatcher

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// notifyEnd returns the callback about a job's end; none if the policy has no callback for it.
func (d *Dispatcher) notifyEnd(end pool.AttemptEvent) []store.NewJob {
	n, ok := endedCallback(&end, time.Now())
	if !ok {
		return nil
	}
	n.Lane = laneOf(n.URL)
	callback := d.outboxEntry(&n)
	callback.Header = d.keepTrace(end.Job.Header, callback.Header) // that of the attempt replaces it
	return []store.NewJob{callback}
}

// outboxEntry returns the outbox entry of a callback.
func (d *Dispatcher) outboxEntry(n *job.New) store.NewJob {
	return store.NewJob{
		New: *n, Fingerprint: codec.Fingerprint(n),
		MaxAge: d.policies.Get(n.Namespace, n.Topic).Resolved.MaxAge,
	}
}
