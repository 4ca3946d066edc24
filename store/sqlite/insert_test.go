package sqlite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

func TestInsert_MakesNoTopicForAConflict(t *testing.T) {
	s := openStore(t, options(t))
	first := newJob("a", time.Hour)
	first.Fingerprint = []byte("first")
	insert(t, s, first)
	second := first
	second.Topic, second.Fingerprint = "unknown", []byte("second")
	require.Equal(t, store.Conflict, insert(t, s, second)[0].Outcome)
	topics := 0
	inWriter(t, s, func() { topics = len(s.mem.Topics) })
	require.Equal(t, 1, topics)
	second.ID = "b"
	require.Equal(t, store.Created, insert(t, s, second)[0].Outcome)
}

func TestInsert_ChangesNothingWhenAJobIsUnreadable(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	known := newJob("known", time.Hour)
	known.Fingerprint = []byte("print")
	insert(t, s, known)
	shell(t, o.Path, "UPDATE jobs SET "+unreadableSpec)
	_, err := s.Insert(t.Context(), store.NewToken(), []store.NewJob{newJob("new", time.Hour), known})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorIs(t, getError(s, ref("new")), store.ErrNotFound)
	_, err = s.Cancel(t.Context(), store.NewToken(), known.Ref(), store.Cancellation{})
	require.ErrorIs(t, err, store.ErrUnavailable)
}
