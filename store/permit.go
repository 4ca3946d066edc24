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
}

// Permit is a grant of starts.
type Permit struct {
	// Starts is the number of granted starts. It is less than requested when the rate allows no more now.
	Starts int
	// At is the store's clock at the grant. The starts count until At + Slack + the rate's window.
	At time.Time
	// Next is the time until more can be granted; zero when all requested starts were granted.
	Next time.Duration
}
