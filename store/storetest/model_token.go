package storetest

import (
	"time"

	"github.com/ringback/ringback/store"
)

// call identifies a call: the same token with another method is another call.
type call struct {
	method string
	token  store.Token
}

// answer is the result of a call.
type answer struct {
	at    time.Time
	value any
	err   error
}

// once makes a call, or returns its first result when the token was used within TokenTTL.
func once[T any](s *modelShard, now time.Time, c call, do func() (T, error)) (T, error) {
	if a, ok := s.recall(now, c); ok {
		value, _ := a.value.(T)
		return value, a.err
	}
	value, err := do()
	s.remember(now, c, value, err)
	return value, err
}

func (s *modelShard) recall(now time.Time, c call) (answer, bool) {
	for len(s.calls) > 0 && now.Sub(s.answers[s.calls[0]].at) > store.TokenTTL {
		delete(s.answers, s.calls[0])
		s.calls = s.calls[1:]
	}
	a, ok := s.answers[c]
	return a, ok
}

func (s *modelShard) remember(now time.Time, c call, value any, err error) {
	s.answers[c] = answer{at: now, value: value, err: err}
	s.calls = append(s.calls, c)
}
