// Package memory is what the writer knows without asking the database: lanes with their counters, heads and settings,
// topics, leases, the agenda, wake-ups, and replies to repeated calls.
//
// Its types are plain data without SQL. Only the writer uses them, except for Wakeups, which have a lock. What a
// transaction changes of a queue or a topic is kept apart (QueueNumbers, TopicNumbers), so that it can be saved and
// restored as a whole.
package memory
