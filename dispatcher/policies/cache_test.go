package policies

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// rollbackStore can roll its policies back, as a failover does.
type rollbackStore struct {
	store.Store
	revision int64
	read     int
}

func (s *rollbackStore) ListDocuments(context.Context, store.DocumentKey, int) ([]store.Document, int64, error) {
	s.read++
	return []store.Document{{
		Key:   store.DocumentKey{Kind: store.KindTopic, Namespace: "n", Name: "t"},
		Value: fmt.Appendf(nil, `{"workers":%d}`, s.revision), Revision: s.revision,
	}}, s.revision, nil
}

func newCache(s store.Settings) *Cache {
	return New(Options{
		Settings: s, Defaults: policy.Builtin(), OpenCredentials: func(store.Topic) *secrets.Credentials { return nil },
		Logger: slog.New(slog.DiscardHandler),
	})
}

func TestSync_DropsRolledBackRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rollbackStore{revision: 7}
		c := newCache(s)
		require.True(t, c.Sync(t.Context(), 7))
		require.Equal(t, 7, c.Get("n", "t").Resolved.Workers)

		s.revision = 5
		require.True(t, c.Sync(t.Context(), 5), "an answer that was under way is nothing new")
		require.Equal(t, 1, s.read)
		time.Sleep(2 * noClaimsMaxAge)
		require.True(t, c.Sync(t.Context(), 5))
		require.Equal(t, 5, c.Get("n", "t").Resolved.Workers)
		require.Equal(t, 2, s.read)
		require.True(t, c.Sync(t.Context(), 5))
		require.Equal(t, 2, s.read)
	})
}

func TestReload_ReturnsNoSetThatWasReadBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rollbackStore{revision: 1}
		c := newCache(s)
		c.loading <- struct{}{} // a reading that began before
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
		require.Equal(t, 2, s.read, "they share one reading")
	})
}
