package layout

import (
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Keys are the names of a shard's keys.
type Keys struct {
	Tag    string   // "{rb:0.0}:", which every key begins with
	Common []string // the first 21 keys of each script that includes keys.lua, in its order

	// jobs, their runs and attempts; remembered ids, and when they are forgotten
	Jobs, Runs, Attempts, IDs, Forget  string
	Queues, Names, Topics, LastNumber  string // queues' numbers by name and names by number, topics, the last number
	Agenda, LastWakeups, CarrierWakeup string // next moments of queues, their last wake-ups, the carrier's wake-up
	Limits, LaneLimits, LaneSettings   string // limits of topics and lanes for scripts; settings of lanes
	LaneChanges                        string // the last changes of LaneSettings: `revision queue` by revision
	Alarms                             string // raised alarms of topics
	Throttles, ThrottleQueue, Owners   string // queues' throttles, by when they end; lease owners
	Ordered                            string // of ordered queues, how far their sets are filled
	Health                             string // of queues that have some
	// ends of times to live; deferred lease expiries; topics whose queues are to be rechecked
	TTL, Deferred, Recheck             string
	Outbox, OutboxQueue                string // new jobs, and their order
	Checked, Carrier                   string // the server that the shard was checked for, and when; the carrier's lock
	Clock, StaleAgenda, StaleThrottles string // steps of the clock, and scores from before the last one
	Tail, TailReaders                  string // the messages of the tail and its readers; on shard 0
}

// NewKeys returns the keys of the shard with a hash tag, given without braces.
func NewKeys(tag string) Keys {
	tag = "{" + tag + "}:"
	k := Keys{
		Tag: tag, Jobs: tag + "jobs", Runs: tag + "runs", Attempts: tag + "attempts",
		IDs: tag + "ids", Forget: tag + "forget",
		Queues: tag + "queues", Names: tag + "names", Topics: tag + "topics", LastNumber: tag + "last_number",
		Agenda: tag + "agenda", LastWakeups: tag + "last_wakeups", CarrierWakeup: tag + "carrier_wakeup",
		Limits: tag + "limits", LaneLimits: tag + "lane_limits",
		LaneSettings: tag + "lane_settings", LaneChanges: tag + "lane_changes",
		Alarms: tag + "alarms", Throttles: tag + "throttles",
		ThrottleQueue: tag + "throttle_queue", Owners: tag + "owners", Ordered: tag + "ordered", Health: tag + "health",
		TTL: tag + "ttl", Deferred: tag + "deferred", Recheck: tag + "recheck",
		Outbox: tag + "outbox", OutboxQueue: tag + "outbox_queue",
		Checked: tag + "checked", Carrier: tag + "carrier",
		Clock: tag + "clock", StaleAgenda: tag + "agenda:stale", StaleThrottles: tag + "throttle_queue:stale",
		Tail: tag + "tail", TailReaders: tag + "tail_readers",
	}
	k.Common = []string{
		k.Jobs, k.Runs, k.Attempts, k.IDs, k.Forget, k.Agenda, k.LastWakeups, k.Owners, k.CarrierWakeup, k.Limits,
		k.Names, k.Outbox, k.OutboxQueue, k.Recheck, k.Deferred, k.Throttles, k.ThrottleQueue,
		k.LaneLimits, k.TTL, k.Ordered, k.Health,
	}
	return k
}

// Reply returns the key of a call's reply, which answers repeats of the call. kind distinguishes the calls of one
// token.
func (k *Keys) Reply(token, kind string) string { return k.Tag + "reply:" + token + ":" + kind }

// Wakeups returns the key of the wake-ups for the queues of a group.
func (k *Keys) Wakeups(group string) string { return k.Tag + "wakeups:" + group }

// Interrupt returns the key of a list that ends a listener's blocking command.
func (k *Keys) Interrupt(listener string) string { return k.Tag + "interrupt:" + listener }

// Unhealthy returns the key of the queues of a namespace that have health, by its Since.
func (k *Keys) Unhealthy(namespace string) string { return k.Tag + "unhealthy:" + namespace }

// History returns the key of the history of a topic, or of a namespace, by its full name.
func (k *Keys) History(name string) string { return k.Tag + "history:" + name }

// TopicLanes returns the key of the lanes of a topic that have had jobs, as "<lane>\x00<number>".
func (k *Keys) TopicLanes(topic string) string { return k.Tag + "topic_lanes:" + topic }

// ConfiguredLanes returns the key of the lanes of a topic that have settings.
func (k *Keys) ConfiguredLanes(topic string) string { return k.Tag + "configured_lanes:" + topic }

// Rate returns the key of the starts that a topic's rate counts.
func (k *Keys) Rate(topic string) string { return k.Tag + "rate:" + topic }

// Due returns the key of a queue's waiting jobs, by due time.
func (k *Keys) Due(number string) string { return k.Tag + "due:" + number }

// Ready returns the key of a queue's ready list.
func (k *Keys) Ready(number string) string { return k.Tag + "ready:" + number }

// Claimed returns the key of a queue's claimed jobs.
func (k *Keys) Claimed(number string) string { return k.Tag + "claimed:" + number }

// OrderedJobs returns the key of the jobs of an ordered queue, by their order.
func (k *Keys) OrderedJobs(number string) string { return k.Tag + "ordered:" + number }

// A Topic is a topic's name and keys on one shard.
type Topic struct {
	Name                         string // namespace/topic
	Stats, Done, Dead, Cancelled string // counters, and ended jobs by state
	Open                         string // lanes with an open breaker
	Unhealthy                    string // those with health, of all topics of the namespace
	History, AllHistory          string // of the topic, and of the namespace
	// Wakeups are those of the groups that the topic may have, by FormatDeliver.
	Wakeups [3]string
}

// Ended returns the key of the jobs that ended in a state, as FormatState writes it.
func (t *Topic) Ended(state string) string {
	return map[string]string{"d": t.Done, "x": t.Dead, "c": t.Cancelled}[state]
}

// A Queue is a queue's number and keys on one shard.
type Queue struct {
	job.Queue
	Name                string // namespace/topic/lane
	Number              string
	Due, Ready, Claimed string
	Ordered             string
	TopicKeys           *Topic
}

// ForgottenTopic is the name of the topic whose counters are those of all forgotten topics. No job can have it.
const ForgottenTopic = ""

// TopicName returns a topic's full name.
func TopicName(namespace, topic string) string { return namespace + "/" + topic }

// Topic returns the keys of a topic.
func (k *Keys) Topic(namespace, topic string) *Topic {
	return k.TopicByName(TopicName(namespace, topic))
}

// TopicByName returns the keys of a topic by its full name.
func (k *Keys) TopicByName(name string) *Topic {
	namespace, topic, _ := strings.Cut(name, "/")
	return &Topic{
		Name: name, Stats: k.Tag + "stats:" + name, Done: k.Tag + "done:" + name, Dead: k.Tag + "dead:" + name,
		Cancelled: k.Tag + "cancelled:" + name, Open: k.Tag + "open:" + name,
		Unhealthy: k.Unhealthy(namespace), History: k.History(name),
		AllHistory: k.History(TopicName(namespace, store.AllTopics)), Wakeups: k.topicWakeups(namespace, topic),
	}
}

func (k *Keys) topicWakeups(namespace, topic string) (keys [3]string) {
	for _, deliver := range []policy.Deliver{policy.DeliverPush, policy.DeliverPull, policy.DeliverHandler} {
		keys[FormatDeliver(deliver)] = k.Wakeups(store.GroupOf(namespace, topic, deliver))
	}
	return keys
}

// Queue returns the keys of a queue with a number.
func (k *Keys) Queue(q job.Queue, number string, t *Topic) *Queue {
	return &Queue{
		Queue: q, Name: q.String(), Number: number, Due: k.Due(number), Ready: k.Ready(number),
		Claimed: k.Claimed(number), Ordered: k.OrderedJobs(number), TopicKeys: t,
	}
}

// JobKey returns a job's field in hashes and member in sets: in the default namespace the bare id.
func JobKey(ref job.Ref) string {
	if ref.Namespace == job.DefaultNamespace {
		return ref.ID
	}
	return ref.Namespace + "/" + ref.ID
}

// ParseJobKey is the inverse of JobKey.
func ParseJobKey(key string) job.Ref {
	if ns, id, ok := strings.Cut(key, "/"); ok {
		return job.Ref{Namespace: ns, ID: id}
	}
	return job.Ref{Namespace: job.DefaultNamespace, ID: key}
}

// ParseQueue parses a queue's name.
func ParseQueue(name string) (job.Queue, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return job.Queue{}, false
	}
	return job.Queue{Namespace: parts[0], Topic: parts[1], Lane: parts[2]}, true
}

// MaxReady bounds a queue's ready list.
const MaxReady = 1024
