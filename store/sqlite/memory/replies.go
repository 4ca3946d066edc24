package memory

import (
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
)

// A Call is a method and its token: the same token of another method is another call.
type Call struct {
	Method string
	Token  store.Token
}

// Replies keeps the replies of calls for store.TokenTTL, within its bounds: callers are of this process, where a reply
// is lost only when a caller gives up waiting.
type Replies struct {
	answers map[Call]reply
	order   []Call // oldest first; begins at first
	first   int
	weight  int
}

// A reply is the result of a call in a form that its method can repeat.
type reply struct {
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

// NewReplies returns an empty cache.
func NewReplies() *Replies { return &Replies{answers: make(map[Call]reply)} }

// forget drops replies that are too old, and the oldest beyond the bounds.
func (m *Replies) forget(now int64) {
	for m.first < len(m.order) {
		c := m.order[m.first]
		a, known := m.answers[c]
		if known && now-a.at <= int64(store.TokenTTL) && len(m.answers) < replyCacheCalls &&
			m.weight < replyCacheWeight {
			break
		}
		m.drop(c)
		m.order[m.first] = Call{}
		m.first++
	}
	if m.first > 1024 && m.first > len(m.order)/2 {
		m.order = append(m.order[:0:0], m.order[m.first:]...)
		m.first = 0
	}
}

// drop removes the reply of a call, if it is kept.
func (m *Replies) drop(c Call) {
	if a, known := m.answers[c]; known {
		delete(m.answers, c)
		m.weight -= a.weight
	}
}

// Once returns the kept reply of a call, or runs do and keeps its reply, unless the database has failed: then the call
// had no effect. weigh returns about how many bytes a value keeps. now is monotonic. undo drops a reply that was added;
// else it is nil.
func Once[
	T any,
](m *Replies, c Call, now int64, weigh func(T) int, do func() (T, error)) (value T, undo func(), err error) {
	if a, ok := m.answers[c]; ok && now-a.at <= int64(store.TokenTTL) {
		value, _ := a.value.(T)
		return value, nil, a.err
	}
	value, err = do()
	if db.IsError(err) {
		return value, nil, err
	}
	m.forget(now)
	weight := 128
	if err == nil {
		weight += weigh(value)
	}
	m.answers[c] = reply{at: now, weight: weight, value: value, err: err}
	m.order = append(m.order, c)
	m.weight += weight
	return value, func() {
		m.drop(c) // unless it was forgotten meanwhile
		if n := len(m.order); n > m.first && m.order[n-1] == c {
			m.order = m.order[:n-1]
		}
	}, err
}
