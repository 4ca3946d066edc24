package pool

import "time"

// An debounceTimer is a timer that runs from when something begins to be so, however often that is noticed.
type debounceTimer struct {
	timer *time.Timer
	armed bool // it runs
}

func newDebounceTimer() *debounceTimer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &debounceTimer{timer: t}
}

// arm starts it, unless it runs, or stops it.
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

// fired reports, once, that its time has come.
func (a *debounceTimer) fired() bool {
	select {
	case <-a.timer.C:
		a.armed = false
		return true
	default:
		return false
	}
}

func (a *debounceTimer) stop() { a.timer.Stop() }
