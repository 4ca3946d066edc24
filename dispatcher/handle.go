package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/dispatcher/handlers"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Job is a job as a handler gets it.
type Job = handlers.Job

// HandlerFunc handles a job: see package handlers.
type HandlerFunc = handlers.Func

// Retry returns the error of a handler whose job is due again after a wait, of up to 30 days, instead of the ladder's. It costs a
// retry. It may be wrapped, to say why.
func Retry(after time.Duration) error { return &handlers.RetryError{After: after} }

// Dead returns the error of a handler whose job is dead, whatever retries it has left. It may be wrapped.
func Dead(reason string) error { return &handlers.DeadError{Err: errors.New(reason)} }

// Handle has the jobs of a topic in job.DefaultNamespace handled by a function of this program. Run, and the
// first registration here without a URL, set the topic's deliver to policy.DeliverHandler. It is called before Run, and panics if it is not, or if the topic is invalid or has
// a handler.
func (d *Dispatcher) Handle(topic string, f HandlerFunc) {
	switch {
	case d.pool == nil:
		panic("dispatcher: RegisterOnly leaves handling to other processes")
	case !job.IsTopic(topic) || job.IsReserved(topic):
		panic(fmt.Sprintf("dispatcher: %q is not the name of a topic that can be handled", topic))
	case d.pool.Handles(job.DefaultNamespace, topic):
		panic("dispatcher: topic " + topic + " has a handler already")
	case d.state.Load() != idle:
		panic("dispatcher: Handle is called before Run")
	}
	d.pool.Handle(job.DefaultNamespace, topic, handlers.New(f, d.log))
	d.handled = append(d.handled, topic)
}

// setAllHandled sets how the topics with handlers are delivered. It tries again until ctx ends.
func (d *Dispatcher) setAllHandled(ctx context.Context) {
	var pause store.Backoff
	for _, topic := range d.handled {
		for {
			err := d.setHandled(ctx, topic)
			if err == nil || ctx.Err() != nil {
				break
			}
			d.log.Log(ctx, pause.Level(), "setting how a topic is delivered failed, retrying", "topic", topic, "err", err)
			pause.Wait(ctx)
		}
	}
}

// setHandled sets how a topic with a handler is delivered.
func (d *Dispatcher) setHandled(ctx context.Context, topic string) error {
	_, err := d.ChangeTopic(ctx, job.DefaultNamespace, topic, 0, func(p *policy.Topic) error {
		if p.Deliver == policy.DeliverHandler {
			return errNoChange
		}
		p.Deliver = policy.DeliverHandler
		return nil
	})
	return err
}

// handles reports whether this program handles the jobs of a topic.
func (d *Dispatcher) handles(namespace, topic string) bool {
	return d.pool != nil && d.pool.Handles(namespace, topic)
}

// Close ends Run, as the end of its context does, and returns when it has ended. Run cannot be called after it. The store stays
// open.
func (d *Dispatcher) Close() {
	d.closing.Do(func() { close(d.quit) })
	if d.state.CompareAndSwap(idle, stopping) {
		close(d.ended)
	}
	<-d.ended
}
