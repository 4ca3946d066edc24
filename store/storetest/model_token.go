package storetest

import (
	"time"

	"github.com/ringback/ringback/store"
)

// call identifies a call: a method and its token.
type call struct {
	method string
	token  store.Token
}

// reply is the result of a call.
type reply struct {
	at    time.Time
	value any
	err   error
}

// once makes a call, or returns its first result when the token was used within TokenTTL.
func once[T any](s *modelShard, now time.Time, c call, do func() (T, error)) (T, error) {
	if a, ok := s.storedReply(now, c); ok {
		value, _ := a.value.(T)
		return value, a.err
	}
	value, err := do()
	s.storeReply(now, c, value, err)
	return value, err
}

func (s *modelShard) storedReply(now time.Time, c call) (reply, bool) {
	for len(s.calls) > 0 && now.Sub(s.replies[s.calls[0]].at) > store.TokenTTL {
		delete(s.replies, s.calls[0])
		s.calls = s.calls[1:]
	}
	a, ok := s.replies[c]
	return a, ok
}

func (s *modelShard) storeReply(now time.Time, c call, value any, err error) {
	s.replies[c] = reply{at: now, value: value, err: err}
	s.calls = append(s.calls, c)
}
