package tenancy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/tenancy"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite"
)

var quiet = slog.New(slog.DiscardHandler)

// fakeSettings has documents in memory, and can be away.
type fakeSettings struct {
	mu       sync.Mutex // guards docs and revision
	docs     map[store.DocumentKey]store.Document
	revision map[string]int64
	away     atomic.Bool
	takes    atomic.Int64 // nanoseconds of ListChanges
	lists    atomic.Int64
	loads    atomic.Int64 // lists of all documents
	gets     atomic.Int64
	puts     atomic.Int64
	// beforePut, if set, is called before a document is put.
	beforePut func()
}

func newSettings() *fakeSettings {
	return &fakeSettings{docs: make(map[store.DocumentKey]store.Document), revision: make(map[string]int64)}
}

var errAway = &store.UnavailableError{Reason: "away"}

func (s *fakeSettings) PutDocument(
	_ context.Context, _ store.Token, doc store.Document, _ policy.Limits,
) (store.Document, error) {
	if s.beforePut != nil {
		s.beforePut()
	}
	if s.away.Load() {
		return store.Document{}, errAway
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := store.CheckRevision(doc.Revision, s.docs[doc.Key].Revision); err != nil {
		return store.Document{}, err
	}
	s.puts.Add(1)
	s.revision[doc.Key.Kind]++
	if len(doc.Value) == 0 {
		delete(s.docs, doc.Key)
		return store.Document{Key: doc.Key}, nil
	}
	doc.Revision = s.revision[doc.Key.Kind]
	s.docs[doc.Key] = doc
	return doc, nil
}

func (s *fakeSettings) GetDocuments(_ context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	s.gets.Add(1)
	if s.away.Load() {
		return nil, errAway
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	docs := make([]store.Document, len(keys))
	for i, key := range keys {
		docs[i] = s.docs[key]
	}
	return docs, nil
}

func (s *fakeSettings) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	s.lists.Add(1)
	select {
	case <-ctx.Done():
		return store.Changes{}, &store.UnavailableError{Reason: "slow", Err: context.Cause(ctx)}
	case <-time.After(time.Duration(s.takes.Load())):
	}
	if s.away.Load() {
		return store.Changes{}, errAway
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := store.Changes{Revision: s.revision[kind]}
	if since == changes.Revision {
		return changes, nil
	}
	s.loads.Add(1)
	changes.IsComplete = true
	for key, doc := range s.docs {
		if key.Kind == kind {
			changes.Documents = append(changes.Documents, doc)
		}
	}
	return changes, nil
}

func (s *fakeSettings) ListDocuments(
	ctx context.Context, after store.DocumentKey, _ int,
) ([]store.Document, int64, error) {
	changes, err := s.ListChanges(ctx, after.Kind, 0)
	return changes.Documents, changes.Revision, err
}

// create creates a token and returns its text.
func create(t *testing.T, r *tenancy.Registry, token access.Token) (id, text string) {
	t.Helper()
	token.Name, token.Namespace = "tester", "default"
	if token.Role == "" {
		token.Role = access.Read
	}
	created, text, err := r.CreateToken(t.Context(), token, false)
	require.NoError(t, err)
	return created.ID, text
}

func TestAuthenticate_TellsTheFailuresApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tenancy.New(newSettings(), quiet)
		_, text := create(t, r, access.Token{ExpiresAt: time.Now().Add(time.Hour), Topics: access.Topics{"order.*"}})
		p, err := r.Authenticate(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, "tester", p.Actor)
		require.Equal(t, access.Topics{"order.*"}, p.Topics)
		other, _ := access.NewText()
		_, err = r.Authenticate(t.Context(), other)
		require.ErrorIs(t, err, access.ErrUnknown)
		_, err = r.Authenticate(t.Context(), text[:60]+"-")
		require.ErrorIs(t, err, access.ErrMalformed)
		time.Sleep(time.Hour)
		_, err = r.Authenticate(t.Context(), text)
		_, expired := errors.AsType[*access.ExpiredError](err)
		require.True(t, expired, "%v", err)
	})
}

// A token with the id of another one and a valid checksum has another secret.
func TestAuthenticate_ComparesTheWholeText(t *testing.T) {
	s := newSettings()
	r := tenancy.New(s, quiet)
	id, text := create(t, r, access.Token{})
	forged, forgedID := access.NewText()
	key := store.DocumentKey{Kind: "token", Namespace: job.DefaultNamespace, Name: forgedID}
	doc := s.docs[store.DocumentKey{Kind: "token", Namespace: job.DefaultNamespace, Name: id}]
	doc.Key, doc.Revision = key, 0
	_, err := s.PutDocument(t.Context(), store.NewToken(), doc, policy.Limits{})
	require.NoError(t, err)
	_, err = r.Authenticate(t.Context(), forged)
	require.ErrorIs(t, err, access.ErrUnknown)
	_, err = r.Authenticate(t.Context(), text)
	require.NoError(t, err)
}

func TestRevoke_HoldsInAnotherProcessWithin5s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSettings()
		one, other := tenancy.New(s, quiet), tenancy.New(s, quiet)
		id, text := create(t, one, access.Token{})
		_, err := other.Authenticate(t.Context(), text)
		require.NoError(t, err, "a new token works in another process at once")
		require.NoError(t, one.RevokeToken(t.Context(), "", id))
		_, err = one.Authenticate(t.Context(), text)
		require.ErrorIs(t, err, access.ErrUnknown, "at once in its own process")
		revoked := time.Now()
		for err = nil; err == nil; time.Sleep(100 * time.Millisecond) {
			_, err = other.Authenticate(t.Context(), text)
		}
		require.ErrorIs(t, err, access.ErrUnknown)
		require.Less(t, time.Since(revoked), 5*time.Second)
		require.ErrorIs(t, one.RevokeToken(t.Context(), "", id), store.ErrNotFound)
	})
}

func TestAuthenticate_UnknownTokensShareCallsAndWaitOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSettings()
		r := tenancy.New(s, quiet)
		_, known := create(t, r, access.Token{})
		_, err := r.Authenticate(t.Context(), known)
		require.NoError(t, err)
		ask := func(want error) (took time.Duration, calls int64) {
			began, before := time.Now(), s.lists.Load()
			var asking sync.WaitGroup
			for range 100 {
				asking.Go(func() {
					unknown, _ := access.NewText()
					_, err := r.Authenticate(t.Context(), unknown)
					assert.ErrorIs(t, err, want)
				})
			}
			_, err := r.Authenticate(t.Context(), known)
			require.NoError(t, err)
			require.Zero(t, time.Since(began), "a known token does not wait")
			asking.Wait()
			return time.Since(began), s.lists.Load() - before
		}
		s.takes.Store(int64(100 * time.Millisecond))
		_, calls := ask(access.ErrUnknown)
		require.LessOrEqual(t, calls, int64(2), "one that began before they asked, and one after")
		s.takes.Store(int64(time.Hour))
		took, _ := ask(store.ErrUnavailable)
		require.Equal(t, time.Second, took)
	})
}

// An idle process has an old cache: its first request waits for a new one.
func TestRevoke_HoldsInAnIdleProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSettings()
		one, other := tenancy.New(s, quiet), tenancy.New(s, quiet)
		id, text := create(t, one, access.Token{})
		_, err := other.Authenticate(t.Context(), text)
		require.NoError(t, err)
		require.NoError(t, one.RevokeToken(t.Context(), "", id))
		time.Sleep(5 * time.Second)
		_, err = other.Authenticate(t.Context(), text)
		require.ErrorIs(t, err, access.ErrUnknown)
	})
}

func TestAuthenticate_KnownTokensWorkWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSettings()
		r := tenancy.New(s, quiet)
		_, text := create(t, r, access.Token{ExpiresAt: time.Now().Add(time.Hour)})
		_, err := r.Authenticate(t.Context(), text)
		require.NoError(t, err)
		s.away.Store(true)
		before := s.lists.Load()
		for range 60 {
			time.Sleep(500 * time.Millisecond)
			_, err = r.Authenticate(t.Context(), text)
			require.NoError(t, err)
		}
		unknown, _ := access.NewText()
		_, err = r.Authenticate(t.Context(), unknown)
		require.ErrorIs(t, err, store.ErrUnavailable, "it may have been created since")
		require.LessOrEqual(t, s.lists.Load()-before, int64(31), "at most one load a second")
		time.Sleep(20 * time.Second)
		_, err = r.Authenticate(t.Context(), text)
		require.NoError(t, err)
		time.Sleep(11 * time.Second)
		_, err = r.Authenticate(t.Context(), text)
		require.ErrorIs(t, err, store.ErrUnavailable, "it may have been revoked more than a minute ago")
		s.away.Store(false)
		time.Sleep(time.Second)
		_, err = r.Authenticate(t.Context(), text)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		_, err = r.Authenticate(t.Context(), text)
		_, expired := errors.AsType[*access.ExpiredError](err)
		require.True(t, expired, "%v", err)
		s.away.Store(true)
		_, err = tenancy.New(s, quiet).Authenticate(t.Context(), text)
		require.ErrorIs(t, err, store.ErrUnavailable, "a process that never knew it")
	})
}

func TestAuthenticate_DoesNotAllocateForACachedToken(t *testing.T) {
	r := tenancy.New(newSettings(), quiet)
	_, text := create(t, r, access.Token{Topics: access.Topics{"a.*"}})
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := r.Authenticate(ctx, text); err != nil {
			panic(err)
		}
	}))
}

func BenchmarkAuthenticate(b *testing.B) {
	r := tenancy.New(newSettings(), quiet)
	created, text, err := r.CreateToken(b.Context(),
		access.Token{Name: "a", Role: access.Read, Namespace: "default"}, false)
	require.NoError(b, err)
	require.NotEmpty(b, created.ID)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Authenticate(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLastUse_IsWrittenOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s := newSettings()
		r, other := tenancy.New(s, quiet), tenancy.New(s, quiet)
		id, text := create(t, r, access.Token{})
		create(t, r, access.Token{})
		done := make(chan struct{})
		go func() {
			var running sync.WaitGroup
			running.Go(func() { r.Run(ctx) })
			running.Go(func() { other.Run(ctx) })
			running.Wait()
			close(done)
		}()
		before, loads := s.puts.Load(), s.loads.Load()
		began := time.Now()
		for range 180 {
			_, err := r.Authenticate(t.Context(), text)
			require.NoError(t, err)
			_, err = other.Authenticate(t.Context(), text)
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		puts := s.puts.Load() - before
		require.GreaterOrEqual(t, puts, int64(3))
		require.LessOrEqual(t, s.loads.Load()-loads, int64(2), "no use makes a process load the tokens again")
		require.LessOrEqual(t, puts, int64(4), "not once a process, unless at the same moment")
		found, err := other.Token(t.Context(), "", id)
		require.NoError(t, err)
		require.Zero(t, found.LastUsedAt.Unix()%3600)
		require.WithinDuration(t, began.Add(179*time.Minute), found.LastUsedAt, time.Hour)
		all, err := r.Tokens(t.Context(), "default", "", 10)
		require.NoError(t, err)
		require.Len(t, all, 2)
		for _, token := range all {
			require.Equal(t, token.ID != id, token.LastUsedAt.IsZero())
		}
		require.NoError(t, r.RevokeToken(t.Context(), "", id))
		time.Sleep(time.Hour)
		_, err = r.Token(t.Context(), "", id)
		require.ErrorIs(t, err, store.ErrNotFound, "no late write brings it back")
		otherID, otherText := create(t, r, access.Token{})
		_, err = r.Authenticate(t.Context(), otherText)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		docs, err := s.GetDocuments(t.Context(),
			[]store.DocumentKey{{Kind: "token_last_uses", Namespace: "default", Name: "default"}})
		require.NoError(t, err)
		uses := string(docs[0].Value)
		require.Contains(t, uses, otherID)
		require.NotContains(t, uses, id, "the last use of a revoked token is dropped")
		stop()
		<-done
	})
}

func TestCreateToken_IsBoundedByNamespaceAndInAll(t *testing.T) {
	s := newSettings()
	r := tenancy.New(s, quiet)
	put := func(namespace string, n int) {
		for range n {
			_, id := access.NewText()
			key := store.DocumentKey{Kind: "token", Namespace: job.DefaultNamespace, Name: id}
			doc := store.Document{Key: key, Value: fmt.Appendf(nil,
				`{"name": "a", "role": "read", "namespace": %q}`, namespace)}
			_, err := s.PutDocument(t.Context(), store.NewToken(), doc, policy.Limits{})
			require.NoError(t, err)
		}
	}
	try := func(namespace string, reserved bool) error {
		_, _, err := r.CreateToken(t.Context(),
			access.Token{Name: "a", Role: access.Read, Namespace: namespace}, reserved)
		return err
	}
	refused := func(err error, limit int) {
		t.Helper()
		e, ok := errors.AsType[*job.LimitError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, limit, e.Limit)
		require.Contains(t, e.Error(), "revoke")
	}
	put("shop", tenancy.MaxTokensOfNamespace-1)
	require.NoError(t, try("shop", false))
	refused(try("shop", false), tenancy.MaxTokensOfNamespace)
	require.NoError(t, try("shop", true), "a root token may create more")
	require.NoError(t, try("other", false))
	put("more", tenancy.MaxTokens-1_000-503)
	require.NoError(t, try("other", false))
	refused(try("other", false), tenancy.MaxTokens-1_000)
	put("more", 999)
	require.NoError(t, try("other", true))
	refused(try("other", true), tenancy.MaxTokens)
}

func TestTokens_AreSeenInTheirNamespaceOnly(t *testing.T) {
	r := tenancy.New(newSettings(), quiet)
	for i := range 3 {
		_, _, err := r.CreateToken(t.Context(),
			access.Token{Name: fmt.Sprint(i), Role: access.Read, Namespace: "shop"}, false)
		require.NoError(t, err)
	}
	id, _ := create(t, r, access.Token{})
	shop, err := r.Tokens(t.Context(), "shop", "", 10)
	require.NoError(t, err)
	require.Len(t, shop, 3)
	rest, err := r.Tokens(t.Context(), "shop", shop[0].ID, 1)
	require.NoError(t, err)
	require.Equal(t, shop[1:2], rest)
	all, err := r.Tokens(t.Context(), "", "", 10)
	require.NoError(t, err)
	require.Len(t, all, 4)
	_, err = r.Token(t.Context(), "shop", id)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorIs(t, r.RevokeToken(t.Context(), "shop", id), store.ErrNotFound)
	require.NoError(t, r.RevokeToken(t.Context(), "", id))
}

// Without a condition, the last of several PUTs wins, and none fails.
func TestPutNamespace_RetriesWhenAnotherCameFirst(t *testing.T) {
	s := newSettings()
	one, other := tenancy.New(s, quiet), tenancy.New(s, quiet)
	n := job.Namespace{Name: "shop", Quota: job.Quota{Pending: 1}}
	first, err := one.PutNamespace(t.Context(), n, 0)
	require.NoError(t, err)
	s.beforePut = func() {
		s.beforePut = nil
		n.Quota.Pending = 2
		_, err := other.PutNamespace(t.Context(), n, 0)
		require.NoError(t, err)
	}
	n.Quota.Pending = 3
	put, err := one.PutNamespace(t.Context(), n, 0)
	require.NoError(t, err)
	found, err := other.Namespace(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, put, found)
	require.Equal(t, int64(3), found.Quota.Pending)
	s.beforePut = func() {
		s.beforePut = nil
		_, err := other.PutNamespace(t.Context(), n, 0)
		require.NoError(t, err)
	}
	_, err = one.PutNamespace(t.Context(), n, put.Revision)
	conflict, ok := errors.AsType[*store.RevisionError](err)
	require.True(t, ok, "%v", err)
	require.Greater(t, conflict.Revision, put.Revision)
	require.Greater(t, put.Revision, first.Revision)
}

func TestNamespaces_ArePutListedAndRemoved(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Options{
		Path:   filepath.Join(t.TempDir(), "db"),
		Limits: sqlite.Defaults(policy.Builtin()).Limits(), Logger: quiet,
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	r, other := tenancy.New(s, quiet), tenancy.New(s, quiet)
	known, err := other.HasNamespace(t.Context(), "shop")
	require.NoError(t, err)
	require.False(t, known)
	quota := job.Quota{Pending: 5, Rate: policy.Rate{Starts: 7, Per: time.Second}}
	put, err := r.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: quota}, 0)
	require.NoError(t, err)
	require.Positive(t, put.Revision)
	known, err = other.HasNamespace(t.Context(), "shop")
	require.NoError(t, err)
	require.True(t, known, "at once")
	found, err := other.Namespace(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, put, found)
	got, err := r.QuotaOf(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, quota, got)
	_, err = r.PutNamespace(t.Context(), job.Namespace{Name: "shop"}, put.Revision-1)
	_, conflict := errors.AsType[*store.RevisionError](err)
	require.True(t, conflict, "%v", err)
	all, err := r.Namespaces(t.Context(), "", 10)
	require.NoError(t, err)
	require.Equal(t, []job.Namespace{{Name: "default", Store: "main"}, put}, all)
	all, err = r.Namespaces(t.Context(), "default", 10)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, r.RemoveNamespace(t.Context(), "shop", put.Revision))
	_, err = r.Namespace(t.Context(), "shop")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorIs(t, r.RemoveNamespace(t.Context(), "default", 0), store.ErrNotFound)
}

func TestPutNamespace_KeepsItsStore(t *testing.T) {
	s := newSettings()
	r, without := tenancy.New(s, quiet, "eu"), tenancy.New(s, quiet)
	storeOf := func(name string) string {
		found, err := without.StoreOf(t.Context(), name)
		require.NoError(t, err)
		return found
	}
	put, err := r.PutNamespace(t.Context(), job.Namespace{Name: "shop", Store: "eu"}, 0)
	require.NoError(t, err)
	require.Equal(t, "eu", put.Store)
	require.Equal(t, "eu", storeOf("shop"), "at once, in a process that does not have the store, too")
	put, err = without.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: 5}}, 0)
	require.NoError(t, err)
	require.Equal(t, "eu", put.Store, "without a store it stays")
	put, err = r.PutNamespace(t.Context(), job.Namespace{Name: "new"}, 0)
	require.NoError(t, err)
	require.Equal(t, "main", put.Store)
	put, err = r.PutNamespace(t.Context(), job.Namespace{Name: "default", Store: "main"}, 0)
	require.NoError(t, err)
	require.Equal(t, "main", put.Store)
	require.Equal(t, "main", storeOf("default"))
	_, err = r.StoreOf(t.Context(), "gone")
	require.ErrorIs(t, err, store.ErrNotFound)

	for name, to := range map[string]string{"shop": "main", "new": "eu", "default": "eu"} {
		_, err = r.PutNamespace(t.Context(), job.Namespace{Name: name, Store: to}, 0)
		moved, ok := errors.AsType[*job.NamespaceStoreError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, name, moved.Namespace)
		require.NotEqual(t, to, moved.Store)
	}
	for _, name := range []string{"shop", "another"} {
		_, err = r.PutNamespace(t.Context(), job.Namespace{Name: name, Store: "asia"}, 0)
		invalid, ok := errors.AsType[*job.InvalidError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "/store", invalid.Errors[0].Field)
		require.Contains(t, invalid.Errors[0].Detail, "main or eu")
	}
	_, err = r.Namespace(t.Context(), "another")
	require.ErrorIs(t, err, store.ErrNotFound)
}
