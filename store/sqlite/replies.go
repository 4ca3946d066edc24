package sqlite

import (
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
)

// A call is what a token repeats: the same token of another method is another call.
type call struct {
	method string
	token  store.Token
}

// replyCache remembers what calls came to for store.TokenTTL, as far as its bounds allow: the callers are of this process,
// where a reply is lost only when a caller gives up waiting.
type replyCache struct {
	answers map[call]answer
	order   []call // oldest first; begins at first
	first   int
	weight  int
}

// answer is a reply in the form that its method finds easy to repeat.
type answer struct {
	at     int64 // monotonic
	weight int
	value  any
	err    error
}

// The bounds of the cache: calls, and approximate bytes of their answers.
const (
	replyCacheCalls  = 65_536
	replyCacheWeight = 16 << 20
)

func newReplyCache() *replyCache { return &replyCache{answers: make(map[call]answer)} }

// once runs do, or finds what it came to under the same token. Faults of the disk are not remembered: the call had no
// effect. weigh tells how many bytes an answer keeps.
func once[T any](tx *tx, c call, weigh func(T) int, do func() (T, error)) (T, error) {
	m := tx.mem.replies
	if a, ok := m.answers[c]; ok && tx.now.Mono-a.at <= int64(store.TokenTTL) {
		value, _ := a.value.(T)
		return value, a.err
	}
	value, err := do()
	if db.IsError(err) {
		return value, err
	}
	m.forget(tx.now.Mono)
	weight := 128
	if err == nil {
		weight += weigh(value)
	}
	m.answers[c] = answer{at: tx.now.Mono, weight: weight, value: value, err: err}
	m.order = append(m.order, c)
	m.weight += weight
	tx.undo(func() {
		m.drop(c) // unless too much was to be remembered meanwhile
		if n := len(m.order); n > m.first && m.order[n-1] == c {
			m.order = m.order[:n-1]
		}
	})
	return value, err
}

// forget drops what is too old, and the oldest while there is too much.
func (m *replyCache) forget(now int64) {
	for m.first < len(m.order) {
		c := m.order[m.first]
		a, known := m.answers[c]
		if known && now-a.at <= int64(store.TokenTTL) && len(m.answers) < replyCacheCalls && m.weight < replyCacheWeight {
			break
		}
		m.drop(c)
		m.order[m.first] = call{}
		m.first++
	}
	if m.first > 1024 && m.first > len(m.order)/2 {
		m.order = append(m.order[:0:0], m.order[m.first:]...)
		m.first = 0
	}
}

// drop lets go of one answer, if it is remembered.
func (m *replyCache) drop(c call) {
	if a, known := m.answers[c]; known {
		delete(m.answers, c)
		m.weight -= a.weight
	}
}

// light weighs answers of a few words.
func light[T any](T) int { return 64 }
