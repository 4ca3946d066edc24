package localtail_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/localtail"
)

func TestTail_ForgetsReadersAndMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tail localtail.Tail
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
