package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFailures_OfAnAddressWaitForEachOther(t *testing.T) {
	f := new(failures)
	now := time.Unix(1_700_000_000, 0)
	for i := range failureBurst {
		require.Zero(t, f.add("192.0.2.1:4711", now), i)
	}
	require.Equal(t, failureEvery, f.add("192.0.2.1:4712", now), "another port is the same client")
	require.Equal(t, 2*failureEvery, f.add("[::ffff:192.0.2.1]:1", now))
	require.Zero(t, f.add("192.0.2.2:4711", now))
	for range 100 {
		f.add("192.0.2.1:1", now)
	}
	require.Equal(t, maxFailureDelay, f.add("192.0.2.1:1", now), "it grows no further")
	require.Equal(t, failureEvery, f.add("192.0.2.1:1", now.Add(maxFailureDelay)))
	for i := range failureBurst {
		require.Zero(t, f.add("192.0.2.1:1", now.Add(time.Hour)), i)
	}
	require.Positive(t, f.add("192.0.2.1:1", now.Add(time.Hour)))
}

func TestFailures_OfIPv6AreLimitedPerNetwork(t *testing.T) {
	f := new(failures)
	now := time.Unix(1_700_000_000, 0)
	for i := range failureBurst {
		require.Zero(t, f.add(fmt.Sprintf("[2001:db8::%x]:1", i), now))
	}
	require.Positive(t, f.add("[2001:db8::ffff%eth0]:1", now))
	require.Zero(t, f.add("[2001:db8:0:1::1]:1", now))
	require.Zero(t, f.add("not an address", now))
}
