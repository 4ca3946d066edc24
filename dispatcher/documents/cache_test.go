package documents

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

// rollbackStore has one document with its revision as the value. It can roll it back, as a failover does.
type rollbackStore struct {
	store.Settings
	revision int64
	err      error
	calls    int
	read     int // documents
}

func (s *rollbackStore) ListDocuments(
	_ context.Context, after store.DocumentKey, _ int, known int64,
) ([]store.Document, int64, error) {
	s.calls++
	if s.err != nil || known == s.revision {
		return nil, s.revision, s.err
	}
	s.read++
	return []store.Document{{
		Key:   store.DocumentKey{Kind: after.Kind, Namespace: "n", Name: "t"},
		Value: strconv.AppendInt(nil, s.revision, 10), Revision: s.revision,
	}}, s.revision, nil
}

// newCache returns a cache whose values are pointers, so that a test sees which ones were decoded again.
func newCache(s store.Settings) *Cache[*string] {
	return New(Options[*string]{
		Settings: s, Kind: "number", Logger: slog.New(slog.DiscardHandler),
		Decode: func(doc store.Document, _ *string) (*string, error) { return new(string(doc.Value)), nil },
	})
}

func TestSync_DropsRolledBackRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rollbackStore{revision: 7}
		c := newCache(s)
		require.True(t, c.Sync(t.Context(), 7))
		require.Equal(t, "7", *c.Loaded().Get("n", "t"))

		s.revision = 5
		require.True(t, c.Sync(t.Context(), 5), "an answer that was under way is nothing new")
		require.Equal(t, 1, s.calls)
		time.Sleep(2 * rollbackAge)
		require.True(t, c.Sync(t.Context(), 5))
		require.Equal(t, "5", *c.Loaded().Get("n", "t"))
		require.Equal(t, 2, s.calls)
		require.True(t, c.Sync(t.Context(), 5))
		require.Equal(t, 2, s.calls)
	})
}

func TestReload_ReturnsNoSetThatWasReadBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rollbackStore{revision: 1}
		c := newCache(s)
		c.loading <- struct{}{} // a load that began before
		read := make(chan int64, 2)
		for range cap(read) {
			go func() {
				set, err := c.Reload(t.Context())
				assert.NoError(t, err)
				read <- set.revision
			}()
		}
		synctest.Wait()
		_, err := c.load(t.Context(), reloadTimeout)
		require.NoError(t, err)
		s.revision = 2
		time.Sleep(time.Millisecond)
		c.loading.unlock()
		require.Equal(t, int64(2), <-read)
		require.Equal(t, int64(2), <-read)
		require.Equal(t, 2, s.calls, "they share one load")
	})
}

func TestReload_ReadsAndDecodesOnlyWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rollbackStore{revision: 1}
		c := newCache(s)
		first, err := c.Reload(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		second, err := c.Reload(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int{2, 1}, []int{s.calls, s.read})
		require.Equal(t, time.Second, second.LoadedAt.Sub(first.LoadedAt))
		require.Same(t, first.Get("n", "t"), second.Get("n", "t"))
		s.revision = 2
		third, err := c.Reload(t.Context())
		require.NoError(t, err)
		require.Equal(t, "2", *third.Get("n", "t"))
		require.Equal(t, "1", *second.Get("n", "t"), "sets do not change")
	})
}

func TestSnapshot_IsReloadedByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rollbackStore{revision: 1, err: store.ErrUnavailable}
		c := newCache(s)
		for range 2 {
			_, err := c.Snapshot(t.Context(), time.Second)
			require.ErrorIs(t, err, store.ErrUnavailable, "never loaded")
		}
		require.Equal(t, 1, s.calls, "and not loaded again for a second")
		time.Sleep(time.Second)
		s.err = nil
		for i := range 2 {
			set, err := c.Snapshot(t.Context(), time.Second)
			require.NoError(t, err)
			require.Equal(t, "1", *set.Get("n", "t"))
			require.Equal(t, 2, s.calls)
			time.Sleep(time.Duration(1-i) * time.Second)
		}
		s.revision = 2
		time.Sleep(time.Millisecond)
		set, err := c.Snapshot(t.Context(), AnyAge)
		require.NoError(t, err)
		require.Equal(t, "1", *set.Get("n", "t"))
		set, err = c.Snapshot(t.Context(), time.Second)
		require.NoError(t, err)
		require.Equal(t, "2", *set.Get("n", "t"))
		s.err = store.ErrUnavailable
		time.Sleep(time.Hour)
		for range 2 {
			set, err = c.Snapshot(t.Context(), time.Second)
			require.NoError(t, err)
			require.Equal(t, "2", *set.Get("n", "t"), "used while the store cannot be read")
		}
		require.Equal(t, 4, s.calls)
	})
}
