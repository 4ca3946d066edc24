// This part of the package bounds the time of a search through jobs: it says how many of them the next call of the
// store may look at, given how fast the calls before were. A search ends at most about one short call after its time.

package dispatcher

import "time"

const (
	// assumed is how long it takes to look at a job, before that is known. Engines take 5 to 30 µs.
	assumed = 20 * time.Microsecond
	// least is the smallest number of jobs of a call, most of which would be overhead otherwise.
	least = 100
)

// budget is the budget of one search, which begins with New. It is not safe for concurrent use.
type budget struct {
	began, until time.Time
	most         int
	seen, calls  int
}

// newBudget returns a budget of a time, for calls that look at no more than most jobs.
func newBudget(within time.Duration, most int) *budget {
	now := time.Now()
	return &budget{began: now, until: now.Add(within), most: most}
}

// Add counts jobs that were looked at.
func (b *budget) Add(jobs int) { b.seen += jobs }

// Next returns how many jobs the next call may look at; zero: the time is over. There is always a first call: without
// one nobody knows whether there are more jobs.
func (b *budget) Next() int {
	now := time.Now()
	left := b.until.Sub(now)
	if left <= 0 && b.calls > 0 {
		return 0
	}
	b.calls++
	each := assumed
	if b.seen > 0 {
		each = max(1, now.Sub(b.began)/time.Duration(b.seen))
	}
	return int(min(max(left/each, least), time.Duration(b.most)))
}
