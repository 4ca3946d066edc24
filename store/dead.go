package store

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// Selection selects dead letters by id, or by a filter if IDs is empty. States, the order and the page of the filter are
// ignored.
type Selection struct {
	IDs    []string
	Filter Filter // its Namespace applies to IDs, too
	// DryRun counts the selected dead letters and changes nothing.
	DryRun bool
}

// RevivePlan sets how dead letters are revived.
type RevivePlan struct {
	// Rate spreads the first attempts of all jobs evenly over time, and LaneRate those of each lane; zero: at once. LaneRate
	// requires a filter, since an id does not contain its job's lane.
	Rate     policy.Rate
	LaneRate policy.Rate
	// Delay is the time from now to the first attempt: the NextDelay of the previous call when this call continues it.
	Delay time.Duration
	// URL replaces that of each job; empty: URLs do not change.
	URL string
	// ExpiresIn is the time from a job's due time to its new expiry; zero: expiries do not change, and expired jobs fail
	// with ErrExpired.
	ExpiresIn time.Duration
	// Actor is the name of the client, as in Revival.
	Actor string
}

// BulkResult is the result of an operation on a selection.
type BulkResult struct {
	Matched int64 // dead letters found
	Done    int64 // dead letters revived or purged
	// Failed lists some of the others with the reason.
	Failed []BulkFailure
	// More is set when time ran out before all were processed. The same call continues.
	More bool
	// NextDelay is the time from now to the next first attempt of a revival with a rate; zero: without a rate.
	NextDelay time.Duration
}

// BulkFailure is a dead letter that was not changed, with the reason.
type BulkFailure struct {
	ID  string
	Err error
}
