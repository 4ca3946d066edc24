package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// After a failover that rolled documents back, the last revision is an older one. The next must not be one that a
// process has cached.
func TestNextRevision_IsNoneThatWasGivenBefore(t *testing.T) {
	const now = 1_700_000_000_000
	first := store.NextRevision(0, now)
	lost := store.NextRevision(first, now+10)
	require.Greater(t, lost, first)
	require.Greater(t, store.NextRevision(first, now+20), lost, "the write of lost was rolled back")
	require.Equal(t, lost+1, store.NextRevision(lost, now-1000), "the clock was set back")
}

func TestCheckRevision_AllowsTheStoredOne(t *testing.T) {
	for _, c := range []struct {
		required, stored int64
		ok               bool
	}{
		{0, 0, true},
		{0, 7, true},
		{7, 7, true},
		{6, 7, false},
		{7, 0, false},
		{store.MustNotExist, 0, true},
		{store.MustNotExist, 7, false},
	} {
		err := store.CheckRevision(c.required, c.stored)
		require.Equal(t, c.ok, err == nil, "%+v", c)
		if !c.ok {
			require.ErrorIs(t, err, store.ErrVersion)
		}
	}
}

func TestDocument_UnreadableOnesAreAPause(t *testing.T) {
	doc := store.Document{
		Key:      store.DocumentKey{Kind: store.KindTopic, Namespace: "default", Name: "orders"},
		Revision: 3, Value: []byte(`{"workers":"x"}`),
	}
	topic, err := doc.Topic()
	require.ErrorIs(t, err, store.ErrUnreadable)
	require.Equal(t, store.Topic{
		Namespace: "default", Name: "orders", Revision: 3, Policy: policy.Topic{Paused: true},
		Unreadable: true,
	}, topic)
	lane, err := doc.Lane()
	require.NoError(t, err, "no setting of a lane")
	require.False(t, lane.Unreadable)
	doc.Value = []byte("{")
	lane, err = doc.Lane()
	require.ErrorIs(t, err, store.ErrUnreadable)
	require.True(t, lane.Unreadable && lane.Settings.Paused)
	doc = store.Document{Key: doc.Key}
	topic, err = doc.Topic()
	require.NoError(t, err)
	require.Equal(t, store.Topic{Namespace: "default", Name: "orders"}, topic, "none is stored")
}
