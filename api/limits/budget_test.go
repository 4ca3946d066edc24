package limits

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/capacity"
)

func TestMeteredBody_CountsALargeOneAsAWhole(t *testing.T) {
	b := NewBodyBudget(int64(capacity.LargeBodies.Whole))
	m := b.Meter(nil, capacity.Holder{Namespace: "a"})
	require.NoError(t, m.Reserve(60<<10))
	require.Zero(t, b.large.InUse())
	require.NoError(t, m.Reserve(10<<10))
	require.Equal(t, 70<<10, b.large.InUse())
	m.ForceReserve(10 << 10)
	require.Equal(t, 80<<10, b.large.InUse())
	m.Return(20 << 10)
	require.Zero(t, b.large.InUse())
	require.EqualValues(t, 60<<10, b.InUse())
	m.ForceReserve(10 << 10)
	require.Error(t, m.Reserve(int64(capacity.LargeBodies.Whole)))
	require.Equal(t, 70<<10, b.large.InUse())
	m.Release()
	require.Zero(t, b.large.InUse())
	require.Zero(t, b.InUse())
}
