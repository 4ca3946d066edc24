package dispatcher

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

func TestPolicies_RolledBackRevisionsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rollbackStore{revision: 7}
		p := newPolicies(s, policy.Builtin(), func(store.Topic) *secrets.Credentials { return nil }, slog.New(slog.DiscardHandler))
		require.True(t, p.Sync(t.Context(), 7))
		require.Equal(t, 7, p.Get("n", "t").resolved.Workers)

		s.revision = 5
		require.True(t, p.Sync(t.Context(), 5), "an answer that was under way is nothing new")
		require.Equal(t, 1, s.read)
		time.Sleep(2 * policiesMaxAge)
		require.True(t, p.Sync(t.Context(), 5))
		require.Equal(t, 5, p.Get("n", "t").resolved.Workers)
		require.Equal(t, 2, s.read)
		require.True(t, p.Sync(t.Context(), 5))
		require.Equal(t, 2, s.read)
	})
}

func TestPolicies_FreshReadNeverReturnsAnOlderOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rollbackStore{revision: 1}
		p := newPolicies(s, policy.Builtin(), func(store.Topic) *secrets.Credentials { return nil }, slog.New(slog.DiscardHandler))
		p.loading <- struct{}{} // a reading that began before
		read := make(chan int64, 2)
		for range cap(read) {
			go func() {
				set, err := p.Snapshot(t.Context(), current)
				assert.NoError(t, err)
				read <- set.revision
			}()
		}
		synctest.Wait()
		_, err := p.load(t.Context(), reloadTimeout)
		require.NoError(t, err)
		s.revision = 2
		time.Sleep(time.Millisecond)
		p.loading.unlock()
		require.Equal(t, int64(2), <-read)
		require.Equal(t, int64(2), <-read)
		require.Equal(t, 2, s.read, "they share one reading")
	})
}
