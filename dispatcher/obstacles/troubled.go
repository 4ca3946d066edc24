// Package obstacles finds out what keeps jobs from running: why an unfinished job waits, and which lanes of a namespace
// are in trouble: their receivers fail, or they hold jobs back. Each obstacle is found and put into words in one place,
// for both.
//
// A Finder only reads. It knows this process's pool, but not those of other processes, and reports only secrets that
// this process cannot open. What it returns is a snapshot, without a guarantee that its parts are of the same instant.
// It is safe for concurrent use.
//
// A search for lanes has a budget of lanes and of time, and looks first where it is most likely to find something: at
// lanes whose receivers fail, which the store lists, at topics with open breakers, at paused ones, then at those with
// the most due jobs. It reads counts and settings in batches. Only for the few lanes that are returned first it reads
// jobs.
//
// Calls of the store, each on all shards at once: one for the policies; one for the lanes that have health, up to two
// for settings of the failing ones, and one for each of up to settingsPage of these; one for the counts of each
// topicPage topics;
// for each lanePage lanes of a topic one for counts and up to two for settings; one for each of up to maxStates topics
// with a rate, and up to two for as many lanes with a rate or an order; one for each of up to maxStates paused lanes of
// a topic with more lanes than a page; and up to two for each of up to maxDetails lanes, of which one reads a job
// with its body. For a lane that the filter names: one for the policies, one for its state, up to two for its settings,
// one for the topic's rate, and one for the job that comes first.
//
// Known gaps: the order of the lanes within a topic is that of their names, so a topic with more lanes than the budget
// may have held ones that are not found. What keeps a single process from delivering, such as busy workers, is not a
// reason of a lane.
package obstacles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// The budget of a search.
const (
	// maxLanes is the number of lanes that are looked at, apart from the rest of the last pages.
	maxLanes = 2000
	// maxTime is the time after which no more lanes are looked at. Half of it is for the counts of topics.
	maxTime = 100 * time.Millisecond
	// timeout bounds the calls of the store that have begun by then, and the details; and those for a job.
	timeout = 2 * time.Second
	// maxStates is the number of lanes, and of topics, whose state is read one by one for their rate or order, and of
	// the paused lanes of a topic that are.
	maxStates = 20
	// maxDetails is the number of lanes with OldestDue and LastFailure.
	maxDetails = 20
)

// Sizes of calls. They bound memory: settings may be large, and jobs are read with their bodies.
const (
	topicPage    = 100
	lanePage     = 250
	settingsPage = 100
	atOnce       = 4
)

// logInterval is the shortest interval of log lines about failed reads.
const logInterval = 10 * time.Second

// Options configures a Finder.
type Options struct {
	Store    *router.Router
	Policies *documents.Policies
	Sealer   *secrets.Sealer
	// NoKey is set in a process that needs no key, because it does not deliver, and has none.
	NoKey bool
	// Pool is that of this process; nil: it does not deliver.
	Pool   *pool.Pool
	Logger *slog.Logger
}

// Finder finds obstacles.
type Finder struct {
	opts Options
	log  logs.Limited
}

// New returns a Finder.
func New(opts Options) *Finder {
	return &Finder{opts: opts, log: logs.Limited{Logger: opts.Logger, Interval: logInterval}}
}

// TroubledLanes returns the lanes that a filter selects and that are in trouble now. Details that cannot be read are
// left out, and logged.
func (f *Finder) TroubledLanes(ctx context.Context, filter store.TroubledFilter) (store.TroubledLanes, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	s := search{
		Finder: f, filter: filter, topicsUntil: began.Add(maxTime / 2),
		lanesUntil: began.Add(maxTime), exact: true,
	}
	if err := s.run(limited); err != nil {
		if ctx.Err() != nil || limited.Err() == nil {
			return store.TroubledLanes{}, fmt.Errorf("find lanes in trouble: %w", err)
		}
		s.exact = false // the store was too slow
	}
	s.found = slices.DeleteFunc(s.found, func(l *lane) bool {
		return !slices.ContainsFunc(l.Reasons,
			func(o job.Obstacle) bool { return filter.Code == "" || filter.Code == o.Code })
	})
	for _, l := range s.found {
		slices.SortStableFunc(l.Reasons,
			func(a, b job.Obstacle) int { return cmp.Compare(b.Code.Severity(), a.Code.Severity()) })
	}
	slices.SortFunc(s.found, compare)
	all := store.TroubledLanes{Total: len(s.found), LookedAt: s.lookedAt, Exact: s.exact}
	found := s.found[:min(len(s.found), filter.Limit)]
	_ = inParallel(found[:min(len(found), maxDetails)], func(l *lane) error {
		if err := s.readDetails(limited, l); err != nil && ctx.Err() == nil {
			f.log.Warn("reading the details of a lane in trouble failed, answering without", "topic", l.Queue.Topic,
				"lane", l.Queue.Lane, "err", err)
		}
		return nil
	})
	for _, l := range found {
		all.Lanes = append(all.Lanes, l.TroubledLane)
	}
	return all, nil
}

// inParallel calls do with each item, atOnce of them at a time, and returns all errors.
func inParallel[T any](items []T, do func(T) error) error {
	var all sync.WaitGroup
	room, errs := make(chan struct{}, atOnce), make([]error, len(items))
	for i, item := range items {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			errs[i] = do(item)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// compare orders lanes, the worst first: by severity, then by the jobs that wait.
func compare(a, b *lane) int {
	return cmp.Or(cmp.Compare(b.severity(), a.severity()), cmp.Compare(b.Ready, a.Ready),
		cmp.Compare(b.Scheduled, a.Scheduled),
		cmp.Compare(a.Queue.Topic, b.Queue.Topic), cmp.Compare(a.Queue.Lane, b.Queue.Lane))
}

// severity returns that of the lane's worst reason; zero: it has none yet.
func (l *lane) severity() (worst job.Severity) {
	for _, r := range l.Reasons {
		worst = max(worst, r.Code.Severity())
	}
	return worst
}
