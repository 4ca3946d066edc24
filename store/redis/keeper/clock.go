package keeper

import (
	"context"
	"sync"
	"time"

	"github.com/ringback/ringback/store/redis/script"
	"github.com/ringback/ringback/store/redis/shard"
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
	// NoteInterval is how often a carrier notes its reading, for the one after it.
	NoteInterval = time.Second
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
}

// notes tells whether it is time to note a reading.
func (w *clockWatch) notes(now time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.mine || now-w.noted >= NoteInterval
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
func (s *Keeper) followClock(ctx context.Context, r reading, answer clockAnswer) (clockState, error) {
	state, err := s.clockState(ctx, r, answer)
	if err == nil {
		s.Rescoring.Store(state.pending())
	}
	return state, err
}

func (s *Keeper) clockState(ctx context.Context, r reading, answer clockAnswer) (clockState, error) {
	if len(answer.stale) > 0 {
		return s.rescore(ctx, answer.stale)
	}
	step := s.clock.observe(r, answer.noted, answer.by == s.process.id)
	if step.by == 0 {
		return clockSteady, nil
	}
	c := s.NewCall(scriptStep, s.Keys.Reply("", ""), nil, nil, 4)
	c.Keys = append(c.Keys, s.Keys.Clock, s.Keys.StaleAgenda, s.Keys.StaleThrottles)
	c.Add(answer.epoch, s.process.id, step.by, step.from)
	begun, err := s.Run(ctx, c)
	if err != nil {
		return clockSteady, err
	}
	if script.Num(begun) != 1 { // another carrier was first, or this call was sent twice
		step.by = 0
	}
	s.clock.stepped(r, step.by)
	return clockStepped, nil
}

// rescore moves what queues have along with the last step of the clock.
func (s *Keeper) rescore(ctx context.Context, numbers []string) (clockState, error) {
	queues, unknown, err := s.FindByNumber(ctx, numbers)
	if err != nil {
		return clockSteady, err
	}
	c := s.NewCall(scriptRescore, s.Keys.Reply("", ""), shard.Distinct(queues), nil, 1+len(unknown))
	c.Keys = append(c.Keys, s.Keys.Clock, s.Keys.StaleAgenda, s.Keys.StaleThrottles)
	c.Add(rescoreLeases)
	for _, number := range unknown {
		c.Add(number)
	}
	left, err := s.Run(ctx, c)
	if script.Num(left) > 0 {
		return clockRescoring, err
	}
	return clockRescored, err
}
