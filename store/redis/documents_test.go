package redis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// roundTrips counts commands and pipelines.
type roundTrips struct {
	redis.Hook
	made int
}

func (r *roundTrips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.made++
		return next(ctx, cmd)
	}
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.made++
		return next(ctx, cmds)
	}
}

func TestGetDocuments_ReadsAllInOneRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		var keys []store.DocumentKey
		for i := range 5 {
			name := fmt.Sprint("topic-", i)
			if i%2 == 0 { // of the others there is none
				_, err := store.PutTopic(t.Context(), s,
					store.Topic{Namespace: lane.Namespace, Name: name, Policy: policy.Topic{Paused: true}})
				require.NoError(t, err)
			}
			keys = append(keys, store.DocumentKey{Kind: store.KindTopic, Namespace: lane.Namespace, Name: name})
		}
		count := &roundTrips{}
		s.Client.AddHook(count)
		docs, err := s.GetDocuments(t.Context(), keys)
		require.NoError(t, err)
		require.Equal(t, 1, count.made)
		for i, doc := range docs {
			require.Equal(t, keys[i], doc.Key)
			require.Equal(t, i%2 == 0, doc.Revision > 0)
		}
	})
}

func TestListChanges_ReadsOnlyOtherRevisions(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	key := store.DocumentKey{Kind: "many", Namespace: "n", Name: "last"}
	last, err := s.PutDocument(t.Context(), store.NewToken(),
		store.Document{Key: key, Value: []byte("{}")}, policy.Limits{})
	require.NoError(t, err)
	fields := make([]any, 0, 5000)
	for i := range cap(fields) / 2 {
		fields = append(fields, fmt.Sprintf("n/%04d", i), "1 {} {}")
	}
	require.NoError(t, s.Client.HSet(t.Context(), layout.DocumentsKey("rb", "many"), fields...).Err())
	s.health.Check(t.Context())
	count := &roundTrips{}
	s.Client.AddHook(count)
	changes, err := s.ListChanges(t.Context(), "many", last.Revision-1)
	require.NoError(t, err)
	require.True(t, changes.IsComplete)
	require.Equal(t, last.Revision, changes.Revision)
	require.Len(t, changes.Documents, len(fields)/2+1)
	for i, doc := range changes.Documents[:len(fields)/2] {
		require.Equal(t, fmt.Sprintf("%04d", i), doc.Key.Name)
	}
	require.Equal(t, 2, count.made, "the changes and all documents")
	count.made = 0
	changes, err = s.ListChanges(t.Context(), "many", last.Revision)
	require.NoError(t, err)
	require.Equal(t, store.Changes{Revision: last.Revision}, changes)
	require.Equal(t, 1, count.made)
}

// A server may apply the first half of a script only, after a crash.
func TestPutDocument_WritesNoDocumentThatItsLogMisses(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	key := store.DocumentKey{Kind: "number", Namespace: "n", Name: "a"}
	require.NoError(t, s.Client.Set(t.Context(), layout.ChangesKey("rb", key.Kind), "no log", 0).Err())
	_, err := s.PutDocument(t.Context(), store.NewToken(), store.Document{Key: key, Value: []byte("1")},
		policy.Limits{})
	require.Error(t, err)
	docs, err := s.GetDocuments(t.Context(), []store.DocumentKey{key})
	require.NoError(t, err)
	require.Zero(t, docs[0].Revision)
}

// Scripts give revisions, since they have the clock.
func TestPutDocument_GivesTheNextRevision(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	for kind, put := range map[string]func() (int64, error){
		"topic": func() (int64, error) {
			put, err := store.PutTopic(t.Context(), s,
				store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true}})
			return put.Revision, err
		},
		"lane": func() (int64, error) {
			put, err := store.PutLane(t.Context(), s.Shards()[0], store.NewToken(),
				store.Lane{Queue: lane, Settings: policy.Lane{Paused: true}})
			return put.Revision, err
		},
	} {
		last := int64(0)
		for _, step := range []time.Duration{0, 0, time.Minute, -time.Hour, time.Millisecond} {
			clock.step(step)
			revision, err := put()
			require.NoError(t, err)
			require.Equal(t, store.NextRevision(last, clock.now().UnixMilli()), revision,
				"%s, after a step of %v", kind, step)
			last = revision
		}
	}
}

// failingOver replaces the documents of a kind before each command but the first, as if another server answered it.
type failingOver struct {
	redis.Hook
	replace  func(generation int)
	commands int
}

func (f *failingOver) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failingOver) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.commands++; f.commands > 1 {
			f.replace(f.commands)
		}
		return next(ctx, cmd)
	}
}

func (f *failingOver) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestListDocuments_ReadsAllOfOneServer(t *testing.T) {
	server := redistest.Start(t)
	s, others := open(t, Options{URL: server.URL()}), open(t, Options{URL: server.URL()})
	s.health.Check(t.Context())
	const documents = 3000
	key := layout.DocumentsKey("rb", "many")
	replace := func(generation int) {
		fields := []any{"", generation}
		for i := range documents {
			fields = append(fields, fmt.Sprintf("n/%d-%d", generation, i), fmt.Sprintf("%d {} {}", generation))
		}
		require.NoError(t, others.Client.Del(t.Context(), key).Err())
		require.NoError(t, others.Client.HSet(t.Context(), key, fields...).Err())
	}
	replace(1)
	s.Client.AddHook(&failingOver{replace: replace})
	docs, revision, err := s.ListDocuments(t.Context(), store.DocumentKey{Kind: "many"}, 0)
	require.NoError(t, err)
	require.Len(t, docs, documents)
	for _, doc := range docs {
		require.Equal(t, revision, doc.Revision)
	}
}
