package capacity

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

var (
	a = Holder{Namespace: "a"}
	b = Holder{Namespace: "b"}
	c = Holder{Namespace: "c"}
)

// waits starts a call of Acquire, which appends its holder to order when it has what it waits for.
func waits(ctx context.Context, s *Semaphore, h Holder, n int, order *[]Holder) {
	go func() {
		if s.Acquire(ctx, h, n) == nil {
			*order = append(*order, h)
		}
	}()
	synctest.Wait()
}

func TestAcquire_ServesTheNamespaceThatHoldsLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Lists.Semaphore(4)
		var order []Holder
		for range 3 {
			waits(t.Context(), s, a, 1, &order)
		}
		waits(t.Context(), s, b, 1, &order)
		require.Equal(t, []Holder{a, a, a, b}, order)
		order = nil
		waits(t.Context(), s, a, 1, &order)
		waits(t.Context(), s, b, 1, &order)
		waits(t.Context(), s, c, 1, &order)
		require.Empty(t, order)
		for range 3 {
			s.Release(a, 1)
			synctest.Wait()
		}
		require.Equal(t, []Holder{c, a, b}, order, "of those that hold one, a came first")
	})
}

func TestAcquire_LetsNamespacesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Lists.Semaphore(1)
		var order []Holder
		for _, h := range []Holder{a, a, a, b, b} {
			waits(t.Context(), s, h, 1, &order)
		}
		for n := range 4 {
			s.Release(order[n], 1)
			synctest.Wait()
		}
		require.Equal(t, []Holder{a, a, b, a, b}, order)
	})
}

func TestAcquire_LetsNoSmallOnesPassALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Lists.Semaphore(4)
		require.NoError(t, s.TryAcquire(a, 3))
		ctx, cancel := context.WithCancel(t.Context())
		var order []Holder
		waits(ctx, s, b, 2, &order)
		waits(t.Context(), s, c, 1, &order)
		require.Empty(t, order)
		cancel()
		synctest.Wait()
		require.Equal(t, []Holder{c}, order, "the large one has left")
		waits(t.Context(), s, b, 2, &order)
		s.Release(a, 3)
		synctest.Wait()
		require.Equal(t, []Holder{c, b}, order)
		require.Equal(t, 3, s.InUse())
	})
}

func TestTryAcquire_CountsStoresLikeNamespaces(t *testing.T) {
	s := Streams.Semaphore(0)
	for n := range Streams.Share() {
		require.NoError(t, s.TryAcquire(Holder{Namespace: []string{"a", "b", "c"}[n%3], Store: "eu"}, 1))
	}
	require.EqualError(t, s.TryAcquire(Holder{"d", "eu"}, 1), "too many NDJSON batches: the store of the "+
		"namespace, which others must not wait for, holds its share of 48; this process leaves the rest of 64 to "+
		"others; retry later, or send the jobs as JSON")
	require.NoError(t, s.TryAcquire(Holder{"d", "main"}, 1))
}

func TestAssign_CountsForTheNextHolder(t *testing.T) {
	s := Requests.Semaphore(16)
	for range 12 {
		require.NoError(t, s.TryAcquire(Holder{}, 1))
		require.NoError(t, s.Assign(Holder{}, a, 1))
	}
	require.NoError(t, s.TryAcquire(Holder{}, 1), "it is not known whose it is")
	require.ErrorContains(t, s.Assign(Holder{}, a, 1), "the namespace holds its share of 12; this process leaves the "+
		"rest of 16 to others; retry with fewer requests at a time")
	require.NoError(t, s.Assign(Holder{}, b, 1))
	require.Equal(t, 13, s.InUse())
	s.Release(a, 12)
	s.Release(b, 1)
	require.Empty(t, s.held)
}

func TestPart_LeavesTheRest(t *testing.T) {
	s := Waits.Semaphore(8)
	part := s.Part(LeaseWaits, 6)
	for n := range 6 {
		require.NoError(t, part.TryAcquire(Holder{Namespace: string(rune('a' + n))}, 1))
	}
	require.ErrorContains(t, part.TryAcquire(Holder{Namespace: "x"}, 1), "jobs to lease: this process has room for 6")
	require.NoError(t, s.TryAcquire(Holder{Namespace: "x"}, 1))
}

func TestPart_CountsOnlyWhatItHolds(t *testing.T) {
	s := Waits.Semaphore(0)
	part := s.Part(LeaseWaits, LeaseWaits.Whole)
	for range 1000 {
		require.NoError(t, s.TryAcquire(a, 1))
	}
	for range Waits.Share() - 1000 {
		require.NoError(t, part.TryAcquire(a, 1))
	}
	require.ErrorContains(t, part.CheckRoom(a, 1),
		"the namespace holds its share of 1334; this process leaves the rest of 1778 to others")
	require.NoError(t, part.TryAcquire(b, 1))
	require.Equal(t, Waits.Share()-1000+1, part.InUse())
	require.Equal(t, Waits.Share()+1, s.InUse())
	part.Release(b, 1)
	require.Equal(t, Waits.Share(), s.InUse())
}

func TestAcquire_SaysWhyItFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Lists.Semaphore(0)
		fail := func(h Holder, n int) error {
			ctx, cancel := context.WithTimeout(t.Context(), ListWait)
			defer cancel()
			return s.Acquire(ctx, h, n)
		}
		require.NoError(t, s.TryAcquire(a, Lists.Share()))
		require.EqualError(t, fail(a, 1), "too many lists that are read: the namespace holds its share of 3; "+
			"this process leaves the rest of 4 to others; retry, or use a smaller limit")
		const full = "too many lists that are read: this process has room for 4; retry, or use a smaller limit"
		require.EqualError(t, fail(b, 2), full)
		var order []Holder
		waits(t.Context(), s, b, 2, &order)
		require.EqualError(t, fail(c, 1), full, "another one is next")

		ctx, leave := context.WithCancelCause(t.Context())
		left := errors.New("the client has left")
		leave(left)
		require.Equal(t, left, s.Acquire(ctx, a, 1))
		s.Release(a, Lists.Share())
		synctest.Wait()
		require.Equal(t, []Holder{b}, order)
	})
}
