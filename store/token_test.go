package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

func TestSharedToken_IsMadeOfWhatTheCallSays(t *testing.T) {
	first, second := store.SharedToken(make([]byte, 32)), store.SharedToken(append(make([]byte, 15), 8))
	require.Len(t, string(first), len(store.NewToken()))
	require.NotEqual(t, first, second)
	require.True(t, first.IsShared())
	require.False(t, store.NewLeaseOwner().NewToken().IsShared())
	require.Equal(t, store.SharedToken(make([]byte, 32)).Item(1), first.Item(1))
	require.NotEqual(t, first.Item(1), first.Item(2))
	require.NotEqual(t, first.Item(1), second.Item(1))
	own := store.NewToken()
	require.False(t, own.Item(1).IsShared())
	require.Equal(t, own.Item(1), own.Item(1)[:len(own)])
	require.Equal(t, own.Owner(), own.Item(1).Owner())
	require.NotEqual(t, own.Item(1), own.Item(2))
}

func TestToken_NamesItsLeaseOwner(t *testing.T) {
	owner := store.NewLeaseOwner()
	first, second := owner.NewToken(), owner.NewToken()
	require.NotEqual(t, first, second)
	require.Len(t, string(first), len(store.NewToken()))
	require.Equal(t, owner, first.Owner())
	require.Equal(t, owner, second.Owner())
	require.NotEqual(t, owner, store.NewLeaseOwner())
	require.NotEqual(t, owner, store.NewToken().Owner())
}
