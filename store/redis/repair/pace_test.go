package repair

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPace_PausesAfterEachStep(t *testing.T) {
	now := time.Duration(0)
	p := pace{elapsed: func() time.Duration { return now }, share: 100}
	began, wait := p.begin()
	require.Zero(t, wait)
	_, wait = p.begin()
	require.Equal(t, turnPause, wait, "another shard makes a step")
	now += time.Millisecond
	require.Equal(t, 100*time.Millisecond, p.end(began))
	_, wait = p.begin()
	require.Equal(t, 100*time.Millisecond, wait)
	now += wait
	began, wait = p.begin()
	require.Zero(t, wait)
	now += time.Second
	require.Equal(t, checkPause, p.end(began), "pauses are bounded")
}
