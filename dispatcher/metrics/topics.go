package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/policy"
)

// other is the topic in the labels of the topics without their own series, and the namespace of those of a process.
// None has that name: clients cannot use the prefix _.
const other = "_other"

// maxTopicName is the longest name of a topic, in bytes.
const maxTopicName = 64

// A topicName is the name of a topic in a namespace: the values of the labels.
type topicName struct{ namespace, topic string }

// topic holds the series of one topic, or of all other topics. They are created at first use.
type topic struct {
	topicName

	attempts [verdictCount][outcomeCount]lazySeries[prometheus.Counter]
	inserted [insertOutcomes]lazySeries[prometheus.Counter]
	ends     lazySeries[map[policy.Reason]prometheus.Counter]
	lateness lazySeries[prometheus.Observer]
	duration lazySeries[prometheus.Observer]
}

// lazySeries is a series that is created at first use. Concurrent creators get the same one from its vector.
type lazySeries[T any] struct{ at atomic.Pointer[T] }

// get returns the series. It calls create at the first use.
func (l *lazySeries[T]) get(create func() T) T {
	if known := l.at.Load(); known != nil {
		return *known
	}
	created := create()
	l.at.Store(&created)
	return created
}

// topics finds a topic's series by name. The first maxTopics topics get their own series for good. The map is copied on
// write, so that lookups take no lock.
type topics struct {
	byName atomic.Pointer[map[topicName]*topic]
	other  *topic
	mu     sync.Mutex
}

func newTopics() *topics {
	t := &topics{other: &topic{topicName: topicName{other, other}}}
	t.byName.Store(new(make(map[topicName]*topic)))
	return t
}

// hasRoom reports whether another topic would get its own series.
func (t *topics) hasRoom() bool { return len(*t.byName.Load()) < maxTopics }

// names returns the topics of a namespace with their own series, sorted.
func (t *topics) names(namespace string) []string {
	var names []string
	for name := range *t.byName.Load() {
		if name.namespace == namespace {
			names = append(names, name.topic)
		}
	}
	slices.Sort(names)
	return names
}

// of returns a topic's series.
func (t *topics) of(namespace, of string) *topic {
	name, known := topicName{namespace, of}, *t.byName.Load()
	if found := known[name]; found != nil {
		return found
	}
	if len(known) < maxTopics {
		return t.add(name)
	}
	return t.other
}

// add gives a topic its own series, unless the limit is reached or the name is not valid.
func (t *topics) add(name topicName) *topic {
	if !isLabel(name.namespace) || !isLabel(name.topic) {
		return t.other
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := *t.byName.Load()
	if found := known[name]; found != nil {
		return found
	}
	if len(known) >= maxTopics {
		return t.other
	}
	// they may share memory with a large reply
	name = topicName{strings.Clone(name.namespace), strings.Clone(name.topic)}
	grown := maps.Clone(known)
	grown[name] = &topic{topicName: name}
	t.byName.Store(&grown)
	return grown[name]
}

// isLabel reports whether a name can be the value of a label.
func isLabel(name string) bool {
	return name != "" && name != other && len(name) <= maxTopicName && utf8.ValidString(name)
}
