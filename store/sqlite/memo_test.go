package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

// memoTx is a transaction that only remembers.
func memoTx(m *memo, at time.Duration) *tx {
	return &tx{mem: &memory{memo: m}, now: instant{mono: int64(at)}}
}

func answerOf(m *memo, at time.Duration, token string, weight int) (asked bool) {
	_, _ = once(memoTx(m, at), call{"test", store.Token(token)}, func(int) int { return weight }, func() (int, error) {
		asked = true
		return 1, nil
	})
	return asked
}

func TestTokensAreForgottenAfterTheirTimeAndWhenTheyAreTooMany(t *testing.T) {
	m := newMemo()
	require.True(t, answerOf(m, 0, "a", 0))
	require.False(t, answerOf(m, store.TokenMemory, "a", 0))
	require.True(t, answerOf(m, store.TokenMemory+1, "a", 0))
	for i := range 3 * memoCalls {
		answerOf(m, store.TokenMemory+1, fmt.Sprint(i), 0)
	}
	require.LessOrEqual(t, len(m.answers), memoCalls)
	require.LessOrEqual(t, len(m.order), 3*memoCalls)
	require.False(t, answerOf(m, store.TokenMemory+1, fmt.Sprint(3*memoCalls-1), 0))

	answerOf(m, store.TokenMemory+1, "heavy", memoWeight)
	answerOf(m, store.TokenMemory+1, "next", 0)
	require.Len(t, m.answers, 1, "weight counts too")
}

func TestWhatATransactionTookBackIsNotRemembered(t *testing.T) {
	m := newMemo()
	tx := memoTx(m, 0)
	_, _ = once(tx, call{"test", "a"}, light[int], func() (int, error) { return 1, nil })
	tx.undos[0]()
	require.Empty(t, m.order)
	require.True(t, answerOf(m, 0, "a", 0))
}
