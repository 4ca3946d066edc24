package router

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func double(items []int) ([]int, error) {
	out := make([]int, len(items))
	for i, x := range items {
		out[i] = 2 * x
	}
	return out, nil
}

func TestBatcher_ReturnsEachCallerItsOwnResults(t *testing.T) {
	b := newBatcher(16, 0, nil, double)
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			got, err := b.do(t.Context(), []int{i, -i})
			if err != nil || len(got) != 2 || got[0] != 2*i || got[1] != -2*i {
				t.Errorf("caller %d got %v, %v", i, got, err)
			}
		})
	}
	wg.Wait()
}

func TestBatcher_CombinesItemsThatWaitDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		gate := make(chan struct{})
		b := newBatcher(8, 0, nil, func(items []int) ([]int, error) {
			sizes = append(sizes, len(items))
			<-gate
			return double(items)
		})
		var wg sync.WaitGroup
		for i := range 21 {
			wg.Go(func() { _, _ = b.do(t.Context(), []int{i}) })
			synctest.Wait()
		}
		require.Equal(t, []int{1}, sizes, "the first goes alone and at once")
		close(gate)
		wg.Wait()
		require.Equal(t, []int{1, 8, 8, 4}, sizes)
	})
}

func TestBatcher_RemovesTheItemsOfACallerThatStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var seen []int
		b := newBatcher(8, 0, nil, func(items []int) ([]int, error) {
			<-gate
			seen = append(seen, items...)
			return double(items)
		})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = b.do(t.Context(), []int{1}) })
		synctest.Wait()
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wg.Go(func() {
			_, err := b.do(hasty, []int{2})
			if err == nil {
				t.Error("the caller was answered although its context had ended")
			}
		})
		wg.Go(func() { _, _ = b.do(t.Context(), []int{3}) })
		time.Sleep(2 * time.Second)
		close(gate)
		wg.Wait()
		require.Equal(t, []int{1, 3}, seen)
		got, err := b.do(t.Context(), []int{4})
		require.NoError(t, err, "the batcher goes on")
		require.Equal(t, []int{8}, got)
	})
}

func TestBatcher_BoundsTheSizeOfACallButAllowsOneGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]int
		gate := make(chan struct{})
		b := newBatcher(8, 10, func(x int) int { return x }, func(items []int) ([]int, error) {
			calls = append(calls, items)
			<-gate
			return double(items)
		})
		var wg sync.WaitGroup
		for _, x := range []int{1, 4, 6, 50, 3} {
			wg.Go(func() { _, _ = b.do(t.Context(), []int{x}) })
			synctest.Wait()
		}
		close(gate)
		wg.Wait()
		require.Equal(t, [][]int{{1}, {4, 6}, {50}, {3}}, calls)
	})
}

func TestBatcher_ReturnsWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatcher(8, 0, nil, func(items []int) ([]int, error) {
			time.Sleep(10 * time.Second)
			return double(items)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := b.do(ctx, []int{1})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		time.Sleep(10 * time.Second)
	})
}

func TestBatcher_ReturnsTheErrorOfTheCall(t *testing.T) {
	fault := errors.New("no store")
	b := newBatcher(8, 0, nil, func([]int) ([]int, error) { return nil, fault })
	_, err := b.do(t.Context(), []int{1, 2})
	require.ErrorIs(t, err, fault)
}
