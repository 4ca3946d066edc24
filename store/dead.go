package store

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// Selection names dead letters: by their ids, else by a filter whose State, Limit and Cursor do not matter.
type Selection struct {
	IDs    []string
	Filter Filter // its Namespace counts in any case
	// DryRun counts them, and changes nothing.
	DryRun bool
}

// RevivePlan says how dead letters are sent again.
type RevivePlan struct {
	// Rate and LaneRate spread their first attempts evenly over time, all of them and those of each lane; zero: at once.
	// LaneRate requires a filter, not ids.
	Rate     policy.Rate
	LaneRate policy.Rate
	// After is when their pace begins, from now on: Worked.NextDelay of the call that this one goes on from. Zero: at once.
	Delay time.Duration
	// URL replaces their own; empty: it stays.
	URL string
	// ExpiresIn is a new expiry, from when each is due again; zero: that of each stays, and those whose has passed fail with
	// ErrExpired.
	ExpiresIn time.Duration
}

// BulkResult is what became of a selection.
type BulkResult struct {
	Matched int64 // dead letters that were found
	Done    int64 // of them, revived or purged
	// BulkFailure names some of those that were not, with the reason.
	Failed []BulkFailure
	// More: time ran out before all were looked at; the same again goes on.
	More bool
	// Paced is where a revival's pace has come, from now on: when the next one would start. Zero when none was paced.
	NextDelay time.Duration
}

// BulkFailure is a dead letter that was left as it is.
type BulkFailure struct {
	ID  string
	Err error
}
