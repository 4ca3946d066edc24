package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// documentKey returns the key of a document of a kind that no engine knows.
func (s *suite) documentKey(name string) store.DocumentKey {
	return store.DocumentKey{Kind: "unknown-kind", Namespace: s.queue.Namespace, Name: name}
}

// putDocument writes a document with limits that pause.
func (s *suite) putDocument(token store.Token, doc store.Document) (store.Document, error) {
	put, err := s.Store.PutDocument(s.Context(), token, doc, policy.Limits{Paused: true})
	put.Durability = nil
	return put, err
}

var documentCases = []testCase{
	{"of unknown kinds are stored, and their limits ignored", func(s *suite) {
		policies, topicsBefore, err := ListTopics(s.Context(), s.Store)
		require.NoError(s, err)
		var keys []store.DocumentKey
		var wanted []store.Document
		for i := range 5 {
			key := s.documentKey(s.queue.Topic + "12345"[:i]) // among them the name of the topic
			doc, err := s.putDocument(store.NewToken(),
				store.Document{Key: key, Value: fmt.Appendf(nil, `{"n": %d}`, i)})
			require.NoError(s, err)
			keys, wanted = append(keys, key), append(wanted, doc)
		}
		got, err := s.Store.GetDocuments(s.Context(), append(slices.Clip(keys), s.documentKey("none")))
		require.NoError(s, err)
		require.Equal(s, append(slices.Clip(wanted), store.Document{Key: s.documentKey("none")}), withoutEmpty(got))
		for _, limit := range []int{0, 2, 100} {
			page, revision, err := s.Store.ListDocuments(s.Context(), keys[0], limit)
			require.NoError(s, err)
			require.Equal(s, wanted[4].Revision, revision)
			if limit == 2 {
				require.Equal(s, wanted[1:3], page)
			} else {
				require.Equal(s, wanted[1:], page)
			}
		}
		s.insertNew(s.entry("a"))
		s.claimAll("a")
		topics, revision, err := ListTopics(s.Context(), s.Store)
		require.NoError(s, err)
		require.Equal(s, policies, topics)
		require.Equal(s, topicsBefore, revision)
	}},
	{"the revision of a kind grows with every change, also with a removal", func(s *suite) {
		last := int64(0)
		for _, value := range []string{"1", "2", "", "", "3"} {
			put, err := s.putDocument(store.NewToken(), store.Document{Key: s.documentKey("a"), Value: []byte(value)})
			require.NoError(s, err)
			docs, revision, err := s.Store.ListDocuments(s.Context(), s.documentKey(""), 0)
			require.NoError(s, err)
			require.Greater(s, revision, last)
			last = revision
			if value == "" {
				require.Zero(s, put.Revision)
				require.Empty(s, docs)
				continue
			}
			require.Equal(s, revision, put.Revision)
			require.Equal(s, []store.Document{put}, docs)
		}
	}},
	{"a revision is the time of its change", func(s *suite) {
		for range 2 {
			s.advance(s.shortTime())
			put, err := s.putDocument(store.NewToken(), store.Document{Key: s.documentKey("a"), Value: []byte("1")})
			require.NoError(s, err)
			s.sameTime(s.now(), time.UnixMilli(put.Revision).UTC(), "the revision")
		}
	}},
	{"a repeated token returns the first result and changes nothing", func(s *suite) {
		token, doc := store.NewToken(), store.Document{
			Key: s.documentKey("a"), Value: []byte("1"),
			Revision: store.MustNotExist,
		}
		first, err := s.putDocument(token, doc)
		require.NoError(s, err)
		refused := store.NewToken()
		_, err = s.putDocument(refused, doc)
		require.ErrorIs(s, err, store.ErrVersion)
		other, err := s.putDocument(store.NewToken(), store.Document{Key: doc.Key})
		require.NoError(s, err)
		require.Zero(s, other.Revision)
		again, err := s.putDocument(token, doc)
		require.NoError(s, err)
		require.Equal(s, first.Revision, again.Revision)
		_, err = s.putDocument(refused, doc)
		require.ErrorIs(s, err, store.ErrVersion, "as the first call")
		docs, err := s.Store.GetDocuments(s.Context(), []store.DocumentKey{doc.Key})
		require.NoError(s, err)
		require.Zero(s, docs[0].Revision)
	}},
	{"survive a restart", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		put, err := s.putDocument(store.NewToken(), store.Document{Key: s.documentKey("a"), Value: []byte(`"ü"`)})
		require.NoError(s, err)
		s.Store = s.Reopen()
		docs, revision, err := s.Store.ListDocuments(s.Context(), s.documentKey(""), 0)
		require.NoError(s, err)
		require.Equal(s, []store.Document{put}, docs)
		require.Equal(s, put.Revision, revision)
	}},
}

// withoutEmpty makes empty values nil.
func withoutEmpty(docs []store.Document) []store.Document {
	for i := range docs {
		if len(docs[i].Value) == 0 {
			docs[i].Value = nil
		}
	}
	return docs
}
