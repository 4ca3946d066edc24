package tenancy

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Kinds of documents.
const (
	kindToken     = "token"
	kindNamespace = "namespace"
)

// Bounds of the number of documents: each process caches all of them.
const (
	MaxTokens     = 10_000
	MaxNamespaces = 1_000
)

// Registry stores tokens and namespaces. It is safe for concurrent use.
type Registry struct {
	settings   store.Settings
	log        *slog.Logger
	stores     []string // that this process has, main first
	tokens     *documents.Cache[*entry]
	namespaces *documents.Cache[*job.Namespace]
	// lookups has an element for each lookup of an unknown token in flight, so that clients without a token cannot load the
	// store with them.
	lookups chan struct{}
}

// An entry is a cached token.
type entry struct {
	access.Token

	principal *access.Principal
	usedAt    *atomic.Int64 // hour of the last use in this process, in Unix seconds
}

// New returns a Registry. settings are those of the main store, others the names of the other stores that this process has.
func New(settings store.Settings, log *slog.Logger, others ...string) *Registry {
	return &Registry{
		settings: settings, log: log, stores: append([]string{job.MainStore}, others...), lookups: make(chan struct{}, 4),
		tokens: documents.New(documents.Options[*entry]{Settings: settings, Kind: kindToken, Decode: decodeToken, Logger: log}),
		namespaces: documents.New(documents.Options[*job.Namespace]{
			Settings: settings, Kind: kindNamespace, Decode: decodeNamespace, Logger: log,
		}),
	}
}

// key returns the key of a document. All are in one namespace, because a token is found by its id alone.
func key(kind, name string) store.DocumentKey {
	return store.DocumentKey{Kind: kind, Namespace: job.DefaultNamespace, Name: name}
}

// put writes a document, or without a value removes it. revision is the one that must be stored.
func (r *Registry) put(ctx context.Context, key store.DocumentKey, value any, revision int64) (store.Document, error) {
	doc := store.Document{Key: key, Revision: revision}
	if value != nil {
		var err error
		if doc.Value, err = json.Marshal(value); err != nil {
			return store.Document{}, fmt.Errorf("encode a %s: %w", key.Kind, err)
		}
	}
	doc, err := r.settings.PutDocument(ctx, store.NewToken(), doc, policy.Limits{})
	if err != nil {
		return store.Document{}, fmt.Errorf("put %s %s: %w", key.Kind, key.Name, err)
	}
	return doc, nil
}

// get reads a document; revision 0: there is none.
func (r *Registry) get(ctx context.Context, key store.DocumentKey) (store.Document, error) {
	docs, err := r.settings.GetDocuments(ctx, []store.DocumentKey{key})
	if err != nil {
		return store.Document{}, fmt.Errorf("read %s %s: %w", key.Kind, key.Name, err)
	}
	return docs[0], nil
}

// decodeToken decodes a token, and keeps its last use in this process.
func decodeToken(doc store.Document, old *entry) (*entry, error) {
	e := &entry{Token: access.Token{ID: doc.Key.Name}, usedAt: new(atomic.Int64)}
	if err := json.Unmarshal(doc.Value, &e.Token); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnreadable, err)
	}
	if old != nil {
		e.usedAt = old.usedAt
	}
	e.principal = e.Principal()
	return e, nil
}

// lastUsedAt returns the hour of the last use that this process knows.
func (e *entry) lastUsedAt() time.Time {
	if used := e.usedAt.Load(); used > 0 && used > e.LastUsedAt.Unix() {
		return time.Unix(used, 0).UTC()
	}
	return e.LastUsedAt
}
