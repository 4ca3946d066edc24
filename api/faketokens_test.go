package api

import (
	"cmp"
	"context"
	"time"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// fakeToken is the text of a token.
const fakeToken = "rb_5tR1nGs0_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg2lVyRp"

// fakeTokens has tokens and namespaces in memory.
type fakeTokens struct {
	// callers are the principals of tokens by text.
	callers     map[string]*access.Principal
	tokens      map[string]access.Token
	namespaces  map[string]job.Namespace
	created     []access.Token
	inUse       error // of DeleteNamespace
	purgeFailed error // of DeleteNamespace with a purge
	failed      error // of every call
}

func newFakeTokens() fakeTokens {
	return fakeTokens{
		callers: make(map[string]*access.Principal), tokens: make(map[string]access.Token),
		namespaces: map[string]job.Namespace{"default": {Name: "default", Store: "main"}, "shop": {
			Name: "shop", Revision: 3, Store: "main",
			Quota: job.Quota{Pending: 1000, Rate: policy.Rate{Starts: 500, Per: time.Second}},
		}},
	}
}

func (f *fakeTokens) Authenticate(_ context.Context, text string) (*access.Principal, error) {
	if f.failed != nil {
		return nil, f.failed
	}
	if p, ok := f.callers[text]; ok && p != nil {
		if !p.ExpiresAt.IsZero() && p.ExpiresAt.Before(time.Now()) {
			return nil, &access.ExpiredError{At: p.ExpiresAt}
		}
		return p, nil
	}
	if _, err := access.ParseID(text); err != nil {
		return nil, err
	}
	return nil, access.ErrUnknown
}

func (f *fakeTokens) HasNamespace(_ context.Context, name string) (bool, error) {
	_, ok := f.namespaces[name]
	return ok, f.failed
}

func (f *fakeTokens) CreateToken(_ context.Context, token access.Token, _ bool) (access.Token, string, error) {
	f.created = append(f.created, token)
	token.ID, token.CreatedAt = "5tR1nGs0", epoch
	return token, fakeToken, f.failed
}

func (f *fakeTokens) Token(_ context.Context, namespace, id string) (access.Token, error) {
	t, ok := f.tokens[id]
	if !ok || namespace != "" && namespace != t.Namespace {
		return access.Token{}, store.ErrNotFound
	}
	return t, f.failed
}

func (f *fakeTokens) Tokens(_ context.Context, namespace, after string, limit int) ([]access.Token, error) {
	var all []access.Token
	for _, id := range sortedKeys(f.tokens) {
		if t := f.tokens[id]; id > after && len(all) < limit && (namespace == "" || namespace == t.Namespace) {
			all = append(all, t)
		}
	}
	return all, f.failed
}

func (f *fakeTokens) RevokeToken(ctx context.Context, namespace, id string) error {
	_, err := f.Token(ctx, namespace, id)
	if err == nil {
		delete(f.tokens, id)
	}
	return err
}

func (f *fakeTokens) Namespace(_ context.Context, name string) (job.Namespace, error) {
	if n, ok := f.namespaces[name]; ok {
		return n, f.failed
	}
	return job.Namespace{}, store.ErrNotFound
}

func (f *fakeTokens) Namespaces(_ context.Context, after string, limit int) ([]job.Namespace, error) {
	var all []job.Namespace
	for _, name := range sortedKeys(f.namespaces) {
		if name > after && len(all) < limit {
			all = append(all, f.namespaces[name])
		}
	}
	return all, f.failed
}

func (f *fakeTokens) PutNamespace(_ context.Context, n job.Namespace, ifRevision int64) (job.Namespace, error) {
	if err := store.CheckCondition(ifRevision, f.namespaces[n.Name].Revision); err != nil {
		return job.Namespace{}, err
	}
	n.Revision, n.Store = 4, cmp.Or(n.Store, "main")
	f.namespaces[n.Name] = n
	return n, f.failed
}

func (f *fakeTokens) NamespaceUsage(context.Context, string) (job.NamespaceUsage, error) {
	return job.NamespaceUsage{Pending: 5, Bytes: 1200, KeptBytes: 40_000, Settings: 3, SettingsBytes: 900}, f.failed
}

func (f *fakeTokens) DeleteNamespace(
	ctx context.Context, deletion store.NamespaceDeletion,
) (store.TopicDeleted, error) {
	n, err := f.Namespace(ctx, deletion.Name)
	if err == nil {
		err = store.CheckCondition(deletion.IfRevision, n.Revision)
	}
	if err != nil {
		return store.TopicDeleted{}, err
	}
	if f.inUse != nil && !deletion.Purge {
		return store.TopicDeleted{}, f.inUse
	}
	delete(f.namespaces, deletion.Name)
	if deletion.Purge {
		return store.TopicDeleted{Cancelled: 3, Purged: 4}, f.purgeFailed
	}
	return store.TopicDeleted{}, nil
}
