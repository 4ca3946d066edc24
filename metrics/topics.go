package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// other is the label of the topics without series of their own. No topic is called so: the names that clients may choose
// do not begin with _.
const other = "_other"

// maxTopicName is the longest name of a topic, in bytes.
const maxTopicName = 64

// A topic holds the series of one topic, or of all the others. They are made when they are first used: what never
// happens has none.
type topic struct {
	label    string
	attempts [verdicts][outcomes]lazy[prometheus.Counter]
	inserted [insertions]lazy[prometheus.Counter]
	ends     lazy[[]prometheus.Counter] // by number of the reason
	lateness lazy[prometheus.Observer]
	duration lazy[prometheus.Observer]
}

// lazy is a series, or some, there once used. Two goroutines that make it at once get the same from its vector.
type lazy[T any] struct{ at atomic.Pointer[T] }

// get is nil until set.
func (l *lazy[T]) get() *T { return l.at.Load() }

func (l *lazy[T]) set(series T) *T {
	l.at.Store(&series)
	return &series
}

// topics finds a topic's series by its name. Which topics have their own is decided in order of appearance and for good;
// the list is copied to grow, so that looking takes no lock.
type topics struct {
	most   int
	known  atomic.Pointer[map[string]*topic]
	other  *topic
	admits sync.Mutex
}

func newTopics(most int) *topics {
	t := &topics{most: most, other: &topic{label: other}}
	t.known.Store(new(make(map[string]*topic)))
	return t
}

// room reports whether another topic would get series of its own.
func (t *topics) room() bool { return len(*t.known.Load()) < t.most }

// names are the topics with series of their own, in order.
func (t *topics) names() []string { return slices.Sorted(maps.Keys(*t.known.Load())) }

// of finds a topic's series.
func (t *topics) of(name string) *topic {
	known := *t.known.Load()
	if found := known[name]; found != nil {
		return found
	}
	if len(known) < t.most {
		return t.admit(name)
	}
	return t.other
}

// admit gives a topic series of its own, unless others took the last place, or its name is none.
func (t *topics) admit(name string) *topic {
	if name == "" || name == other || len(name) > maxTopicName || !utf8.ValidString(name) {
		return t.other
	}
	t.admits.Lock()
	defer t.admits.Unlock()
	known := *t.known.Load()
	if found := known[name]; found != nil {
		return found
	}
	if len(known) >= t.most {
		return t.other
	}
	name = strings.Clone(name) // it may be a part of a whole answer of the store
	grown := maps.Clone(known)
	grown[name] = &topic{label: name}
	t.known.Store(&grown)
	return grown[name]
}
