package memory

import (
	"strings"

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

// StoredReplies are numbers of rows of the table replies. No wall clock matters to them.
type StoredReplies struct {
	Last             int64 // the newest
	Marked, MarkedAt int64 // the newest at a time (monotonic)
	Dropped          int64 // up to this one they are removed
}

// Mark marks the rows that there are.
func (n *StoredReplies) Mark(now int64) { n.Marked, n.MarkedAt = n.Last, now }

// The characters of an answer to a settlement in the table replies.
const (
	answerRecorded = '1'
	answerRefused  = '0'
)

// AppendReply appends the stored form of a reply to settlements with a shared token.
func AppendReply(b []byte, token store.Token, refused []error) []byte {
	b = append(append(b, token...), ' ')
	for _, err := range refused {
		answer := byte(answerRecorded)
		if err != nil {
			answer = answerRefused
		}
		b = append(b, answer)
	}
	return append(b, '\n')
}

// Restore adds stored replies, as if they were given now.
func (m *Replies) Restore(stored string, now int64) {
	for line := range strings.Lines(stored) {
		m.forget(now)
		token, answers, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refused := make([]error, len(answers))
		for i := range answers {
			if answers[i] == answerRefused {
				refused[i] = store.ErrLeaseLost
			}
		}
		m.put(Call{SettleMethod, store.Token(token)}, reply{
			at: now, weight: replyWeight + WeighErrors(refused), value: Settled{Refused: refused},
		})
	}
}

// SettleMethod is the method of settlements.
const SettleMethod = "settle"

// Settled is the reply to settlements.
type Settled struct {
	Refused []error
	Health  []store.HealthChange // not kept over a restart
}

// Weigh returns about how many bytes a reply keeps.
func (s Settled) Weigh() int { return WeighErrors(s.Refused) + 512*len(s.Health) }

// WeighErrors returns about how many bytes errors keep.
func WeighErrors(errs []error) int { return 16 * len(errs) }

// replyWeight is about how many bytes a reply keeps beside its value.
const replyWeight = 128

// put adds a reply.
func (m *Replies) put(c Call, r reply) {
	m.answers[c] = r
	m.order = append(m.order, c)
	m.weight += r.weight
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
	weight := replyWeight
	if err == nil {
		weight += weigh(value)
	}
	m.put(c, reply{at: now, weight: weight, value: value, err: err})
	return value, func() {
		m.drop(c) // unless it was forgotten meanwhile
		if n := len(m.order); n > m.first && m.order[n-1] == c {
			m.order = m.order[:n-1]
		}
	}, err
}
