package redis

import (
	"context"
	"sync"
	"time"

	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// Redis's clock is the wall's, which can be set. Due times follow it. Everything else that is scored by it (lease
// deadlines, repeated rings, holds, rate windows) means a length of time, so it must be moved when the clock is. A carrier
// compares Redis's clock with its own monotonic one from round to round, and with the reading that the carrier before it
// noted. When it finds a step it has the agenda set aside, and each queue on it scored anew, a portion a round.

// A reading is Redis's clock, read between two moments of the process's monotonic one.
type reading struct {
	now          int64 // milliseconds
	began, ended time.Duration
}

// A clockStep is how far the clock was set, in milliseconds, zero: not at all. Moments before from are surely the old
// clock's; so are those in the future, if they name something that has happened.
type clockStep struct {
	by, from int64
}

const (
	// noteEvery is how often a carrier notes its reading, for the one after it.
	noteEvery = time.Second
	// leastStep is the shortest step that is one: beside it come the time that the readings took, and a tenth of that
	// between them, which allows for clocks that are slewed.
	leastStep = 500 * time.Millisecond
	// rescoreLeases is how many leases one script moves, about.
	rescoreLeases = 1024
)

// A clockWatch is what a process knows of a shard's clock.
type clockWatch struct {
	mu      sync.Mutex
	known   bool
	last    reading
	noted   time.Duration // when the reading was noted last
	mine    bool          // by this process
	pending int64         // a step that no round has reported yet
	state   clockState    // of the last round
}

// rescoring tells whether queues are left to be rescored, as far as this process knows.
func (w *clockWatch) rescoring() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.pending()
}

// notes tells whether it is time to note a reading.
func (w *clockWatch) notes(now time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.mine || now-w.noted >= noteEvery
}

// observe compares a reading with the one before: the process's own, or, where another process carried the shard
// meanwhile, the one that this had noted. A step is found again until stepped is called.
func (w *clockWatch) observe(r reading, noted int64, mine bool) clockStep {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !mine || !w.known {
		w.known, w.last, w.mine = true, r, mine
		if back := r.now - noted; !mine && back < -leastStep.Milliseconds() {
			return clockStep{by: back} // Time least: how long ago the reading was noted is not known
		}
		return clockStep{}
	}
	w.mine = true
	passed, longest := r.now-w.last.now, (r.ended-w.last.began).Milliseconds()+2
	low, high := passed-longest, passed-(r.began-w.last.ended).Milliseconds()+1
	allowed := leastStep.Milliseconds() + longest/10
	switch {
	case low > allowed:
		return clockStep{by: high, from: w.last.now + longest}
	case high < -allowed:
		return clockStep{by: high, from: w.last.now + low}
	}
	w.last = r
	return clockStep{}
}

// stepped begins anew with the reading that showed a step.
func (w *clockWatch) stepped(r reading, by int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known, w.last, w.mine, w.noted = true, r, true, r.began
	w.pending += by
}

// wrote notes that a reading was noted.
func (w *clockWatch) wrote(now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = now
}

// report is the step that was found since the last report.
func (w *clockWatch) report() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	by := w.pending
	w.pending = 0
	return time.Duration(by) * time.Millisecond
}

// A clockAnswer is what the agenda's script tells of the clock.
type clockAnswer struct {
	noted int64
	by    string
	epoch string
	stale []string // queues that are to be rescored, some of them
}

// A clockState is what a round found of the clock.
type clockState int

const (
	clockSteady clockState = iota
	// clockStepped: what was scored before has been set aside in this round.
	clockStepped
	// clockRescoring: some of it has been rescored, and more is left; clockRescored: all of it has been.
	clockRescoring
	clockRescored
)

// pending tells whether queues are left to be rescored.
func (c clockState) pending() bool { return c == clockStepped || c == clockRescoring }

// followClock looks for a step of the clock, or rescores a portion of the queues that were scored before it. The clock is
// not looked at until all are: then its next step is found.
func (s *Store) followClock(ctx context.Context, sh *shard, r reading, answer clockAnswer) (clockState, error) {
	state, err := s.clockState(ctx, sh, r, answer)
	if err == nil {
		sh.watch.mu.Lock()
		sh.watch.state = state
		sh.watch.mu.Unlock()
	}
	return state, err
}

func (s *Store) clockState(ctx context.Context, sh *shard, r reading, answer clockAnswer) (clockState, error) {
	if len(answer.stale) > 0 {
		return s.rescore(ctx, sh, answer.stale)
	}
	step := sh.watch.observe(r, answer.noted, answer.by == s.me)
	if step.by == 0 {
		return clockSteady, nil
	}
	c := s.newCall(sh, scriptStep, sh.keys.Reply("", ""), nil, nil, 4)
	c.keys = append(c.keys, sh.keys.Clock, sh.keys.StaleAgenda, sh.keys.StaleThrottles)
	c.add(answer.epoch, s.me, step.by, step.from)
	begun, err := s.do(ctx, c)
	if err != nil {
		return clockSteady, err
	}
	if num(begun) != 1 { // another carrier was first, or this call was sent twice
		step.by = 0
	}
	sh.watch.stepped(r, step.by)
	return clockStepped, nil
}

// rescore moves what queues have along with the last step of the clock.
func (s *Store) rescore(ctx context.Context, sh *shard, numbers []string) (clockState, error) {
	queues, err := sh.named(ctx, s.client, numbers)
	if err != nil {
		return clockSteady, err
	}
	none := unnamed(numbers, queues)
	c := s.newCall(sh, scriptRescore, sh.keys.Reply("", ""), distinct(queues), nil, 1+len(none))
	c.keys = append(c.keys, sh.keys.Clock, sh.keys.StaleAgenda, sh.keys.StaleThrottles)
	c.add(rescoreLeases)
	for _, number := range none {
		c.add(number)
	}
	left, err := s.do(ctx, c)
	if num(left) > 0 {
		return clockRescoring, err
	}
	return clockRescored, err
}

// aheadBefore tells whether the clock was ahead of what it shows now: jobs that were due then may be ready though their
// moment is in the future.
func (s *Store) aheadBefore(ctx context.Context, sh *shard) (bool, error) {
	ahead, err := s.client.HGet(ctx, sh.keys.Clock, "ahead").Result()
	if connect.IsNil(err) {
		return false, nil
	}
	if err != nil {
		return false, connect.MapError(ctx, err)
	}
	server, err := s.client.Node(ctx, sh.keys.Clock) // a command without a key would go to any server of a cluster
	if err != nil {
		return false, connect.MapError(ctx, err)
	}
	now, err := server.Time(ctx).Result()
	if err != nil {
		return false, connect.MapError(ctx, err)
	}
	return layout.Int(ahead) > now.UnixMilli(), nil
}
