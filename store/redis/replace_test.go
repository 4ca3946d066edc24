package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestReplace_KeepsFieldsOfANewerVersion(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		e := entry("a")
		e.ExpiresIn = time.Hour
		insert(t, s, e)
		key := s.shards[0].Keys.Jobs
		before, err := s.Client.HGet(t.Context(), key, "a").Result()
		require.NoError(t, err)
		newer := codec.AppendField(nil, 60, []byte("from the future"))
		require.NoError(t, s.Client.HSet(t.Context(), key, "a", before+string(newer)).Err())

		edited, err := storetest.Edit(t.Context(), s.Shards()[0], store.NewToken(), ref("a"),
			func(spec *job.Spec) { spec.URL = "https://other.example/" })
		require.NoError(t, err)
		require.Equal(t, "https://other.example/", edited.URL)
		require.False(t, edited.ExpiresAt.IsZero())
		_, err = s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("a"), store.Cancellation{})
		require.NoError(t, err)
		_, err = reviveOne(t, s, store.NewToken(), "a", 0)
		require.NoError(t, err)
		after, err := s.Client.HGet(t.Context(), key, "a").Result()
		require.NoError(t, err)
		require.Contains(t, after, string(newer))
	})
}
