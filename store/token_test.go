package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

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
