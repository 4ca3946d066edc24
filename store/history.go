package store

import (
	"math"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// The history of a topic is counted by minutes and by hours, for as many of them. Engines may keep some more.
const (
	HistoryMinutes = 60
	HistoryHours   = 48
)

// AllTopics is the name of the history of a namespace: the sum of its topics but those of GroupInternal.
const AllTopics = ""

// MaxLaneHistories is the number of lanes of a topic, on a shard, that have a history at a time.
const MaxLaneHistories = 20

// LaneHistory returns the name of the history of a lane: see Counts.ReadHistory.
func LaneHistory(q job.Queue) string { return q.Topic + "/" + q.Lane }

// LanePlaces are the lanes of a topic that have a history, with their last attempt.
type LanePlaces map[string]time.Time

// Take reports whether a lane with health that was attempted has a place. A lane loses it to another after an hour
// without attempts. The engine on Redis repeats it in Lua.
func (p LanePlaces) Take(lane string, now time.Time) bool {
	if _, has := p[lane]; !has && len(p) >= MaxLaneHistories {
		oldest := lane
		for other, at := range p {
			if oldest == lane || at.Before(p[oldest]) {
				oldest = other
			}
		}
		if now.Sub(p[oldest]) < time.Hour {
			return false
		}
		delete(p, oldest)
	}
	p[lane] = now
	return true
}

// lateBounds are the upper bounds of the lateness that HistoryCounts.Late counts. The last bucket has no bound.
var lateBounds = [...]time.Duration{
	5 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
	2 * time.Second, 10 * time.Second, time.Minute, 10 * time.Minute,
}

// HistoryCounts count what became of attempts.
type HistoryCounts struct {
	// Delivered is the number of attempts that were delivered.
	Delivered int64 `api:"delivered,always"`
	// Failed is the number of attempts that count and were not delivered.
	Failed int64 `api:"failed,always"`
	// Dead is the number of jobs that died, after an attempt or without.
	Dead int64 `api:"dead,always"`
	// Released is the number of claimed jobs that were given back without an attempt that counts.
	Released int64 `api:"released,always"`
	// Late are the delivered and failed attempts by lateness.
	Late [len(lateBounds) + 1]int64
}

// HistoryNumbers is the number of counts in HistoryCounts.Numbers.
const HistoryNumbers = 4 + len(lateBounds) + 1

// Numbers returns the counts in the order in which engines store them.
func (c *HistoryCounts) Numbers() (all [HistoryNumbers]*int64) {
	all = [HistoryNumbers]*int64{&c.Delivered, &c.Failed, &c.Dead, &c.Released}
	for i := range c.Late {
		all[4+i] = &c.Late[i]
	}
	return all
}

// Add adds counts.
func (c *HistoryCounts) Add(o *HistoryCounts) {
	from := o.Numbers()
	for i, n := range c.Numbers() {
		*n += *from[i]
	}
}

// LateQuantile estimates a quantile of the lateness, by the bucket that has it; false: there was no attempt.
func (c *HistoryCounts) LateQuantile(q float64) (time.Duration, bool) {
	var all int64
	for _, n := range c.Late {
		all += n
	}
	if all == 0 {
		return 0, false
	}
	rank := q * float64(all)
	low := time.Millisecond
	for i, high := range lateBounds {
		if n := float64(c.Late[i]); n > 0 && rank <= n {
			return time.Duration(float64(low) * math.Pow(float64(high)/float64(low), max(0, rank/n))), true
		}
		rank -= float64(c.Late[i])
		low = high
	}
	return low, true
}

// LateBucket returns the index in HistoryCounts.Late of a lateness.
func LateBucket(late time.Duration) int {
	i, _ := slices.BinarySearch(lateBounds[:], late)
	return i
}

// CountSettlement counts a settlement that was not refused. cancelled: the job was marked as cancelled.
func CountSettlement(s *Settlement, cancelled bool) (c HistoryCounts) {
	kind := s.Verdict.Kind
	switch {
	case s.Extend > 0:
		return c
	case kind == policy.Delivered:
		c.Delivered = 1
	case s.Attempt.Kind == job.KindAttempt:
		c.Failed = 1
	case kind == policy.Released:
		c.Released = 1
	}
	if s.Attempt.Kind == job.KindAttempt {
		c.Late[LateBucket(s.Late)] = 1
	}
	if kind == policy.Dead && !cancelled {
		c.Dead = 1
	}
	return c
}

// HistoryBucket counts what became of attempts in a minute or an hour.
type HistoryBucket struct {
	// At is its beginning.
	At time.Time `api:"at,always"`
	HistoryCounts
}

// History is what became of the attempts of a topic, in order of time. Minutes and hours without an attempt are
// missing.
type History struct {
	Topic          string
	Minutes, Hours []HistoryBucket
}

// Merge adds the buckets of another history of the topic.
func (h *History) Merge(o *History) {
	h.Minutes, h.Hours = mergeBuckets(h.Minutes, o.Minutes), mergeBuckets(h.Hours, o.Hours)
}

func mergeBuckets(a, b []HistoryBucket) (merged []HistoryBucket) {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(a, b HistoryBucket) int { return a.At.Compare(b.At) })
	for i := range all {
		if n := len(merged); n > 0 && merged[n-1].At.Equal(all[i].At) {
			merged[n-1].Add(&all[i].HistoryCounts)
		} else {
			merged = append(merged, all[i])
		}
	}
	return merged
}

// Recent returns the newest HistoryMinutes minutes and HistoryHours hours at a time, and what a store's clock that is
// ahead has in the next ones. Those of a clock that was set back are left out.
func (h *History) Recent(now time.Time) History {
	recent := func(all []HistoryBucket, span time.Duration, n int) []HistoryBucket {
		find := func(at time.Time) int {
			i, _ := slices.BinarySearchFunc(all, at, func(b HistoryBucket, t time.Time) int { return b.At.Compare(t) })
			return i
		}
		newest := now.Truncate(span)
		return all[find(newest.Add(-time.Duration(n-1)*span)):find(newest.Add(2*span))]
	}
	return History{
		Topic:   h.Topic,
		Minutes: recent(h.Minutes, time.Minute, HistoryMinutes), Hours: recent(h.Hours, time.Hour, HistoryHours),
	}
}
