package store

import (
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// The groups of queues. Each has its own wake-ups: a claim loop is woken only for queues that it serves. The topics
// that are pulled, or delivered by a function, have a group each, see GroupOf.
const (
	// GroupPush is the group of the pools that POST to URLs.
	GroupPush = "push"
	// GroupInternal is the group of the loops that run Ringback's own Go functions.
	GroupInternal = "internal"
)

// GroupOf returns the group of the queues of a topic whose policy says how it is delivered: GroupInternal for internal
// topics, GroupPush, or the topic's own: pull:NAMESPACE/TOPIC or handler:NAMESPACE/TOPIC.
func GroupOf(namespace, topic string, deliver policy.Deliver) string {
	switch {
	case IsInternal(topic):
		return GroupInternal
	case deliver.Pushes():
		return GroupPush
	}
	return string(deliver) + ":" + namespace + "/" + topic
}

// IsInternal reports whether a topic is of GroupInternal: it is reserved, and not job.CallbackTopic.
func IsInternal(topic string) bool { return job.IsReserved(topic) && topic != job.CallbackTopic }
