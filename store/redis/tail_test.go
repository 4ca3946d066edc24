package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

func TestTail_ReturnsTheReadersThatReadLast(t *testing.T) {
	t.Parallel()
	clock := newClock(t)
	s := open(t, clock.options())
	read := func(reader string) {
		_, _, err := s.ReadTail(t.Context(), []byte(reader), 0)
		require.NoError(t, err)
	}
	read("reads on")
	for i := range store.MaxTailReaders + 44 {
		read(fmt.Sprint(i))
	}
	clock.pass(time.Second)
	read("reads on")
	readers, err := s.AppendTail(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, readers, store.MaxTailReaders)
	require.Contains(t, readers, []byte("reads on"))
}

func TestTail_ForgetsReadersAndMessages(t *testing.T) {
	t.Parallel()
	clock := newClock(t)
	s := open(t, clock.options())
	read := func(reader string, after int64) ([][]byte, int64) {
		messages, position, err := s.ReadTail(t.Context(), []byte(reader), after)
		require.NoError(t, err)
		return messages, position
	}
	_, start := read("a", 0)
	clock.pass(store.TailTTL - time.Millisecond)
	_, _ = read("b", 0)
	clock.pass(time.Millisecond)
	readers, err := s.AppendTail(t.Context(), []byte("1"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("b")}, readers, "a has not read for too long")
	messages, position := read("b", start)
	require.Equal(t, [][]byte{[]byte("1")}, messages)

	clock.pass(store.TailTTL)
	_, err = s.AppendTail(t.Context(), []byte("for nobody"))
	require.NoError(t, err)
	require.Empty(t, s.Client.Keys(t.Context(), "*tail*").Val(), "without readers nothing is kept")

	clock.step(-time.Hour)
	_, _ = read("b", 0)
	_, err = s.AppendTail(t.Context(), []byte("2"))
	require.NoError(t, err)
	messages, _ = read("b", position)
	require.Equal(t, [][]byte{[]byte("2")}, messages, "the clock was set back")
}
