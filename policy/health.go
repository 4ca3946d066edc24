package policy

import "time"

// Health is the record of a lane's attempts, kept from their first failure on. A lane without a failed attempt has
// none. An attempt fails if it counts and does not deliver; releases, losses and pauses are no attempts. It is
// immutable, and nil is the health of a healthy lane.
type Health struct {
	// Since is the first failure of the current series. A series ends when an attempt is delivered while fewer than
	// half of those of the last minutes fail; the next failure begins another.
	Since time.Time
	// Attempts and Failed count the attempts since Since.
	Attempts, Failed int64
	// InRow is the number of failures since the last delivery.
	InRow int64
	// Last is when the newest attempt was recorded.
	Last time.Time
	// Minutes count the attempts of the minute of Last, and of the minutes before, newest first.
	Minutes [HealthMinutes]HealthCount
	// Failure is the newest failure.
	Failure Failure
}

// HealthCount counts attempts.
type HealthCount struct{ Delivered, Failed int64 }

// Failure is a failed attempt.
type Failure struct {
	JobID string
	At    time.Time // when it was recorded
	// Status is the status of the answer; zero: there was none, for the reason Class.
	Status int
	Class  ErrorClass
}

// Bounds of health.
const (
	// HealthMinutes is the window, in minutes, in which the share of failed attempts counts.
	HealthMinutes = 5
	// HealthUnknownAfter is how long a lane's health is known after its last attempt.
	HealthUnknownAfter = time.Hour
	// HealthyAfter is the time of deliveries only after which the record is dropped, at the next delivery.
	HealthyAfter = time.Hour
	// HealthKept is the time without attempts after which the record is dropped.
	HealthKept = 48 * time.Hour

	leastAttempts = 5 // in the window, of which half must fail
	leastInRow    = 3
)

// HealthState is what is known of a lane's receiver.
type HealthState string

// The states of a lane's receiver. Clients must accept unknown ones.
const (
	HealthOK      HealthState = "ok"      // it confirms what it gets, or most of it
	HealthFailing HealthState = "failing" // see Health.Failing
	HealthUnknown HealthState = "unknown" // it failed, and was not asked for an hour
)

// State returns what is known of the receiver now.
func (h *Health) State(now time.Time) HealthState {
	switch {
	case h == nil || h.Expired(now):
		return HealthOK
	case !h.Known(now):
		return HealthUnknown
	case h.Failing(now):
		return HealthFailing
	default:
		return HealthOK
	}
}

// Failing reports whether the receiver fails: at least half of five or more attempts of the last minutes failed, or
// three or more failed and none was delivered since. An hour after the last attempt it is not known any more.
func (h *Health) Failing(now time.Time) bool {
	if !h.Known(now) {
		return false
	}
	w := h.Window(now)
	attempts := w.Delivered + w.Failed
	return h.InRow >= leastInRow || attempts >= leastAttempts && 2*w.Failed >= attempts
}

// Known reports whether the receiver failed and was asked within the last hour.
func (h *Health) Known(now time.Time) bool { return h != nil && now.Sub(h.Last) <= HealthUnknownAfter }

// Window counts the attempts of the last HealthMinutes minutes, of which the current one has just begun.
func (h *Health) Window(now time.Time) (sum HealthCount) {
	passed := minutesBetween(h.Last, now)
	for _, m := range h.Minutes[:max(0, HealthMinutes-passed)] {
		sum.Delivered += m.Delivered
		sum.Failed += m.Failed
	}
	return sum
}

// Share returns the share of attempts that failed, 0 to 1: of those in the window, or, if these are few, since Since.
func (h *Health) Share(now time.Time) float64 {
	failed, attempts := h.Failed, h.Attempts
	if w := h.Window(now); w.Delivered+w.Failed >= leastAttempts {
		failed, attempts = w.Failed, w.Delivered+w.Failed
	}
	return float64(failed) / float64(max(1, attempts))
}

// Expired reports whether the record is too old to be kept.
func (h *Health) Expired(now time.Time) bool { return now.Sub(h.Last) > HealthKept }

// After returns the health after an exchange with the store that recorded attempts, in milliseconds of its clock; nil:
// healthy. failure is the newest failed attempt, if any failed. The engine on Redis repeats it in Lua.
func (h *Health) After(now time.Time, count HealthCount, failure Failure) *Health {
	if h == nil || h.Expired(now) {
		if count.Failed == 0 {
			return nil
		}
		h = &Health{Last: now}
	}
	next := *h
	if now.Before(h.Last) {
		now = h.Last // the clock was set back
	}
	passed := min(HealthMinutes, minutesBetween(h.Last, now))
	next.Minutes = [HealthMinutes]HealthCount{}
	copy(next.Minutes[passed:], h.Minutes[:HealthMinutes-passed])
	if count.Failed > 0 {
		w := h.Window(now)
		if h.InRow == 0 && (w.Failed == 0 || w.Failed < w.Delivered) {
			next.Since, next.Attempts, next.Failed = now, 0, 0
		}
		next.Failure, next.Failure.At = failure, now
	} else if now.Sub(h.Failure.At) >= HealthyAfter {
		return nil
	}
	next.Last = now
	next.Minutes[0].Delivered += count.Delivered
	next.Minutes[0].Failed += count.Failed
	next.Attempts += count.Delivered + count.Failed
	next.Failed += count.Failed
	if next.InRow += count.Failed; count.Delivered > 0 {
		next.InRow = 0
	}
	return &next
}

// minutesBetween returns how many minutes have begun since an instant.
func minutesBetween(since, now time.Time) int {
	return int(max(0, now.Unix()/60-since.Unix()/60))
}
