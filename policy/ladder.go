package policy

import "time"

// Ladder is the backoff schedule: the waits after the 1st, 2nd, … failed attempt. Past its end the last rung repeats.
// Each rung is 1 ms to 30 d; a ladder has 1 to 100 rungs.
type Ladder []time.Duration

// Limits of a ladder, enforced by package job.
const (
	MaxRungs = 100
	MinRung  = time.Millisecond
	MaxRung  = 30 * 24 * time.Hour
)

// DefaultLadder returns the built-in ladder: nine rungs over a little more than 25 hours.
func DefaultLadder() Ladder {
	return Ladder{
		15 * time.Second, 3 * time.Minute, 10 * time.Minute, 30 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 6 * time.Hour, 15 * time.Hour,
	}
}

// Rung returns the wait after the given number of failed attempts, from 1. An empty ladder returns MinRung, never zero,
// so that retries cannot become a busy loop.
func (l Ladder) Rung(failed int) time.Duration {
	if len(l) == 0 {
		return MinRung
	}
	return l[min(max(failed, 1), len(l))-1]
}

// Span returns the sum of the waits of the given number of retries, without jitter.
func (l Ladder) Span(retries int) time.Duration {
	var span time.Duration
	for i := 1; i <= min(retries, len(l)); i++ {
		span += l.Rung(i)
	}
	if beyond := retries - len(l); beyond > 0 {
		span += time.Duration(beyond) * l.Rung(retries)
	}
	return span
}
