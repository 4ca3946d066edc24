package table

import (
	"time"

	"github.com/ringback/ringback/store/sqlite/clock"
)

// A Key is the place of a waiting job in its queue: by due time, then by number.
type Key struct{ Due, N int64 }

// Before reports whether k comes before o.
func (k Key) Before(o Key) bool { return k.Due < o.Due || (k.Due == o.Due && k.N < o.N) }

// Progress is the part of a row that a settlement changes, and what the removal of the job needs.
type Progress struct {
	Version                                   int64
	Attempts, FailedAttempts, ConsecutiveLost int64
	Entries                                   int64
	// number of the record's first entry; 0: it is among the others, or missing
	First       int64
	Cancel      bool
	Answer      string // to the last attempt that was not lost; empty: none
	BodySize    int64  // -1: nil
	Size        int64
	Fingerprint []byte
}

// Events is the number of events that were ever recorded: each has incremented the version, which starts at 1.
func (p *Progress) Events() int64 { return p.Version - 1 }

// Releases is the number of releases that were ever recorded.
func (p *Progress) Releases() int64 { return p.Entries - p.Attempts - p.Events() }

// TTLEnd is when the time to live of a job ends; zero: never.
func TTLEnd(since, expires int64, maxAge time.Duration) int64 {
	if maxAge <= 0 {
		return expires
	}
	old := since + clock.CeilMillis(maxAge)
	if expires == 0 {
		return old
	}
	return min(expires, old)
}
