// Package explain finds out what keeps an unfinished job from running, and which settings its next attempt has.
//
// An Explainer only reads: the job's settings, the state of its queue and, where it matters, of its topic. It knows
// this process's pool, but not those of other processes, and reports only secrets that this process cannot open. An
// explanation is a snapshot, without a guarantee that its parts are of the same instant. It is safe for concurrent use.
package explain

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ringback/ringback/dispatcher/policies"
	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/internal/limitedlog"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// timeout bounds the calls of the store for an explanation: its caller has the job already.
const timeout = 2 * time.Second

// logInterval is the shortest interval of log lines about failed reads.
const logInterval = 10 * time.Second

// Options configures an Explainer.
type Options struct {
	Store    *router.Router
	Policies *policies.Cache
	Sealer   *secrets.Sealer
	// NoKey is set in a process that needs no key, because it does not deliver, and has none.
	NoKey bool
	// Pool is that of this process; nil: it does not deliver.
	Pool   *pool.Pool
	Logger *slog.Logger
}

// Explainer explains jobs.
type Explainer struct {
	opts Options
	log  limitedlog.Log
}

// New returns an Explainer.
func New(opts Options) *Explainer {
	return &Explainer{opts: opts, log: limitedlog.Log{Logger: opts.Logger, Interval: logInterval}}
}

// Explain returns what applies to an unfinished job now, and what it waits for; nil if the job has ended or the store
// does not return its settings. It never fails: what cannot be read is left out, and logged.
//
// It makes three calls of the store at a time, and for a topic with a rate one more. In a process that does not deliver
// it makes one more for each shard, for a due job that nothing else keeps from running.
func (e *Explainer) Explain(ctx context.Context, j *job.Job) *job.Explanation {
	if j.State.Ended() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	x := explanation{opts: &e.opts, job: j}
	err := x.read(limited)
	if err != nil {
		e.warn(ctx, "explaining a job failed, answering without", j, err)
		return nil
	}
	explained := &job.Explanation{Effective: x.effective()}
	if j.State == job.Running {
		return explained
	}
	if explained.WaitingFor, err = x.waitingFor(limited); err != nil {
		e.warn(ctx, "explaining what a job waits for failed, answering without", j, err)
	}
	return explained
}

// warn logs an error, unless it is that of a caller who has left.
func (e *Explainer) warn(ctx context.Context, message string, j *job.Job, err error) {
	if ctx.Err() == nil {
		e.log.Warn(message, "job", j.ID, "err", err)
	}
}

// explanation is what is known of one job.
type explanation struct {
	opts  *Options
	job   *job.Job
	topic *policies.Topic
	lane  store.Lane
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
	reads.Go(func() { x.lane, laneErr = x.readLane(ctx) })
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

func (x *explanation) readLane(ctx context.Context) (store.Lane, error) {
	lanes, err := x.opts.Store.GetLanes(ctx, []job.Queue{x.job.Queue})
	if err != nil {
		return store.Lane{}, err
	}
	return lanes[0], nil
}

// effective returns the settings of the next attempt; nil if they are not readable.
func (x *explanation) effective() *job.Effective {
	if x.topic.Stored.Unreadable || x.lane.Unreadable {
		return nil
	}
	return &job.Effective{
		URL: x.url(), Terms: x.terms, RetriesLeft: max(0, *x.terms.Retries-x.job.FailedAttempts),
	}
}

// url returns the URL of the next attempt; empty: none.
func (x *explanation) url() string {
	return cmp.Or(x.job.URL, x.lane.Settings.URL, x.topic.Resolved.URL)
}
