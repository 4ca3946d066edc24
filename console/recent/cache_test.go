package recent_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/console/recent"
)

// reader reads numbers that count the reads.
type reader struct {
	recent.Cache[int]

	took  time.Duration
	reads int
	err   error
}

func (r *reader) read(t *testing.T, key string) (int, time.Time) {
	t.Helper()
	n, at, err := r.Read(t.Context(), key, r.next)
	require.Equal(t, r.err, err)
	return n, at
}

func (r *reader) next(context.Context) (int, error) {
	time.Sleep(r.took)
	r.reads++
	return r.reads, r.err
}

func TestCache_ReusesAnswersForAsLongAsTheyWereExpensive(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{ // from the request on
		0:                      0,
		20 * time.Millisecond:  1020 * time.Millisecond,
		100 * time.Millisecond: 5100 * time.Millisecond,
		3 * time.Second:        13 * time.Second,
	} {
		t.Run(took.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := reader{took: took}
				first, at := r.read(t, "a")
				if want > 0 {
					time.Sleep(time.Until(at.Add(want - time.Millisecond)))
					again, sameAt := r.read(t, "a")
					require.Equal(t, first, again)
					require.Equal(t, at, sameAt)
				}
				time.Sleep(time.Until(at.Add(want)))
				began := time.Now()
				again, newAt := r.read(t, "a")
				require.Equal(t, first+1, again)
				require.Equal(t, began, newAt)
			})
		})
	}
}

func TestCache_ReadsOnceForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reader{took: time.Second}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				n, _, err := r.Read(t.Context(), "a", r.next)
				require.NoError(t, err)
				require.Equal(t, 1, n)
			})
		}
		synctest.Wait() // one of them reads
		left, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _, err := r.Read(left, "a", r.next)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		all.Wait()
		require.Equal(t, 1, r.reads)
	})
}

func TestCache_LetsTheNextReaderTryAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reader{took: time.Second, err: errors.New("the token was revoked")}
		go func() { _, _, _ = r.Read(t.Context(), "a", r.next) }()
		synctest.Wait()
		n, _, err := r.Read(t.Context(), "a", func(context.Context) (int, error) { return 7, nil })
		require.NoError(t, err)
		require.Equal(t, 7, n)
	})
}

func TestCache_LetsTheNextReaderTryAfterAPanic(t *testing.T) {
	var c recent.Cache[int]
	require.Panics(t,
		func() { _, _, _ = c.Read(t.Context(), "a", func(context.Context) (int, error) { panic("read") }) })
	n, _, err := c.Read(t.Context(), "a", func(context.Context) (int, error) { return 7, nil })
	require.NoError(t, err)
	require.Equal(t, 7, n)
}

func TestCache_DoesNotKeepErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reader{took: time.Second}
		r.read(t, "a")
		time.Sleep(11 * time.Second)
		r.err = errors.New("no answer")
		r.read(t, "a")
		r.err = nil
		n, _ := r.read(t, "a")
		require.Equal(t, 3, n)
	})
}

func TestCache_KeepsOthersWhenItRenewsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reader{took: 20 * time.Millisecond}
		for i := range recent.MaxKeys {
			r.read(t, strconv.Itoa(i))
		}
		r.read(t, "0") // its answer is too old
		before := r.reads
		r.read(t, strconv.Itoa(recent.MaxKeys-1))
		require.Equal(t, before, r.reads)
		r.read(t, "another") // finds no room
		r.read(t, strconv.Itoa(recent.MaxKeys-1))
		require.Equal(t, before+2, r.reads)
	})
}
