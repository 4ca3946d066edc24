package app

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTeardowns_RunInReverseOnce(t *testing.T) {
	var order []string
	var down teardownStack
	broken := errors.New("broken")
	for _, name := range []string{"first", "second", "third"} {
		down.add(name, func() error {
			order = append(order, name)
			if name == "second" {
				return broken
			}
			return nil
		})
	}
	err := down.run()
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "second: broken")
	require.Equal(t, []string{"third", "second", "first"}, order)
	require.NoError(t, down.run())
	require.Len(t, order, 3)
}
