package keeper

import (
	"context"
	"sync"
	"time"

	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

// Redis's clock is a wall clock, which can be set. Due times follow it. All other scores (lease deadlines, repeated
// wake-ups, cooldowns, rate windows) stand for durations, so they must be moved when the clock is set. In each round a
// carrier compares Redis's clock with its own monotonic clock, and with the reading that the previous carrier stored.
// When it detects a step, it sets the agenda aside, and each following round moves the scores of some queues.

// A clockReading is a time of Redis's clock, read between two moments of the process's monotonic clock.
type clockReading struct {
	now          int64 // milliseconds
	began, ended time.Duration
}

// A clockStep is a change of the clock by some ms; 0: none. Times before from were read from the old clock, and so were
// future times of past events.
type clockStep struct {
	by, from int64
}

const (
	// noteInterval is how often a carrier stores its reading for the next carrier.
	noteInterval = time.Second
	// minStep is the smallest step that is detected. The time that the readings took is added, and a tenth of the time
	// between them, for clocks that are slewed.
	minStep = 500 * time.Millisecond
	// rescoreLeases is about how many leases one script moves.
	rescoreLeases = 1024
)

// A stepDetector compares readings of a shard's clock.
type stepDetector struct {
	mu      sync.Mutex
	known   bool
	last    clockReading
	noted   time.Duration // when a reading was stored last
	mine    bool          // this process stored it
	pending int64         // a step that was not reported yet
}

// shouldStore reports whether it is time to store a reading.
func (w *stepDetector) shouldStore(now time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.mine || now-w.noted >= noteInterval
}

// detect compares a reading with the previous one: the process's own, or the one that another process stored if that
// carried the shard meanwhile. It returns the same step until setStep is called.
func (w *stepDetector) detect(r clockReading, noted int64, mine bool) clockStep {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !mine || !w.known {
		w.known, w.last, w.mine = true, r, mine
		if back := r.now - noted; !mine && back < -minStep.Milliseconds() {
			return clockStep{by: back} // Time least: how long ago the reading was noted is not known
		}
		return clockStep{}
	}
	w.mine = true
	passed, longest := r.now-w.last.now, (r.ended-w.last.began).Milliseconds()+2
	low, high := passed-longest, passed-(r.began-w.last.ended).Milliseconds()+1
	allowed := minStep.Milliseconds() + longest/10
	switch {
	case low > allowed:
		return clockStep{by: high, from: w.last.now + longest}
	case high < -allowed:
		return clockStep{by: high, from: w.last.now + low}
	}
	w.last = r
	return clockStep{}
}

// setStep records a step, and continues from the reading that showed it.
func (w *stepDetector) setStep(r clockReading, by int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known, w.last, w.mine, w.noted = true, r, true, r.began
	w.pending += by
}

// stored records that a reading was stored.
func (w *stepDetector) stored(now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = now
}

// report returns the steps since the last report.
func (w *stepDetector) report() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	by := w.pending
	w.pending = 0
	return time.Duration(by) * time.Millisecond
}

// A clockState is the part of agenda.lua's reply about the clock.
type clockState struct {
	noted int64
	by    string
	epoch string
	stale []string // queues that are to be rescored, some of them
}

// A clockPhase is the outcome of a round.
type clockPhase int

const (
	clockSteady clockPhase = iota
	// clockStepped: what was scored before has been set aside in this round.
	clockStepped
	// clockRescoring: some of it has been rescored, and more is left; clockRescored: all of it has been.
	clockRescoring
	clockRescored
)

// pending reports whether queues are left to be rescored.
func (c clockPhase) pending() bool { return c == clockStepped || c == clockRescoring }

// followClock detects a step of the clock, or rescores some of the queues that were scored before the last step. The
// next step is detected when all are rescored.
func (s *Keeper) followClock(ctx context.Context, r clockReading, answer clockState) (clockPhase, error) {
	phase, err := s.clockPhase(ctx, r, answer)
	if err == nil {
		s.Rescoring.Store(phase.pending())
	}
	return phase, err
}

func (s *Keeper) clockPhase(ctx context.Context, r clockReading, answer clockState) (clockPhase, error) {
	if len(answer.stale) > 0 {
		return s.rescore(ctx, answer.stale)
	}
	step := s.clock.detect(r, answer.noted, answer.by == s.process.id)
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
	if layout.Num(begun) != 1 { // another carrier was first, or this call was sent twice
		step.by = 0
	}
	s.clock.setStep(r, step.by)
	return clockStepped, nil
}

// rescore moves queues' scores by the last step of the clock.
func (s *Keeper) rescore(ctx context.Context, numbers []string) (clockPhase, error) {
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
	if layout.Num(left) > 0 {
		return clockRescoring, err
	}
	return clockRescored, err
}
