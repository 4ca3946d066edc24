package pull

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestLeaseKey_IsOneInAllProcessesAlsoAfterTheStoreHasLostIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		processes := make([]*leaseKey, 4)
		for i := range processes {
			processes[i] = newLeaseKey(s, slog.New(slog.DiscardHandler))
		}
		get := func() store.LeaseKey {
			keys := make([]store.LeaseKey, len(processes))
			var calls sync.WaitGroup
			for i, p := range processes {
				calls.Go(func() { keys[i], _ = p.Get(t.Context()) })
			}
			calls.Wait()
			require.NotZero(t, keys[0])
			for _, key := range keys {
				require.Equal(t, keys[0], key)
			}
			return keys[0]
		}
		first := get()
		key := store.DocumentKey{Kind: kindLeaseKey, Namespace: job.DefaultNamespace, Name: "leases"}
		_, err := s.PutDocument(t.Context(), store.NewToken(), store.Document{Key: key}, policy.Limits{})
		require.NoError(t, err)
		time.Sleep(maxLeaseKeyAge + time.Second)
		require.Equal(t, first, get(), "the leases that clients have stay valid")
		processes[0] = newLeaseKey(s, slog.New(slog.DiscardHandler))
		require.Equal(t, first, get(), "also for a process that did not know the key")

		_, err = s.PutDocument(t.Context(), store.NewToken(),
			store.Document{Key: key, Value: []byte(`"AAAA"`)}, policy.Limits{})
		require.NoError(t, err)
		_, err = newLeaseKey(s, slog.New(slog.DiscardHandler)).Get(t.Context())
		require.ErrorIs(t, err, store.ErrUnreadable)
	})
}
