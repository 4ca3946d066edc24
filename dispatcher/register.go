package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Register registers jobs and returns one result per job, in order. A refused job does not affect the others. The jobs
// must have passed job.Validate; checks that depend on topics, options and the current time are made here. A job
// without an id gets one; a job without a lane gets its URL's host and port.
//
// Errors are *job.InvalidError, *job.UndeclaredTopicError, *job.TakenError, and store.ErrUnavailable (by errors.Is):
// then it is unknown whether the job was registered.
func (d *Dispatcher) Register(ctx context.Context, jobs []job.New) []store.RoutedResult {
	results := make([]store.RoutedResult, len(jobs))
	newJobs := make([]store.NewJob, 0, len(jobs))
	at := make([]int, 0, len(jobs))
	now := time.Now()
	topics := d.newLookup()
	topics.lanes, topics.lanesErr = d.laneURLs(ctx, topics, jobs, unknown)
	expired := d.expired(ctx, jobs, now)
	for i := range jobs {
		if err := expired[i]; err != nil {
			results[i].Err = err
			continue
		}
		newJob, err := d.prepare(ctx, topics, jobs[i], now)
		if err != nil {
			results[i].Err = err
			continue
		}
		newJobs, at = append(newJobs, newJob), append(at, i)
	}
	newJobs, at, inserted := d.insert(ctx, newJobs, at, results)
	for k, r := range inserted {
		switch {
		case r.Err != nil:
		case r.Outcome == store.Existing:
			known := []job.Job{r.Job}
			d.setCallbackIDs(ctx, known)
			r.Job = known[0]
		case r.Outcome == store.Conflict:
			r.Err = d.takenError(&jobs[at[k]], &newJobs[k].New, &r.Job)
		}
		r.Job.Spec = d.sealer.VisibleSpec(r.Job.Spec)
		results[at[k]] = r
	}
	if d.opts.Tracer != nil {
		d.opts.Tracer.Registered(ctx, results)
	}
	return results
}

// insert inserts jobs within the quotas of their namespaces, and sets the results of those beyond, which at has the
// places of. It returns the others, with their places, and what was inserted.
func (d *Dispatcher) insert(
	ctx context.Context, jobs []store.NewJob, at []int, results []store.RoutedResult,
) (left []store.NewJob, leftAt []int, inserted []store.RoutedResult) {
	reservations, over := d.quotas.Reserve(ctx, jobs)
	if len(over) > 0 {
		jobs, at = leaveOut(jobs, at, over, results)
	}
	inserted = d.store.Insert(ctx, jobs)
	for _, r := range reservations {
		r.Release(jobs, inserted)
	}
	for k, r := range inserted {
		results[at[k]] = r
	}
	return jobs, at, inserted
}

// leaveOut removes the jobs with an error from a registration, and sets their results.
func leaveOut(
	jobs []store.NewJob, at []int, errs map[int]error, results []store.RoutedResult,
) (left []store.NewJob, leftAt []int) {
	left, leftAt = jobs[:0], at[:0]
	for k := range jobs {
		if err := errs[k]; err != nil {
			results[at[k]].Err = err
			continue
		}
		left, leftAt = append(left, jobs[k]), append(leftAt, at[k])
	}
	return left, leftAt
}

// expired returns an error for each job that would expire before it is due, by index. Jobs with a known id have none:
// they may have been registered in time, and the store decides whether this is the same request.
func (d *Dispatcher) expired(ctx context.Context, jobs []job.New, now time.Time) map[int]error {
	var errs map[int]error
	var refs []job.Ref
	var at []int
	for i := range jobs {
		faults := job.ValidateExpiry(&jobs[i], now)
		if len(faults) == 0 {
			continue
		}
		if errs == nil {
			errs = make(map[int]error)
		}
		errs[i] = &job.InvalidError{Errors: faults}
		if id := jobs[i].ID; id != "" {
			refs = append(refs, job.Ref{Namespace: cmp.Or(jobs[i].Namespace, job.DefaultNamespace), ID: id})
			at = append(at, i)
		}
	}
	known, err := d.store.KnownOnAny(ctx, refs)
	for k, i := range at {
		switch {
		case err != nil:
			errs[i] = err
		case known[k]:
			delete(errs, i)
		}
	}
	return errs
}

// prepare returns the job to insert for a registration.
func (d *Dispatcher) prepare(ctx context.Context, topics *lookup, n job.New, now time.Time) (store.NewJob, error) {
	newJob := store.NewJob{New: n}
	if n.BodyKind == job.BodyNone && len(n.Body) > 0 { // the API could not show it
		return store.NewJob{}, invalid("/body", "needs a BodyKind: job.BodyJSON, job.BodyText or job.BodyBase64")
	}
	if n.ID != "" {
		newJob.Fingerprint = codec.Fingerprint(&n)
	}
	topicURL, err := d.admit(ctx, topics, &newJob.New)
	if err != nil {
		return store.NewJob{}, err
	}
	newJob.Header, err = d.sealer.SealJobHeaders(newJob.Header, func() (laneURL string, err error) {
		if newJob.URL == "" {
			laneURL, err = topics.laneURL(newJob.Queue)
		}
		return cmp.Or(newJob.URL, laneURL, topicURL), err
	})
	if err != nil {
		return store.NewJob{}, err
	}
	if d.opts.Tracer != nil { // after the fingerprint: a repetition has another trace
		newJob.Header = d.opts.Tracer.Carry(ctx, newJob.Header)
	}
	d.sealer.SealCallbacks(&newJob.OnDelivered, &newJob.OnDead)
	newJob.MaxAge = d.policies.Resolve(ctx, newJob.Namespace, newJob.Topic).MaxAge
	if newJob.ID == "" {
		newJob.ID = job.NewID(now, d.store.ShardOf(newJob.Queue))
	}
	return newJob, nil
}

// admit checks a registration against its topic and sets defaults. It returns the topic's URL if the job has none.
func (d *Dispatcher) admit(ctx context.Context, topics *lookup, n *job.New) (topicURL string, err error) {
	if n.Namespace == "" {
		n.Namespace = job.DefaultNamespace
	}
	if n.Topic == "" {
		n.Topic = job.DefaultTopic
	}
	if n.Method == "" {
		n.Method = "POST"
	}
	needsURL, handled := true, d.handles(n.Namespace, n.Topic)
	if d.opts.Declared || n.URL == "" || handled {
		topic, ok, err := topics.Find(ctx, n.Namespace, n.Topic)
		if err != nil {
			return "", fmt.Errorf("look up topic %s: %w", n.Topic, err)
		}
		if !ok && d.opts.Declared {
			return "", &job.UndeclaredTopicError{Topic: n.Topic}
		}
		if handled && topic.Policy.Deliver != policy.DeliverHandler {
			// No process may push the job. While the policy is not readable, its topic is held.
			if err := d.setHandled(ctx, n.Topic); err != nil && !errors.Is(err, store.ErrUnreadable) {
				return "", err
			}
			topics.Reset()
			topic.Policy.Deliver = policy.DeliverHandler
		}
		topicURL, needsURL = topic.Policy.URL, topic.Policy.Deliver.Pushes()
	}
	if n.URL == "" && topicURL == "" && needsURL {
		if topicURL, err = requireURL(ctx, topics, n); err != nil {
			return "", err
		}
	}
	if n.URL != "" {
		if err := d.checkURL("/url", n.URL); err != nil {
			return "", err
		}
	}
	if err := d.checkCallbacks(n.OnDelivered, n.OnDead); err != nil {
		return "", err
	}
	if n.Lane == "" {
		n.Lane = laneOf(cmp.Or(n.URL, topicURL))
	}
	return topicURL, nil
}

// requireURL checks that a job without a URL, whose topic has none in the cache, needs none or gets that of its lane,
// or of its topic, which it returns: another process may have changed the policy.
func requireURL(ctx context.Context, topics *lookup, n *job.New) (topicURL string, err error) {
	if laneURL, err := topics.laneURL(n.Queue); err != nil || laneURL != "" {
		return "", err
	}
	topic, err := topics.FindNow(ctx, n.Namespace, n.Topic)
	switch {
	case err != nil:
		return "", fmt.Errorf("look up topic %s: %w", n.Topic, err)
	case topic.Unreadable: // it may have a URL, or need none
		return "", fmt.Errorf("look up topic %s: %w", n.Topic, store.ErrUnreadable)
	case topic.Policy.URL == "" && topic.Policy.Deliver.Pushes():
		return "", invalid("/url", "is required: neither the topic "+n.Topic+
			" nor the lane has a url, and the topic is not delivered by pull or handler")
	}
	return topic.Policy.URL, nil
}

// checkCallbacks checks the URLs of callbacks with the guard.
func (d *Dispatcher) checkCallbacks(onDelivered, onDead *policy.Callback) error {
	if onDelivered != nil && !onDelivered.Off {
		if err := d.checkURL("/on_delivered/url", onDelivered.URL); err != nil {
			return err
		}
	}
	if onDead != nil && !onDead.Off {
		return d.checkURL("/on_dead/url", onDead.URL)
	}
	return nil
}

// checkURL checks a URL with the guard.
func (d *Dispatcher) checkURL(field, target string) error {
	if d.opts.CheckURL == nil {
		return nil
	}
	if err := d.opts.CheckURL(target); err != nil {
		return invalid(field, err.Error())
	}
	return nil
}

// laneURLs reads the URLs of the lanes of jobs without one, in one call: for jobs that need the URL of their lane, and
// for jobs with secret headers.
func (d *Dispatcher) laneURLs(
	ctx context.Context, topics *lookup, jobs []job.New, known func(job.Queue) (string, bool),
) (map[job.Queue]string, error) {
	var queues []job.Queue
	urls := make(map[job.Queue]string)
	for _, n := range jobs {
		secret := n.URL == "" && secrets.HasPlain(n.Header)
		if n.URL != "" || n.Lane == "" && !secret {
			continue
		}
		q := job.Queue{
			Namespace: cmp.Or(n.Namespace, job.DefaultNamespace),
			Topic:     cmp.Or(n.Topic, job.DefaultTopic), Lane: n.Lane,
		}
		topic, _, err := topics.Find(ctx, q.Namespace, q.Topic)
		if err != nil {
			return nil, err
		}
		q.Lane = cmp.Or(q.Lane, laneOf(topic.Policy.URL))
		if _, asked := urls[q]; asked {
			continue
		}
		if topic.Policy.URL == "" && topic.Policy.Deliver.Pushes() || secret {
			url, ok := known(q)
			if urls[q] = url; !ok {
				queues = append(queues, q)
			}
		}
	}
	if len(queues) == 0 {
		return urls, nil
	}
	lanes, err := d.store.GetLanes(ctx, queues)
	if err != nil {
		return nil, err
	}
	for _, l := range lanes {
		urls[l.Queue] = l.Settings.URL
	}
	return urls, nil
}

// unknown is for registrations by clients: the settings of their lanes are read.
func unknown(job.Queue) (string, bool) { return "", false }

func invalid(field, detail string) error {
	return &job.InvalidError{Errors: []job.FieldError{{Field: field, Detail: detail}}}
}
