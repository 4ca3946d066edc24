package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Retry returns the error of a handler whose job is due again after a wait, of up to 30 days, instead of the ladder's;
// zero: at once. It costs a retry. It may be wrapped, to say why.
func Retry(after time.Duration) error { return &RetryError{After: after} }

// Dead returns the error of a handler whose job is dead, whatever retries it has left. It may be wrapped.
func Dead(reason string) error { return &DeadError{Err: errors.New(reason)} }

// Handle has the jobs of a topic in job.DefaultNamespace handled by a function of this program. Run, and registrations
// here, set the topic's deliver to policy.DeliverHandler, and Run sets it again within a minute when it is changed.
// Handle is called before Run, also while jobs are registered, and panics if it is not, or if the topic is invalid or
// has a handler.
func (d *Dispatcher) Handle(topic string, f HandlerFunc) {
	d.handling.Lock()
	defer d.handling.Unlock()
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
	d.pool.Handle(job.DefaultNamespace, topic, newHandler(f, d.log))
	d.handled = append(d.handled, topic)
}

const (
	// setHandledTimeout bounds the time for which Run waits until the topics with handlers are set.
	setHandledTimeout = 2 * time.Second
	// checkHandledInterval is how often Run looks whether they are still set.
	checkHandledInterval = time.Minute
)

// setHandledFirst sets how the topics with handlers are delivered before anything is claimed, unless the store takes
// too long: then keepHandled logs it, and goes on trying.
func (d *Dispatcher) setHandledFirst(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, setHandledTimeout)
	defer cancel()
	_ = d.setAllHandled(limited)
}

// keepHandled sets how the topics with handlers are delivered, again when somebody has changed it, until ctx ends.
func (d *Dispatcher) keepHandled(ctx context.Context) {
	var pause store.Backoff
	for {
		wait := checkHandledInterval
		if err := d.setAllHandled(ctx); err != nil && ctx.Err() == nil {
			d.log.Log(ctx, pause.Level(),
				"setting topics to be delivered by their handlers failed, retrying", "err", err)
			wait = pause.Next()
		} else {
			pause.Reset()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// setAllHandled sets how the topics with handlers are delivered, all that it can. The policies are read once.
func (d *Dispatcher) setAllHandled(ctx context.Context) error {
	set, err := d.policies.Reload(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, topic := range d.handled {
		if t := set.Get(job.DefaultNamespace, topic); t != nil && t.Stored.Policy.Deliver == policy.DeliverHandler {
			continue
		}
		if err := d.setHandled(ctx, topic); err != nil {
			errs = append(errs, fmt.Errorf("topic %s: %w", topic, err))
		}
	}
	return errors.Join(errs...)
}

// setHandled sets how a topic with a handler is delivered.
func (d *Dispatcher) setHandled(ctx context.Context, topic string) error {
	var was policy.Deliver
	put, err := d.ChangeTopic(ctx, job.DefaultNamespace, topic, store.ChangeOptions{}, func(p *policy.Topic) error {
		if was = p.Deliver; was == policy.DeliverHandler {
			return errNoChange
		}
		p.Deliver = policy.DeliverHandler
		return nil
	})
	if err == nil && was != policy.DeliverHandler {
		d.log.Info("topic set to be delivered by its handler", "topic", topic, "was", cmp.Or(was, policy.DeliverPush),
			"revision", put.Revision)
	}
	return err
}

// handles reports whether this program handles the jobs of a topic.
func (d *Dispatcher) handles(namespace, topic string) bool {
	return d.pool != nil && d.pool.Handles(namespace, topic)
}

// Close ends Run, as the end of its context does, and returns when it has ended. Run cannot be called after it. The
// store stays open.
func (d *Dispatcher) Close() {
	d.closing.Do(func() { close(d.quit) })
	if d.state.CompareAndSwap(idle, stopping) {
		close(d.ended)
	}
	<-d.ended
}
