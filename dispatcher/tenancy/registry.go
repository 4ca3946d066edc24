package tenancy

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Kinds of documents of the main store.
const (
	KindToken     = "token"
	KindNamespace = "namespace"
	// KindLastUses is apart from the tokens, so that a use does not make each process load them.
	KindLastUses = "token_last_uses"
)

// maxOutage is the age from which cached tokens are not accepted: while their store cannot be read, nobody can revoke
// one.
const maxOutage = time.Minute

// maxAge is the age from which one request reloads tokens or namespaces. From twice the age on all wait for the load,
// for at most a second. So a change is seen everywhere within 5 s, unless the store cannot be read.
const maxAge = 2 * time.Second

// Bounds of the number of documents: each process caches all of them.
const (
	MaxTokens = 10_000
	// reservedTokens of MaxTokens are for root tokens to create.
	reservedTokens = 1_000
	// MaxTokensOfNamespace bounds the tokens of a namespace, except those that root tokens create.
	MaxTokensOfNamespace = 500
	MaxNamespaces        = 1_000
)

// Registry stores tokens and namespaces. It is safe for concurrent use.
type Registry struct {
	settings   store.Settings
	log        *slog.Logger
	stores     []string // that this process has, main first
	tokens     *documents.Cache[*entry]
	namespaces *documents.Cache[*job.Namespace]
}

// An entry is a cached token.
type entry struct {
	access.Token

	principal *access.Principal
	uses      *uses
}

// New returns a Registry. settings are those of the main store, others the names of the other stores that this process
// has.
func New(settings store.Settings, log *slog.Logger, others ...string) *Registry {
	return &Registry{
		settings: settings, log: log, stores: append([]string{job.MainStore}, others...),
		tokens: documents.New(documents.Options[*entry]{
			Settings: settings, Kind: KindToken,
			Decode: decodeToken, Logger: log,
		}),
		namespaces: documents.New(documents.Options[*job.Namespace]{
			Settings: settings, Kind: KindNamespace, Decode: decodeNamespace, Logger: log,
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

// decodeToken decodes a token, and keeps its uses in this process.
func decodeToken(doc store.Document, old *entry) (*entry, error) {
	e := &entry{Token: access.Token{ID: doc.Key.Name}, uses: new(uses)}
	if err := json.Unmarshal(doc.Value, &e.Token); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnreadable, err)
	}
	if old != nil {
		e.uses = old.uses
	}
	e.principal = e.Principal()
	return e, nil
}

// find returns a cached document; zero: there is none.
func find[T any](set *documents.Set[T], name string) T { return set.Get(job.DefaultNamespace, name) }
