package memory

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

// runOnce makes a call and reports whether it was run, not answered from the cache.
func runOnce(m *Replies, at time.Duration, token string, weight int) (asked bool) {
	_, _, _ = Once(m, Call{
		"test",
		store.Token(token),
	}, int64(at), func(int) int { return weight }, func() (int, error) {
		asked = true
		return 1, nil
	})
	return asked
}

func TestReplyCache_ForgetsOldTokensAndTheOldestOfTooMany(t *testing.T) {
	m := NewReplies()
	require.True(t, runOnce(m, 0, "a", 0))
	require.False(t, runOnce(m, store.TokenTTL, "a", 0))
	require.True(t, runOnce(m, store.TokenTTL+1, "a", 0))
	for i := range 3 * replyCacheCalls {
		runOnce(m, store.TokenTTL+1, fmt.Sprint(i), 0)
	}
	require.LessOrEqual(t, len(m.answers), replyCacheCalls)
	require.LessOrEqual(t, len(m.order), 3*replyCacheCalls)
	require.False(t, runOnce(m, store.TokenTTL+1, fmt.Sprint(3*replyCacheCalls-1), 0))

	runOnce(m, store.TokenTTL+1, "heavy", replyCacheWeight)
	runOnce(m, store.TokenTTL+1, "next", 0)
	require.Len(t, m.answers, 1, "weight counts too")
}

func TestReplyCache_ForgetsTheRepliesOfAFailedTransaction(t *testing.T) {
	m := NewReplies()
	_, undo, _ := Once(m, Call{"test", "a"}, 0, func(int) int { return 64 }, func() (int, error) { return 1, nil })
	undo()
	require.Empty(t, m.order)
	require.True(t, runOnce(m, 0, "a", 0))
}

func TestReplyCache_CountsAReplyOnceThatIsForgottenAndUndone(t *testing.T) {
	m := NewReplies()
	require.True(t, runOnce(m, 0, "kept", 100))
	var undos []func()
	do := func(token string, weight int) {
		_, undo, _ := Once(m, Call{"test", store.Token(token)}, int64(store.TokenTTL+1),
			func(int) int { return weight }, func() (int, error) { return 1, nil })
		undos = append(undos, undo)
	}
	do("heavy", replyCacheWeight)
	for i := range 2000 { // each makes the one before be forgotten, and the order is packed
		do(fmt.Sprint(i), replyCacheWeight)
	}
	for _, undo := range slices.Backward(undos) {
		undo()
	}
	require.Zero(t, m.weight)
	require.Empty(t, m.answers)
	require.LessOrEqual(t, m.first, len(m.order))
	require.True(t, runOnce(m, store.TokenTTL+1, "next", 10))
	require.False(t, runOnce(m, store.TokenTTL+1, "next", 10))
	require.Equal(t, 138, m.weight)
}
