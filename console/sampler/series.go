package sampler

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/capacity"
)

const (
	steps = int(History / Step)
	// minute are the steps whose lateness is kept.
	minute = int(time.Minute / Step)
	// maxLate bounds the lateness values of a step: the stream has at most 100 attempts a second.
	maxLate = 1000
	// grace is how long after a step's beginning the stream may begin for the step to be complete.
	grace = 500 * time.Millisecond
)

// verdicts are those of attempts, in the order of Samples.Verdicts.
var verdicts = [...]string{"delivered", "again", "dead", "cancelled", "released"}

// Indexes of verdicts. The counters know how many jobs were delivered. Only the stream knows which attempts failed:
// jobs that are dead may have expired without one.
const (
	delivered = iota
	again
)

// sampler has the samples of an audience.
type sampler struct {
	source Source
	// readStats reads the counters; nil: the source may not.
	readStats func(context.Context) (*client.Stats, time.Time, error)
	cancel    context.CancelFunc
	streams   *capacity.Semaphore
	holder    capacity.Holder // of its stream
	visited   time.Time       // guarded by the mutex of Samplers

	mu       sync.Mutex
	ring     [steps]sample
	n        int       // samples that were added
	end      time.Time // of the newest step
	recent   [minute][]float64
	counters *counters // the last ones; nil: those at the end of the newest step are not known

	// The step that has not ended, as the stream has it.
	current   tally
	connected bool
	fault     error // why there is no stream
}

// tally is what the stream sent in a step.
type tally struct {
	verdicts  [len(verdicts)]float64
	events    float64 // that were sent
	skipped   float64
	late      []float64 // in seconds
	whole     bool      // the stream was there from the beginning to the end
	broken    bool      // it was not, for a while
	gaps      int       // steps before this one that nobody has ended
	estimated bool      // by events that the step before had skipped
}

// sample is a step. NaN: not known.
type sample struct {
	rates     [len(verdicts)]float64 // a second
	p50, p99  float64                // of the lateness, in seconds
	estimated bool
}

// unknown is a gap.
var unknown = func() (s sample) {
	for i := range s.rates {
		s.rates[i] = math.NaN()
	}
	s.p50, s.p99 = math.NaN(), math.NaN()
	return s
}()

// began sets the beginning of the first step.
func (s *sampler) began(now time.Time) { s.end = now }

// setCounters sets the counters at the beginning.
func (s *sampler) setCounters(c *counters) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters = c
}

// count counts an event of the stream.
func (s *sampler) count(e *client.StreamEvent, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.connected {
		s.connected, s.fault = true, nil
		s.current.whole = !s.current.broken && now.Sub(s.end) <= grace
	}
	c := &s.current
	c.skipped += float64(e.Skipped)
	if e.Attempt == nil && e.Change == nil {
		return
	}
	c.events++
	if e.Attempt == nil {
		return
	}
	if i := slices.Index(verdicts[:], e.Attempt.Verdict); i >= 0 {
		c.verdicts[i]++
	}
	if late := e.Attempt.LateMS; late != nil && len(c.late) < maxLate {
		c.late = append(c.late, *late/1000)
	}
}

// disconnect notes that the stream has ended, and why.
func (s *sampler) disconnect(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected, s.fault = false, err
	s.current.whole, s.current.broken = false, true
}

// take ends the step, and returns what the stream sent in it. Steps that ended before, because the process was
// suspended or the API was slow, are gaps.
func (s *sampler) take(now time.Time) tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.current
	s.current = tally{whole: s.connected}
	if taken.skipped > 0 && taken.events == 0 { // nothing says what they were: they count as the next ones
		s.current.skipped, s.current.estimated = taken.skipped, true
		taken.skipped = 0
	}
	if elapsed := now.Sub(s.end); elapsed >= 2*Step {
		taken.gaps, taken.whole = int(elapsed/Step)-1, false
	}
	return taken
}

// add adds the sample of a step.
func (s *sampler) add(t tally, c *counters) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range min(t.gaps, steps) {
		s.push(unknown, nil)
	}
	s.end = s.end.Add(time.Duration(max(0, t.gaps-steps)) * Step)
	one := unknown
	before := s.counters
	if s.counters = c; before != nil && c != nil && t.gaps == 0 {
		one.rates[delivered] = perSecond(c.delivered-before.delivered, c.at.Sub(before.at))
	}
	if t.whole {
		scale := 1.0
		if t.events > 0 {
			scale = (t.events + t.skipped) / t.events
		}
		one.estimated = t.skipped > 0 || t.estimated
		for i, n := range t.verdicts {
			if i == delivered && one.estimated && !math.IsNaN(one.rates[delivered]) {
				continue // the counter is exact
			}
			one.rates[i] = n * scale / Step.Seconds()
		}
	} else {
		t.late = nil
	}
	slices.Sort(t.late)
	one.p50, one.p99 = quantile(t.late, 0.5), quantile(t.late, 0.99)
	s.push(one, t.late)
}

// perSecond returns the rate of a counter; NaN: it has not been read again, or it has been reset, as when a topic is
// deleted.
func perSecond(delta int64, in time.Duration) float64 {
	if delta < 0 || in <= 0 {
		return math.NaN()
	}
	return float64(delta) / in.Seconds()
}

// push adds a step. s.mu is held.
func (s *sampler) push(one sample, late []float64) {
	s.ring[s.n%steps] = one
	s.recent[s.n%minute] = late
	s.n++
	s.end = s.end.Add(Step)
}

// quantile returns the quantile of sorted values by the nearest rank; NaN: there are none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// Samples are the samples of an audience.
type Samples struct {
	// Steps is the number of steps of the series that have ended since the sampler began; 0: there is nothing to show
	// yet.
	Steps int
	// From and To bound the series: values at equal intervals of Step, the oldest first. NaN is a gap.
	From, To time.Time
	// Verdicts are the attempts by verdict: delivered, again, dead, cancelled and released.
	Verdicts []Verdict
	// P50 and P99 are quantiles of the lateness, in seconds.
	P50, P99 []float64
	// LastP50 and LastP99 are those of the last minute. NaN: not known.
	LastP50, LastP99 float64
	// Estimated: the stream skipped events, so some values are estimates.
	Estimated bool
	// Fault is why there is no stream now; nil: there is one, or there will be one soon.
	Fault error
}

// Verdict are the attempts a second with a verdict.
type Verdict struct {
	Name      string
	PerSecond []float64
	// LastMinute is the mean of the steps of the last minute in which it is known. NaN: in none.
	LastMinute float64
}

// LastMinute returns the attempts a second in the last minute, with a verdict of some names or with any. NaN: not
// known.
func (s *Samples) LastMinute(names ...string) float64 {
	sum := math.NaN()
	for _, v := range s.Verdicts {
		switch {
		case len(names) > 0 && !slices.Contains(names, v.Name) || math.IsNaN(v.LastMinute):
		case math.IsNaN(sum):
			sum = v.LastMinute
		default:
			sum += v.LastMinute
		}
	}
	return sum
}

// Missing returns the time within the series, since the sampler began, in which the stream was not followed.
func (s *Samples) Missing() (missing time.Duration) {
	if s.Steps == 0 {
		return 0
	}
	values := s.Verdicts[again].PerSecond
	for _, v := range values[len(values)-s.Steps:] {
		if math.IsNaN(v) {
			missing += Step
		}
	}
	return missing
}

// samples returns the samples in the last time.
func (s *sampler) samples(last time.Duration) Samples {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(max(int(last/Step), minute), steps)
	all := Samples{
		Steps: min(s.n, n), From: s.end.Add(-time.Duration(n) * Step), To: s.end, P50: make([]float64, n),
		P99: make([]float64, n), Fault: s.fault, Verdicts: make([]Verdict, len(verdicts)),
	}
	for v, name := range verdicts {
		all.Verdicts[v] = Verdict{Name: name, PerSecond: make([]float64, n)}
	}
	for i := range n {
		one := unknown
		if at := s.n - n + i; at >= 0 {
			one = s.ring[at%steps]
		}
		for v := range verdicts {
			all.Verdicts[v].PerSecond[i] = one.rates[v]
		}
		all.P50[i], all.P99[i] = one.p50, one.p99
		all.Estimated = all.Estimated || one.estimated
	}
	for v := range verdicts {
		all.Verdicts[v].LastMinute = mean(all.Verdicts[v].PerSecond[n-minute:])
	}
	var late []float64
	for _, values := range s.recent {
		late = append(late, values...)
	}
	slices.Sort(late)
	all.LastP50, all.LastP99 = quantile(late, 0.5), quantile(late, 0.99)
	return all
}

// mean returns the mean of the numbers; NaN: there is none.
func mean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / float64(n) // 0/0 is NaN
}
