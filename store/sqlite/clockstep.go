package sqlite

import (
	"database/sql/driver"
	"math"
	mathbits "math/bits"
	"time"

	"github.com/ringback/ringback/store/sqlite/db"
)

// Due times follow the wall clock. Leases, wake-ups, cooldowns and rates run on the monotonic clock, and steps of the wall
// clock do not move them. Jobs that were registered with a delay by this process, and wait for their first
// attempt, are moved along when the clock is set back, so that they need not wait for the difference; when it is set
// ahead again they are moved as far ahead, so that none is early. What was registered for a moment stays, and so do retries.
//
// Each transaction has one reading of the clock, so the jobs between two steps are a range of numbers.

const (
	// stepAtLeast is how far the wall must move against the monotonic clock, in milliseconds, to have been set.
	stepAtLeast = 500
	// stepsKept is how many steps are followed; older jobs are not moved.
	stepsKept = 16
	// stepRows is of how many numbers a round of the carrier reads the jobs, of which many may have ended.
	stepRows = 512
	// delayedBits bounds the numbers that are remembered, a bit each.
	delayedBits = 1 << 26
)

// clockSteps holds the steps of the wall clock since Open. Only the writer uses it.
type clockSteps struct {
	offset  int64 // of the wall against the monotonic clock, in milliseconds
	eras    []clockEra
	walks   []clockWalk
	step    int64 // since the last round, in milliseconds
	delayed bits
}

// A clockEra is a time between two steps: the last number that was given in it, and its offset.
type clockEra struct{ last, offset int64 }

// A clockWalk moves jobs after a step: those up to a number, from one offset to another.
type clockWalk struct{ cursor, from, to int64 }

func offsetOf(now instant) int64 {
	return now.ms - (now.mono-now.sub)/int64(time.Millisecond)
}

// look notes a step. last is the number that was given last.
func (c *clockSteps) look(now instant, last int64) {
	offset := offsetOf(now)
	if d := offset - c.offset; d > -stepAtLeast && d < stepAtLeast {
		return
	}
	c.step += offset - c.offset
	c.eras = append(c.eras, clockEra{last, c.offset})
	c.walks = append(c.walks, clockWalk{last, c.offset, offset})
	if len(c.eras) > stepsKept {
		c.delayed.forget(c.eras[0].last)
		c.eras = c.eras[1:]
	}
	c.walks = c.walks[max(0, len(c.walks)-stepsKept):] // one that is dropped was for jobs that are forgotten
	c.offset = offset
}

// shift is how far a walk moves a job: it is moved back while the clock shows less than when the job was registered, and
// as far ahead again when it does not.
func (c *clockSteps) shift(w clockWalk, n int64) int64 {
	registered := c.offset
	for i := len(c.eras) - 1; i >= 0 && n <= c.eras[i].last; i-- {
		registered = c.eras[i].offset
	}
	return min(0, w.to-registered) - min(0, w.from-registered)
}

// followClock moves so many jobs after a step; more says that there are others.
func (tx *tx) followClock() (more bool, err error) {
	c := &tx.mem.steps
	if len(c.walks) == 0 {
		return false, nil
	}
	before := append([]clockWalk(nil), c.walks...)
	tx.undo(func() { c.walks = before })
	w := &c.walks[0]
	last := c.delayed.last(w.cursor)
	w.cursor = last - stepRows
	var rows [][]driver.Value
	if err := tx.Query(stepped, func(v []driver.Value) error {
		rows = append(rows, v)
		return nil
	}, last, w.cursor); err != nil {
		return false, err
	}
	for _, v := range rows {
		n := db.Int(v[0])
		d := c.shift(*w, n)
		q := tx.mem.byID[db.Int(v[1])]
		if d == 0 || q == nil || !c.delayed.has(n) || tx.mem.isSkipped(n) {
			continue
		}
		due := db.Int(v[2])
		if err := tx.Exec(stepJob, d, d, d, n); err != nil {
			return false, err
		}
		tx.leave(q, key{due, n})
		if err := tx.arrive(q, key{due + d, n}); err != nil {
			return false, err
		}
		tx.mayBeNewHead = true
	}
	if c.delayed.last(w.cursor) == 0 {
		c.walks = c.walks[1:]
	}
	return len(c.walks) > 0, nil
}

// bits is a set of numbers, of which those that are too old are forgotten.
type bits struct {
	first int64 // numbers below are not in it
	words []uint64
}

// put adds a number or takes it out.
func (b *bits) put(n int64, in bool) {
	if n < b.first {
		return
	}
	i := int((n - b.first) / 64)
	if i >= delayedBits/64 {
		b.forget(n - delayedBits/2)
		i = int((n - b.first) / 64)
	}
	for i >= len(b.words) {
		if !in {
			return
		}
		b.words = append(b.words, 0)
	}
	if mask := uint64(1) << ((n - b.first) % 64); in {
		b.words[i] |= mask
	} else {
		b.words[i] &^= mask
	}
}

func (b *bits) has(n int64) bool {
	i := (n - b.first) / 64
	return n >= b.first && i < int64(len(b.words)) && b.words[i]&(1<<((n-b.first)%64)) != 0
}

// last is the largest number in it up to n; 0: there is none.
func (b *bits) last(n int64) int64 {
	if n < b.first {
		return 0
	}
	of := (n - b.first) / 64
	for i := min(of, int64(len(b.words))-1); i >= 0; i-- {
		word := b.words[i]
		if i == of {
			word &= math.MaxUint64 >> (63 - (n-b.first)%64)
		}
		if word != 0 {
			return b.first + i*64 + int64(mathbits.Len64(word)) - 1
		}
	}
	return 0
}

// forget takes out the numbers up to one.
func (b *bits) forget(last int64) {
	words := min(max(0, (last-b.first)/64), int64(len(b.words)))
	b.words = append([]uint64(nil), b.words[words:]...)
	b.first += words * 64
	switch i := last - b.first; {
	case len(b.words) == 0:
		b.first = max(b.first, last+1)
	case i >= 0:
		b.words[0] &^= math.MaxUint64 >> (63 - i)
	}
}
