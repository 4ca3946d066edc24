package pool

import "time"

// An alarm is a timer that runs from when something begins to be so, however often that is noticed.
type alarm struct {
	timer *time.Timer
	set   bool // it runs
}

func newAlarm() *alarm {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &alarm{timer: t}
}

// keep starts it, unless it runs, or stops it.
func (a *alarm) keep(on bool, after time.Duration) {
	switch {
	case !on && a.set:
		a.timer.Stop()
		a.set = false
	case on && !a.set:
		a.timer.Reset(after)
		a.set = true
	}
}

// rang reports, once, that its time has come.
func (a *alarm) rang() bool {
	select {
	case <-a.timer.C:
		a.set = false
		return true
	default:
		return false
	}
}

func (a *alarm) stop() { a.timer.Stop() }
