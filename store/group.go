package store

import "github.com/ringback/ringback/job"

// The groups of queues. Each has its own wake-ups: a claim loop is woken only for queues that it serves.
const (
	// GroupPush is the group of the pools that POST to URLs.
	GroupPush = "push"
	// GroupInternal is the group of the loops that run Ringback's own Go functions.
	GroupInternal = "internal"
)

// GroupOf returns the group of a topic's queues: GroupInternal for reserved topics but job.CallbackTopic.
func GroupOf(topic string) string {
	if job.IsReserved(topic) && topic != job.CallbackTopic {
		return GroupInternal
	}
	return GroupPush
}
