package dispatcher

import (
	"context"
	"errors"
	"time"

	"github.com/ringback/ringback/dispatcher/events"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// eventsAtOnce is how many events of a topic are expanded in one exchange with the store.
const eventsAtOnce = 64

// newEvents returns the events of the store.
func (d *Dispatcher) newEvents() *events.Service {
	return &events.Service{
		Jobs: d.store, Registrar: registrar{d},
		Subscriptions: events.NewSubscriptions(d.opts.Store.Shards(), d.log), Observe: d.opts.ObserveEvent,
	}
}

// InsertJobs registers internal jobs within the quotas of their namespaces.
func (r registrar) InsertJobs(ctx context.Context, jobs []store.NewJob) []store.RoutedResult {
	results, at := make([]store.RoutedResult, len(jobs)), make([]int, len(jobs))
	for i := range at {
		at[i] = i
	}
	r.d.insert(ctx, jobs, at, results)
	return results
}

// Seal seals the secret headers of a job's callbacks.
func (r registrar) Seal(n *job.New) { r.d.sealer.SealCallbacks(&n.OnDelivered, &n.OnDead) }

// SendEvents registers events of a namespace, and returns a result for each. Their jobs must have passed job.Validate.
// actor is the name of the client. Errors: *job.InvalidError, *job.UndeclaredTopicError, *job.TakenError,
// *job.QuotaError, store.ErrUnavailable.
func (d *Dispatcher) SendEvents(
	ctx context.Context, namespace, actor string, all []store.EventSpec,
) []store.SentEvent {
	results := make([]store.SentEvent, len(all))
	good, at := make([]store.EventSpec, 0, len(all)), make([]int, 0, len(all))
	topics := d.newLookup()
	if len(all) > 0 {
		d.keepEvents(ctx, namespace)
	}
	for i, e := range all {
		if results[i].Err = d.checkEvent(ctx, topics, namespace, &e); results[i].Err == nil {
			good, at = append(good, e), append(at, i)
		}
	}
	for k, sent := range d.events.Send(ctx, namespace, actor, good) {
		results[at[k]] = sent
	}
	return results
}

// eventRetention is how long the events of a namespace are kept, unless the policy of their topic says otherwise:
// longer than delivered jobs, so that they can be sent again when their jobs have died.
var eventRetention = policy.Retention{
	For: new(7 * 24 * time.Hour), Max: new(int64(100_000)), MaxBytes: new(int64(256 << 20)),
}

// keepEvents sets the retention of a namespace's events, with the first that this process sends.
func (d *Dispatcher) keepEvents(ctx context.Context, namespace string) {
	if _, known := d.eventsKept.Load(namespace); known {
		return
	}
	_, err := d.ChangeTopic(ctx, namespace, job.EventTopic, store.ChangeOptions{}, func(t *policy.Topic) error {
		if t.KeepDelivered != (policy.Retention{}) {
			return errNoChange
		}
		t.KeepDelivered = eventRetention
		return nil
	})
	if err != nil {
		d.log.Warn("the retention of events is not set: they are kept as delivered jobs are", "namespace", namespace,
			"err", err)
	}
	if errors.Is(err, store.ErrUnavailable) { // the next event tries again
		return
	}
	d.eventsKept.Store(namespace, nil)
}

// checkEvent checks an event, and completes it.
func (d *Dispatcher) checkEvent(ctx context.Context, topics *lookup, namespace string, e *store.EventSpec) error {
	if e.Job.Topic == "" {
		e.Job.Topic = job.DefaultTopic
	}
	if d.opts.Declared {
		_, found, err := topics.Find(ctx, namespace, e.Job.Topic)
		if err != nil {
			return err
		}
		if !found {
			return &job.UndeclaredTopicError{Topic: e.Job.Topic}
		}
	}
	faults := job.ValidateExpiry(&e.Job, time.Now())
	if len(faults) > 0 && (e.ID == "" || !d.events.IsKnown(ctx, namespace, e)) {
		return &job.InvalidError{Errors: faults}
	}
	return d.checkCallbacks(e.Job.OnDelivered, e.Job.OnDead)
}

// PreviewEvent returns an event as it would be sent now. Errors as for SendEvents.
func (d *Dispatcher) PreviewEvent(
	ctx context.Context, namespace, actor string, e store.EventSpec,
) (store.Event, error) {
	if err := d.checkEvent(ctx, d.newLookup(), namespace, &e); err != nil {
		return store.Event{}, err
	}
	return d.events.Preview(ctx, namespace, actor, e)
}

// ListEvents returns a page of the events that shown selects, in the order of the filter, whose topic is theirs. The
// page has no Jobs.
func (d *Dispatcher) ListEvents(
	ctx context.Context, filter store.Filter, shown func(*store.Event) bool,
) ([]store.Event, store.Page, error) {
	return d.events.List(ctx, filter, shown)
}

// Event returns an event with the states of its jobs. Error: store.ErrNotFound.
func (d *Dispatcher) Event(ctx context.Context, namespace, id string) (store.Event, error) {
	return d.events.Get(ctx, namespace, id)
}

// maxAwaited is up to how many jobs of an event WaitForEvent waits for.
const maxAwaited = 100

// WaitForEvent returns an event as Event does once all its jobs have ended, or after limit, or when the process stops.
// It returns one with more than 100 jobs at once.
func (d *Dispatcher) WaitForEvent(
	ctx context.Context, namespace, id string, limit time.Duration,
) (store.Event, error) {
	until := time.Now().Add(limit)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		e, err := d.Event(ctx, namespace, id)
		if err != nil || e.Jobs > maxAwaited || e.Expanded && e.Counts.Waiting == 0 || !time.Now().Before(until) {
			return e, err
		}
		for i := 0; e.Expanded && i < len(e.Lanes); i++ {
			var j job.Job
			j.Namespace, j.ID = namespace, e.Lanes[i].JobID
			_, err := d.WaitForEnd(ctx, j, time.Until(until))
			if errors.Is(err, store.ErrNotFound) {
				break // it is not registered yet
			}
			if err != nil {
				return e, err
			}
		}
		select {
		case <-d.ends.stopped:
			return e, nil
		case <-ctx.Done():
			return e, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// testTime is how long the job of TestLane may wait, such as for the end of a pause.
const testTime = time.Minute

// TestLane registers the job of an event for one lane, whatever it subscribes to, to be attempted once. Errors are in
// the result, as for Register.
func (d *Dispatcher) TestLane(ctx context.Context, q job.Queue, eventType, actor string) store.RoutedResult {
	event := "test-" + job.NewID(time.Now(), d.store.ShardOf(q))
	return d.Register(ctx, []job.New{{Spec: job.Spec{
		ID: job.EventJobID(event, q.Topic, q.Lane), Queue: q, CreatedBy: actor, Terms: policy.Terms{
			Retries: new(0), OnDelivered: &policy.Callback{Off: true}, OnDead: &policy.Callback{Off: true},
		},
		Labels: map[string]string{job.LabelEvent: eventType}, BodyKind: job.BodyJSON, Body: []byte(`{"test": true}`),
	}, ExpiresIn: testTime}})[0]
}
