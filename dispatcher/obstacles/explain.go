package obstacles

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Explain returns what applies to an unfinished job now, and what it waits for; nil if the job has ended or the store
// does not return its settings. It never fails: what cannot be read is left out, and logged.
//
// It makes three calls of the store at a time, and for a topic with a rate one more. In a process that does not deliver
// it makes one more for each shard, for a due job that nothing else keeps from running.
func (f *Finder) Explain(ctx context.Context, j *job.Job) *job.Explanation {
	if j.State.Ended() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	x := explanation{
		Finder: f, subject: subject{queue: j.Queue, names: namesOf(j.Queue)}, job: j,
	}
	err := x.read(limited)
	if err != nil {
		f.warn(ctx, "explaining a job failed, answering without", j, err)
		return nil
	}
	explained := &job.Explanation{Effective: x.effective()}
	if j.State == job.Running {
		return explained
	}
	if explained.WaitingFor, err = x.waitingFor(limited); err != nil {
		f.warn(ctx, "explaining what a job waits for failed, answering without", j, err)
	}
	return explained
}

// warn logs an error, unless it is that of a caller who has left.
func (f *Finder) warn(ctx context.Context, message string, j *job.Job, err error) {
	if ctx.Err() == nil {
		f.log.Warn(message, "job", j.ID, "err", err)
	}
}

// explanation is what is known of one job.
type explanation struct {
	*Finder
	subject

	job   *job.Job
	terms policy.Terms
	state store.QueueState
	// stateErr is the error of reading state.
	stateErr error
}

// read reads the job's settings and, unless it is running, the state of its queue.
func (x *explanation) read(ctx context.Context) error {
	var reads sync.WaitGroup
	var topicErr, laneErr error
	reads.Go(func() { x.topic, topicErr = x.opts.Policies.Current(ctx, x.job.Namespace, x.job.Topic) })
	reads.Go(func() { x.settings, laneErr = x.settingsOf(ctx, x.queue) })
	if x.job.State != job.Running {
		reads.Go(func() { x.state, x.stateErr = x.opts.Store.QueueState(ctx, x.job.Queue) })
	}
	reads.Wait()
	if err := errors.Join(topicErr, laneErr); err != nil {
		return err
	}
	x.terms = x.topic.Resolved.Terms(x.job.Terms)
	return nil
}

// settingsOf returns the settings of a lane.
func (f *Finder) settingsOf(ctx context.Context, q job.Queue) (store.Lane, error) {
	lanes, err := f.opts.Store.GetLanes(ctx, []job.Queue{q})
	if err != nil {
		return store.Lane{}, err
	}
	return lanes[0], nil
}

// effective returns the settings of the next attempt; nil if they are not readable.
func (x *explanation) effective() *job.Effective {
	if x.topic.Stored.Unreadable || x.settings.Unreadable {
		return nil
	}
	return &job.Effective{
		URL: x.url(), Terms: x.terms, RetriesLeft: max(0, *x.terms.Retries-x.job.FailedAttempts),
	}
}

// url returns the URL of the next attempt; empty: none.
func (x *explanation) url() string {
	return cmp.Or(x.job.URL, x.settings.Settings.URL, x.topic.Resolved.URL)
}
