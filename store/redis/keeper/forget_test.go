package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForget_NotesNoTopicThatItLookedThrough(t *testing.T) {
	s := Keeper{forgetAfter: make(map[string]string)}
	s.idleNext("t", "lane")
	require.Equal(t, "lane", s.idleFrom("t"))
	s.idleNext("t", "")
	require.Empty(t, s.idleFrom("t"))
	require.Empty(t, s.forgetAfter)
}
