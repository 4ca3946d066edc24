package store_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

func TestTail_ReturnsTheReadersThatReadLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tail store.LocalTail
		read := func(reader string) {
			_, _, err := tail.ReadTail(t.Context(), []byte(reader), 0)
			require.NoError(t, err)
		}
		for range 10 { // the order of a map is random
			for i := range 2 * store.MaxTailReaders {
				read(fmt.Sprint(i))
			}
			time.Sleep(time.Millisecond)
			read("reads on")
			readers, err := tail.AppendTail(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, readers, store.MaxTailReaders)
			require.Contains(t, readers, []byte("reads on"))
		}
	})
}

func TestTail_FreesTheMessagesWithTheLastReader(t *testing.T) {
	var tail store.LocalTail
	_, start, err := tail.ReadTail(t.Context(), []byte("a"), 0)
	require.NoError(t, err)
	_, err = tail.AppendTail(t.Context(), []byte("1"))
	require.NoError(t, err)
	require.NoError(t, tail.LeaveTail(t.Context(), []byte("a")))
	messages, position, err := tail.ReadTail(t.Context(), []byte("b"), start)
	require.NoError(t, err)
	require.Empty(t, messages)
	require.Equal(t, start+1, position)
	_, err = tail.AppendTail(t.Context(), []byte("2"))
	require.NoError(t, err)
	messages, _, err = tail.ReadTail(t.Context(), []byte("b"), position)
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("2")}, messages)
}

func TestTail_ForgetsReadersAndMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tail store.LocalTail
		ctx := t.Context()
		_, start, err := tail.ReadTail(ctx, []byte("a"), 0)
		require.NoError(t, err)
		time.Sleep(store.TailTTL - time.Millisecond)
		readers, err := tail.AppendTail(ctx, []byte("1"))
		require.NoError(t, err)
		require.Equal(t, [][]byte{[]byte("a")}, readers)
		time.Sleep(time.Millisecond)
		readers, err = tail.AppendTail(ctx, []byte("2"))
		require.NoError(t, err)
		require.Empty(t, readers)

		messages, _, err := tail.ReadTail(ctx, []byte("b"), start)
		require.NoError(t, err)
		require.Equal(t, [][]byte{[]byte("1")}, messages, "the second was for nobody")
		messages, position, err := tail.ReadTail(ctx, []byte("b"), start+100)
		require.NoError(t, err)
		require.Empty(t, messages, "a position that is not reached yet")
		time.Sleep(store.TailTTL)
		messages, again, err := tail.ReadTail(ctx, []byte("b"), start)
		require.NoError(t, err)
		require.Empty(t, messages)
		require.Equal(t, position, again)
	})
}
