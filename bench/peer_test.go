package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func testBench(t *testing.T) *bench {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return &bench{dir: t.TempDir(), self: self, stderr: &strings.Builder{}, fig: &result{}}
}

func startPeer(t *testing.T, b *bench, name string) *peer {
	t.Helper()
	p, err := b.again(t.Context(), name)
	require.NoError(t, err)
	t.Cleanup(p.end)
	return p
}

func TestBareLoop_ReachesTheReceiver(t *testing.T) {
	b := testBench(t)
	b.receiver = startPeer(t, b, "receiver")
	where, err := b.receiver.ask(t.Context(), order{Do: "where"})
	require.NoError(t, err)
	b.sink = where.URL

	got, err := b.bare(load{jobs: 500, concurrency: 8}).run(t.Context())
	require.NoError(t, err)
	require.Positive(t, got[perSecond])
	came, err := b.receiver.ask(t.Context(), order{Do: "count"})
	require.NoError(t, err)
	require.EqualValues(t, 500, came.Count)
	require.Zero(t, came.Signed)
}

func TestReceiver_ReportsLateness(t *testing.T) {
	b := testBench(t)
	p := startPeer(t, b, "receiver")
	where, err := p.ask(t.Context(), order{Do: "where"})
	require.NoError(t, err)
	_, err = p.ask(t.Context(), order{Do: "expect", Jobs: 2, Late: true})
	require.NoError(t, err)

	sender := newPoster(where.URL, 1)
	defer sender.client.CloseIdleConnections()
	require.Error(t, sender.post(t.Context(), []byte("no due moment")))
	require.NoError(t, sender.post(t.Context(), body(time.Now().Add(-time.Hour))))
	require.NoError(t, sender.post(t.Context(), body(time.Now().Add(time.Hour))))
	a, err := p.ask(t.Context(), order{Do: "wait", Seconds: 20})
	require.NoError(t, err)
	require.Len(t, a.Late, 2)
	require.InDelta(t, 3_600_000, a.Late[0], 60_000)
	require.InDelta(t, -3_600_000, a.Late[1], 60_000, "an early one")
}

func TestReceiver_WaitEndsWithoutRequests(t *testing.T) {
	p := startPeer(t, testBench(t), "receiver")
	_, err := p.ask(t.Context(), order{Do: "expect", Jobs: 1})
	require.NoError(t, err)
	_, err = p.ask(t.Context(), order{Do: "wait"})
	require.ErrorContains(t, err, "0 of 1 requests came")
}

func TestLibrary_HandlesEachJob(t *testing.T) {
	p := startPeer(t, testBench(t), "library")
	for _, o := range []order{
		{Do: "open", Store: "sqlite:" + filepath.Join(t.TempDir(), "ringback.db"), Jobs: 100, Concurrency: 8},
		{Do: "fill", Jobs: 100},
		{Do: "start"},
	} {
		_, err := p.ask(t.Context(), o)
		require.NoError(t, err, o.Do)
	}
}

func TestPeer_EndsWithItsInput(t *testing.T) {
	p := startPeer(t, testBench(t), "bare")
	require.NoError(t, p.orders.Close())
	select {
	case <-p.gone:
	case <-time.After(20 * time.Second):
		t.Fatal("the peer is still running")
	}
	_, err := p.ask(t.Context(), order{Do: "start"})
	require.ErrorContains(t, err, "bare")
}

func TestPeer_IsKilledAfterItsTimeout(t *testing.T) {
	p := startPeer(t, testBench(t), "receiver")
	_, err := p.ask(t.Context(), order{Do: "expect", Jobs: 1})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = p.ask(ctx, order{Do: "wait", Seconds: 600})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-p.gone
}

func TestBody_Has256BytesAndItsDueTime(t *testing.T) {
	due := time.UnixMilli(1_800_000_000_123)
	text := body(due)
	require.Len(t, text, bodyBytes)
	late, err := lateOf(text, due.Add(7*time.Millisecond))
	require.NoError(t, err)
	require.Equal(t, 7*time.Millisecond, late)
	require.Len(t, waitingURL, 36)
	require.Len(t, waitingBody, 64)
}

func TestSpread_CallsEachOnceAndStopsAtAnError(t *testing.T) {
	var seen [100]atomic.Int32
	require.NoError(t, spread(t.Context(), 7, len(seen), func(_ context.Context, i int) error {
		seen[i].Add(1)
		return nil
	}))
	for i := range seen {
		require.EqualValues(t, 1, seen[i].Load())
	}

	broken := errors.New("broken")
	var calls atomic.Int32
	require.ErrorIs(t, spread(t.Context(), 2, 1_000_000, func(context.Context, int) error {
		calls.Add(1)
		return broken
	}), broken)
	require.LessOrEqual(t, calls.Load(), int32(4))
}

func TestRounds_AlternateAndSkipAFailingPeer(t *testing.T) {
	b := testBench(t)
	var order []string
	runs := func(name string, err error) contestant {
		return contestant{name, func(context.Context) (reading, error) {
			order = append(order, name)
			return reading{perSecond: 1}, err
		}}
	}
	require.NoError(t,
		b.interleave(t.Context(), 2, runs(ours(redisEngine), nil), runs("lame", errors.New("lame")), runs("b", nil)))
	require.Equal(t, []string{ours(redisEngine), "lame", "b", ours(redisEngine), "b"}, order)
	require.Len(t, b.fig.values("b", perSecond), 2)
	require.Len(t, b.fig.Notes, 1)

	require.ErrorContains(t, b.interleave(t.Context(), 1, runs(ours(redisEngine), errors.New("ours"))), "ours")
}
