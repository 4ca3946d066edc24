package store

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// PermitRequest asks for starts of a topic.
type PermitRequest struct {
	Namespace string
	Topic     string
	Rate      policy.Rate
	Starts    int           // at most
	Slack     time.Duration // as in ClaimRequest
	// Back returns unused parts of earlier grants: starts without an attempt, now and later.
	Back []Permit
}

// Permit is a grant of starts.
type Permit struct {
	// Starts is the number of granted starts. It is less than requested when the rate allows no more now.
	Starts int
	// At is the store's clock at the grant. It identifies the grant when starts are returned.
	At time.Time
	// Slack is that of the request. The starts count until At + Slack + the rate's window; returning them later has no
	// effect.
	Slack time.Duration
	// Next is the time until more can be granted; zero when all requested starts were granted.
	Next time.Duration
}
