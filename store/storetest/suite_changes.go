package storetest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// changesReader keeps the documents of a kind by ListChanges.
type changesReader struct {
	*suite
	docs     map[string]store.Document // by name
	revision int64
}

func (s *suite) newReader() *changesReader {
	r := &changesReader{suite: s}
	r.read(0)
	return r
}

// changes returns what changed since a revision.
func (s *suite) changes(since int64) store.Changes {
	changes, err := s.Store.ListChanges(s.Context(), s.documentKey("").Kind, since)
	require.NoError(s, err)
	changes.Documents = withoutEmpty(changes.Documents)
	return changes
}

// read reads what changed since a revision, and compares the result with the list of all documents.
func (r *changesReader) read(since int64) store.Changes {
	changes := r.changes(since)
	if changes.IsComplete {
		r.docs = make(map[string]store.Document)
	}
	seen := make(map[store.DocumentKey]bool)
	for _, doc := range changes.Documents {
		require.False(r, seen[doc.Key], "each document once")
		seen[doc.Key] = true
		if doc.Revision == 0 {
			require.Equal(r, store.Document{Key: doc.Key}, doc)
			delete(r.docs, doc.Key.Name)
		} else {
			r.docs[doc.Key.Name] = doc
		}
	}
	r.revision = changes.Revision
	stored, revision, err := r.Store.ListDocuments(r.Context(), r.documentKey(""), 0)
	require.NoError(r, err)
	require.Equal(r, revision, changes.Revision)
	require.Len(r, r.docs, len(stored))
	for _, doc := range stored {
		require.Equal(r, doc, r.docs[doc.Key.Name])
	}
	return changes
}

// putValue writes a document, or removes it without a value.
func (s *suite) putValue(name, value string) store.Document {
	doc, err := s.putDocument(store.NewToken(), store.Document{Key: s.documentKey(name), Value: []byte(value)})
	require.NoError(s, err)
	return doc
}

// putTogether writes documents at the same time.
func (s *suite) putTogether(n int, name func(i int) string) {
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := w; i < n; i += 8 {
				s.putValue(name(i), fmt.Sprint(i))
			}
		})
	}
	writers.Wait()
}

var changesCases = []testCase{
	{"contain each changed document once, as it is now", func(s *suite) {
		r := s.newReader()
		require.Zero(s, r.revision)
		first := []store.Document{s.putValue("a", "1"), s.putValue("b", "1"), s.putValue("c", "1")}
		all := r.read(r.revision)
		require.True(s, all.IsComplete, "the first read")
		require.ElementsMatch(s, first, all.Documents)
		require.Equal(s, store.Changes{Revision: r.revision}, r.read(r.revision), "nothing has changed")

		for _, value := range []string{"2", "3"} {
			b := s.putValue("b", value)
			require.Equal(s, store.Changes{Documents: []store.Document{b}, Revision: b.Revision}, s.changes(r.revision))
		}
		s.putValue("a", "")
		s.putValue("c", "")
		s.putValue("none", "")
		c := s.putValue("c", "1")
		changes := r.read(r.revision)
		require.False(s, changes.IsComplete)
		require.Len(s, changes.Documents, 4)
		require.Equal(s, c, r.docs["c"], "removed and created again")

		require.Equal(s, store.Changes{Revision: c.Revision}, r.read(c.Revision))
		s.putValue("c", "")
		s.putValue("b", "")
		require.Len(s, r.read(r.revision).Documents, 2)
		require.Empty(s, r.docs)
	}},
	{"are of one kind, and of calls that changed something", func(s *suite) {
		r, token := s.newReader(), store.NewToken()
		doc := store.Document{Key: s.documentKey("a"), Value: []byte("1"), Revision: store.MustNotExist}
		first, err := s.putDocument(token, doc)
		require.NoError(s, err)
		r.read(r.revision)
		_, err = s.putDocument(token, doc)
		require.NoError(s, err)
		_, err = s.putDocument(store.NewToken(), doc)
		require.ErrorIs(s, err, store.ErrVersion)
		doc.Key.Kind, doc.Revision = "another-kind", 0
		_, err = s.putDocument(store.NewToken(), doc)
		require.NoError(s, err)
		require.Equal(s, store.Changes{Revision: first.Revision}, r.read(r.revision))
	}},
	{"of many writers are all found", func(s *suite) {
		r, done := s.newReader(), make(chan struct{})
		s.putValue("first", "1")
		r.read(0)
		go func() {
			defer close(done)
			s.putTogether(60, func(i int) string { return fmt.Sprint("name-", i%7) })
		}()
		// What is read beside them need not be what the list says a moment later.
		docs, revision := map[string]int64{}, r.revision
		for isDone := false; !isDone; {
			select {
			case <-done:
				isDone = true
			default:
			}
			changes := s.changes(revision)
			require.False(s, changes.IsComplete)
			require.GreaterOrEqual(s, changes.Revision, revision)
			for _, doc := range changes.Documents {
				docs[doc.Key.Name] = doc.Revision
			}
			revision = changes.Revision
		}
		require.Len(s, r.read(r.revision).Documents, 7)
		require.Equal(s, r.revision, revision)
		for name, doc := range r.docs {
			require.True(s, name == "first" || docs[name] == doc.Revision, name)
		}
	}},
	{"since a revision that is not known are all documents", func(s *suite) {
		r := s.newReader()
		s.putValue("gone", "1")
		behind := s.putValue("kept", "1").Revision
		r.read(0)
		removal := s.putValue("gone", "")
		require.Zero(s, removal.Revision)
		known := r.read(r.revision).Revision
		s.putTogether(store.KeptChanges-1, func(i int) string { return fmt.Sprint("name-", i%3) })
		require.False(s, r.read(known).IsComplete)
		require.True(s, r.read(behind).IsComplete, "it is too old")
		require.NotContains(s, r.docs, "gone")
		for _, since := range []int64{0, -1, r.revision + 1, r.revision + 3_600_000} {
			require.True(s, r.read(since).IsComplete, since)
		}
		s.putValue("kept", "2")
		require.True(s, r.read(known).IsComplete, "it is too old now")
	}},
	{"of lanes are those of all topics of the shard", func(s *suite) {
		since := func(revision int64) (store.Changes, []string) {
			changes, err := s.shard().ListChanges(s.Context(), store.KindLane, revision)
			require.NoError(s, err)
			var names []string
			for _, doc := range changes.Documents {
				names = append(names, fmt.Sprintf("%s %v", doc.Key.Queue(), doc.Revision > 0))
			}
			slices.Sort(names)
			return changes, names
		}
		a, b := s.laneQueue(1), s.queueOf("other", "another", 2)
		s.putLane(a, policy.Lane{LaneConcurrency: 3})
		s.putLane(b, policy.Lane{LaneConcurrency: 3})
		all, names := since(0)
		require.True(s, all.IsComplete)
		require.Equal(s, []string{a.String() + " true", b.String() + " true"}, names)
		put := s.putLane(b, policy.Lane{LaneConcurrency: 4})
		s.putLane(a, policy.Lane{})
		changes, names := since(all.Revision)
		require.False(s, changes.IsComplete)
		require.Equal(s, []string{a.String() + " false", b.String() + " true"}, names)
		for _, doc := range changes.Documents {
			if doc.Revision != 0 {
				lane, err := doc.Lane()
				require.NoError(s, err)
				require.Equal(s, put.Settings, lane.Settings)
			}
		}
		same, names := since(changes.Revision)
		require.Empty(s, names)
		require.Equal(s, changes.Revision, same.Revision)
		again, _ := since(changes.Revision + 1)
		require.True(s, again.IsComplete, "an unknown revision")
		require.Len(s, again.Documents, 1)
	}},
	{"survive a restart", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		r := s.newReader()
		s.putValue("a", "1")
		s.putValue("b", "1")
		r.read(0)
		s.putValue("a", "")
		s.Store = s.Reopen()
		changes := r.read(r.revision)
		require.False(s, changes.IsComplete)
		require.Len(s, changes.Documents, 1)
	}},
}
