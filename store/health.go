package store

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// LaneHealth is the health of a lane that has some.
type LaneHealth struct {
	Queue  job.Queue
	Health *policy.Health
}

// HealthChange is the change of a lane's health by the settlements of a call. Nil: healthy.
type HealthChange struct {
	Queue         job.Queue
	Before, After *policy.Health
}

// HealthFilter selects lanes that have health.
type HealthFilter struct {
	Namespace string
	Topic     string    // empty: all
	FailingAt time.Time // only lanes whose receiver fails at this time; zero: all that have health
	Limit     int       // at most MaxBatch
}

// Selects reports whether the filter selects a lane by its health.
func (f *HealthFilter) Selects(q job.Queue, h *policy.Health) bool {
	return q.Namespace == f.Namespace && (f.Topic == "" || q.Topic == f.Topic) &&
		(f.FailingAt.IsZero() || h.Failing(f.FailingAt))
}

// First sorts lanes by Since, and by name, and returns the first.
func (f *HealthFilter) First(all []LaneHealth) []LaneHealth {
	slices.SortFunc(all, func(a, b LaneHealth) int {
		return cmp.Or(a.Health.Since.Compare(b.Health.Since), cmp.Compare(a.Queue.String(), b.Queue.String()))
	})
	return all[:min(len(all), f.Limit)]
}

// AttemptCount counts the attempts of a lane that a call recorded.
type AttemptCount struct {
	Queue job.Queue
	policy.HealthCount
	Newest policy.Failure // of those that failed
}

// CountAttempts counts the attempts that settlements recorded, of the lanes of which one failed or that have health, in
// order. refused are the answers to the settlements. It is what engines add to the health of lanes.
func CountAttempts(items []Settlement, refused []error, hasHealth func(job.Queue) bool) (counts []AttemptCount) {
	recorded := func(i int) bool {
		return refused[i] == nil && items[i].Extend == 0 && items[i].Attempt.Kind == job.KindAttempt
	}
	var failed map[job.Queue]bool
	for i := range items {
		if recorded(i) && items[i].Verdict.Kind != policy.Delivered {
			if failed == nil {
				failed = make(map[job.Queue]bool)
			}
			failed[items[i].Queue] = true
		}
	}
	index := make(map[job.Queue]int)
	for i := range items {
		s := &items[i]
		if !recorded(i) || !failed[s.Queue] && !hasHealth(s.Queue) {
			continue
		}
		at, ok := index[s.Queue]
		if !ok {
			at = len(counts)
			index[s.Queue] = at
			counts = append(counts, AttemptCount{Queue: s.Queue})
		}
		c := &counts[at]
		if s.Verdict.Kind == policy.Delivered {
			c.Delivered++
			continue
		}
		c.Failed++
		c.Newest = policy.Failure{JobID: s.Ref.ID, Class: s.Attempt.ErrorClass}
		if s.Attempt.ErrorClass == policy.ClassNone {
			c.Newest.Status = max(0, s.Attempt.Status)
		}
	}
	return counts
}

// Failing reports whether the receiver failed before and after the change, each by the time of its last attempt. A
// receiver that failed and fails again has not recovered because time has passed.
func (c *HealthChange) Failing() (before, after bool) {
	before = c.Before != nil && c.Before.Failing(c.Before.Last)
	if c.After != nil {
		after = c.After.Failing(c.After.Last) || before && c.After.InRow > 0
	}
	return before, after
}

// MaxHealthScan bounds the lanes that ListHealth looks at.
const MaxHealthScan = 10_000

// FormatHealth returns the stored form of a health: numbers with a space between, times in Unix milliseconds, in the
// order of the fields of policy.Health, then the class of the newest failure (- for none), and its job.
func FormatHealth(h *policy.Health) string {
	b := fmt.Appendf(nil, "%d %d %d %d %d", h.Since.UnixMilli(), h.Attempts, h.Failed, h.InRow, h.Last.UnixMilli())
	for _, m := range h.Minutes {
		b = fmt.Appendf(b, " %d %d", m.Delivered, m.Failed)
	}
	class := string(h.Failure.Class)
	if class == "" {
		class = "-"
	}
	return string(fmt.Appendf(b, " %d %d %s %s", h.Failure.At.UnixMilli(), h.Failure.Status, class, h.Failure.JobID))
}

// ParseHealth reads the stored form of a health; nil: it is none.
func ParseHealth(line string) *policy.Health {
	f := strings.Fields(line)
	const before, minutes = 5, 2 * policy.HealthMinutes
	if len(f) != before+minutes+4 {
		return nil
	}
	n := make([]int64, before+minutes+2)
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil {
			return nil
		}
	}
	at := func(i int) time.Time { return time.UnixMilli(n[i]).UTC() }
	h := &policy.Health{Since: at(0), Attempts: n[1], Failed: n[2], InRow: n[3], Last: at(4)}
	for i := range h.Minutes {
		h.Minutes[i] = policy.HealthCount{Delivered: n[before+2*i], Failed: n[before+2*i+1]}
	}
	f = f[before+minutes:]
	h.Failure = policy.Failure{JobID: f[3], At: at(before + minutes), Status: int(n[before+minutes+1])}
	if f[2] != "-" {
		h.Failure.Class = policy.ErrorClass(f[2])
	}
	return h
}
