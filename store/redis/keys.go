package redis

import (
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// keys names what a shard has. The tag in braces keeps a shard in one hash slot.
type keys struct {
	tag    string   // "{rb:0.0}:", see tags.go
	common []string // the first nineteen of every script that includes keys.lua, in its order

	jobs, runs, tries, limits, names, recheck, wake string
	throttles, settings, alarms                     string
	queues, seen, last                              string
	laneLimits                                      string // what scripts need of lanes' settings
	ids, forgets, agenda, rings, outbox, outq       string
	checked                                         string   // for which server the shard was checked last, see repair.go
	lead                                            string   // the carrier's lock
	clock                                           []string // what follows Redis's clock: clock, and what is to be rescored
}

func newKeys(tag string) keys {
	tag = "{" + tag + "}:"
	k := keys{
		tag: tag, jobs: tag + "jobs", runs: tag + "runs", tries: tag + "tries", limits: tag + "terms",
		names: tag + "names", recheck: tag + "redo", wake: tag + "wake",
		throttles: tag + "gates", settings: tag + "settings", alarms: tag + "alarms",
		queues: tag + "queues", seen: tag + "seen", last: tag + "last", laneLimits: tag + "lanes", lead: tag + "carrier",
		ids: tag + "ids", forgets: tag + "forget", agenda: tag + "agenda", rings: tag + "rings", outbox: tag + "outbox",
		outq: tag + "outq", checked: tag + "checked",
		clock: []string{tag + "clock", tag + "agenda:stale", tag + "gateq:stale"},
	}
	k.common = []string{
		k.jobs, k.runs, k.tries, k.ids, k.forgets, k.agenda, k.rings, tag + "bell:" + store.GroupPush, k.wake, k.limits,
		k.names, k.outbox, k.outq, k.recheck, tag + "off", k.throttles, tag + "gateq", k.laneLimits, tag + "ttl",
	}
	return k
}

// replyKey is the key of a call's reply, which answers repeats of the call; kind tells the parts of one call apart.
func (k *keys) replyKey(token, kind string) string { return k.tag + "tok:" + token + ":" + kind }

// lanes names the lanes of a topic that ever had a job; put those with settings of their own.
func (k *keys) lanes(topic string) string { return k.tag + "queues:" + topic }

func (k *keys) configuredLanes(topic string) string { return k.tag + "lanes:" + topic }

// rate names the starts that a topic's rate counts.
func (k *keys) rate(topic string) string { return k.tag + "rate:" + topic }

// A topic is a topic's keys on one shard.
type topic struct {
	name                         string // namespace/topic
	stats, done, dead, cancelled string // off: the cancelled
	open                         string // the lanes whose breaker is open
}

// A queue is a queue's number and keys on one shard.
type queue struct {
	job.Queue
	name             string // namespace/topic/lane
	number           string
	due, ready, held string
	topic            *topic
}

func topicName(namespace, name string) string { return namespace + "/" + name }

func (k *keys) topic(namespace, name string) *topic {
	full := topicName(namespace, name)
	return &topic{
		name: full, stats: k.tag + "stats:" + full, done: k.tag + "done:" + full, dead: k.tag + "dead:" + full,
		cancelled: k.tag + "cancelled:" + full, open: k.tag + "open:" + full,
	}
}

// topicOf makes a topic's keys of its full name.
func (k *keys) topicOf(name string) *topic {
	namespace, topic, _ := strings.Cut(name, "/")
	return k.topic(namespace, topic)
}

func (k *keys) queue(q job.Queue, number string, t *topic) *queue {
	return &queue{
		Queue: q, name: q.String(), number: number, due: k.tag + "due:" + number, ready: k.tag + "ready:" + number,
		held: k.tag + "held:" + number, topic: t,
	}
}

// jobKey is a job's name in hashes and sets: the bare id in the default namespace.
func jobKey(ref job.Ref) string {
	if ref.Namespace == job.DefaultNamespace {
		return ref.ID
	}
	return ref.Namespace + "/" + ref.ID
}

func refOf(member string) job.Ref {
	if ns, id, ok := strings.Cut(member, "/"); ok {
		return job.Ref{Namespace: ns, ID: id}
	}
	return job.Ref{Namespace: job.DefaultNamespace, ID: member}
}

// parseQueue reads a queue's name.
func parseQueue(name string) (job.Queue, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return job.Queue{}, false
	}
	return job.Queue{Namespace: parts[0], Topic: parts[1], Lane: parts[2]}, true
}
