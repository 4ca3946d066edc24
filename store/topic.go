package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Topic is a stored policy: what was put, without defaults.
type Topic struct {
	Namespace string
	Name      string
	Policy    policy.Topic
	// Revision grows with every change, also after a fault has taken changes back.
	Revision int64
	// Reached is how durable a PutTopic was when it was answered, as in job.Job.
	Durability *job.Durability
}

// Lane is a lane's own settings, as put.
type Lane struct {
	Queue    job.Queue
	Settings policy.Lane
	// Revision grows with every change, also after a fault has taken changes back; 0: nothing is put.
	Revision int64
	// Reached is how durable a PutLane was when it was answered, as in job.Job.
	Durability *job.Durability
}

// PermitRequest asks for starts of a topic.
type PermitRequest struct {
	Namespace string
	Topic     string
	Rate      policy.Rate
	Starts    int           // at most
	Slack     time.Duration // as in ClaimRequest
	// Back is what is given back of earlier grants: no attempt was made of it, nor will be.
	Back []Permit
}

// Permit is a grant.
type Permit struct {
	// Starts were granted, fewer than were asked for when the rate allows no more now.
	Starts int
	// At is the store's clock at the grant: it names the grant when some of it is given back.
	At time.Time
	// Slack is the ask's. With At it says until when the starts count: what is given back later changes nothing.
	Slack time.Duration
	// Next is the time until more can be granted; zero when as many were as were asked for.
	Next time.Duration
}

// Alarm is a topic's, raised or over.
type Alarm struct {
	Namespace string
	Topic     string
	Raised    bool
	Outbox    []NewJob
}
