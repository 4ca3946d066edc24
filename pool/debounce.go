package pool

import "time"

// debounceTimer fires once, d after the first call of arm, however often arm is called.
type debounceTimer struct {
	timer *time.Timer
	armed bool // it runs
}

func newDebounceTimer() *debounceTimer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &debounceTimer{timer: t}
}

// arm starts the timer unless it runs, or stops it.
func (a *debounceTimer) arm(on bool, after time.Duration) {
	switch {
	case !on && a.armed:
		a.timer.Stop()
		a.armed = false
	case on && !a.armed:
		a.timer.Reset(after)
		a.armed = true
	}
}

func (a *debounceTimer) stop() { a.timer.Stop() }
