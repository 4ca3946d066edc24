package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

func TestUntilSignal_EndsAtAHangup(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) { // the tests are run by nohup
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	t.Cleanup(func() { signal.Reset() })
	ctx := untilSignal(t.Context(), io.Discard, func(int) {})
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	select {
	case <-ctx.Done():
	case <-time.After(testkit.MustCome):
		require.Fail(t, "SIGHUP does not end the context")
	}
	require.True(t, signal.Ignored(syscall.SIGHUP), "another one is no second signal")
}

func TestUntilSignal_LeavesIgnoredHangupsIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGHUP) // as nohup does
	t.Cleanup(func() { signal.Reset() })
	untilSignal(t.Context(), io.Discard, func(int) {})
	require.True(t, signal.Ignored(syscall.SIGHUP))
}
