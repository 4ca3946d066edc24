package documents

import (
	"context"
	"log/slog"
	"maps"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// rollbackStore has one document with its revision as the value. It can roll it back, as a failover does.
type rollbackStore struct {
	store.Settings
	revision int64
	err      error
	calls    int
	read     int // documents
}

func (s *rollbackStore) ListChanges(_ context.Context, kind string, since int64) (store.Changes, error) {
	s.calls++
	if s.err != nil || since == s.revision {
		return store.Changes{Revision: s.revision}, s.err
	}
	s.read++
	return store.Changes{IsComplete: true, Revision: s.revision, Documents: []store.Document{{
		Key:   store.DocumentKey{Kind: kind, Namespace: "n", Name: "t"},
		Value: strconv.AppendInt(nil, s.revision, 10), Revision: s.revision,
	}}}, nil
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

// forgetfulStore may know no revision.
type forgetfulStore struct {
	store.Store
	forgets bool
}

func (s *forgetfulStore) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	if s.forgets {
		since = 0
	}
	return s.Store.ListChanges(ctx, kind, since)
}

func TestReload_DecodesChangedDocumentsOnly(t *testing.T) {
	for name, forgets := range map[string]bool{"changes": false, "complete lists": true} {
		t.Run(name, func(t *testing.T) {
			s := &forgetfulStore{storetest.NewModel(storetest.ModelOptions{}), forgets}
			var decoded []string
			c := New(Options[string]{
				Settings: s, Kind: "number", Logger: slog.New(slog.DiscardHandler),
				Decode: func(doc store.Document, _ string) (string, error) {
					decoded = append(decoded, doc.Key.Name)
					if string(doc.Value) == "damaged" {
						return "", store.ErrUnreadable
					}
					return string(doc.Value), nil
				},
			})
			for _, step := range []struct {
				puts    [][2]string // name and value; no value: it is removed
				decoded []string
				cached  map[string]string
			}{
				{nil, nil, map[string]string{}},
				{
					[][2]string{{"a", "1"}, {"b", "1"}, {"c", "1"}},
					[]string{"a", "b", "c"},
					map[string]string{"a": "1", "b": "1", "c": "1"},
				},
				{nil, nil, map[string]string{"a": "1", "b": "1", "c": "1"}},
				{[][2]string{{"b", "2"}}, []string{"b"}, map[string]string{"a": "1", "b": "2", "c": "1"}},
				{[][2]string{{"a", ""}}, nil, map[string]string{"b": "2", "c": "1"}},
				{[][2]string{{"b", ""}, {"b", "3"}}, []string{"b"}, map[string]string{"b": "3", "c": "1"}},
				{[][2]string{{"new", "1"}, {"new", ""}}, nil, map[string]string{"b": "3", "c": "1"}},
				{[][2]string{{"b", "damaged"}}, []string{"b"}, map[string]string{"c": "1"}},
				{[][2]string{{"b", "4"}}, []string{"b"}, map[string]string{"b": "4", "c": "1"}},
			} {
				for _, put := range step.puts {
					key := store.DocumentKey{Kind: "number", Namespace: "n", Name: put[0]}
					_, err := s.PutDocument(t.Context(), store.NewToken(),
						store.Document{Key: key, Value: []byte(put[1])}, policy.Limits{})
					require.NoError(t, err)
				}
				before := maps.Clone(c.Loaded().Values)
				last := c.Loaded()
				decoded = nil
				set, err := c.Reload(t.Context())
				require.NoError(t, err)
				require.Equal(t, step.decoded, decoded)
				require.Len(t, set.Values, len(step.cached))
				for name, value := range step.cached {
					require.Equal(t, value, set.Get("n", name))
				}
				require.Equal(t, before, last.Values, "sets do not change")
			}
		})
	}
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
