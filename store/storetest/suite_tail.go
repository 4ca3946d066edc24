package storetest

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

// appendTail appends a message and returns the readers.
func (s *suite) appendTail(message string) []string {
	s.Helper()
	return s.tailReaders([]byte(message))
}

func (s *suite) tailReaders(message []byte) (readers []string) {
	s.Helper()
	all, err := s.Store.AppendTail(s.Context(), message)
	require.NoError(s, err)
	for _, reader := range all {
		readers = append(readers, string(reader))
	}
	return readers
}

// readTail reads messages after a position.
func (s *suite) readTail(reader string, after int64) (texts []string, position int64) {
	s.Helper()
	messages, position, err := s.Store.ReadTail(s.Context(), []byte(reader), after)
	require.NoError(s, err)
	for _, m := range messages {
		texts = append(texts, string(m))
	}
	return texts, position
}

var tailCases = []testCase{
	{"messages reach the readers that were announced before", func(s *suite) {
		require.Empty(s, s.appendTail("nobody reads this"))
		_, a := s.readTail("reader a\x00", 0)
		require.Positive(s, a)
		require.Equal(s, []string{"reader a\x00"}, s.appendTail("1 \xff"))
		_, b := s.readTail("b", 0)
		require.ElementsMatch(s, []string{"reader a\x00", "b"}, s.tailReaders(nil), "an empty message is not appended")
		require.ElementsMatch(s, []string{"reader a\x00", "b"}, s.appendTail("2"))
		texts, next := s.readTail("reader a\x00", a)
		require.Equal(s, []string{"1 \xff", "2"}, texts)
		texts, last := s.readTail("b", b)
		require.Equal(s, []string{"2"}, texts)
		require.Equal(s, next, last)
		texts, again := s.readTail("b", last)
		require.Empty(s, texts)
		require.Equal(s, last, again)
		for range 2 { // as when a reply is lost
			require.NoError(s, s.Store.LeaveTail(s.Context(), []byte("reader a\x00")))
		}
		require.Equal(s, []string{"b"}, s.tailReaders(nil))
	}},
	{"the newest messages are kept, and read in parts", func(s *suite) {
		_, at := s.readTail("a", 0)
		const more = 3
		for i := range store.MaxTailMessages + more {
			s.appendTail(fmt.Sprint(i))
		}
		var texts []string
		for parts := 0; ; parts++ {
			var part []string
			part, at = s.readTail("a", at)
			require.LessOrEqual(s, len(part), store.TailReadMessages)
			if texts = append(texts, part...); len(part) == 0 {
				require.Equal(s, store.MaxTailMessages/store.TailReadMessages, parts)
				break
			}
		}
		require.Len(s, texts, store.MaxTailMessages)
		for i, text := range texts {
			require.Equal(s, fmt.Sprint(i+more), text)
		}
	}},
	{"a message may have MaxTailMessage bytes", func(s *suite) {
		_, at := s.readTail("a", 0)
		long := strings.Repeat("x", store.MaxTailMessage)
		s.appendTail(long)
		texts, _ := s.readTail("a", at)
		require.Equal(s, []string{long}, texts)
	}},
}
