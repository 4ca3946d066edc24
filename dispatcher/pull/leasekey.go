package pull

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// kindLeaseKey is the kind of the document with the key that authenticates leases. There is one in a store.
const kindLeaseKey = "lease_key"

// maxLeaseKeyAge is the age from which the key is read again: a failover may have lost it, and then the first process
// to see that puts back the one that it knows.
const maxLeaseKeyAge = 10 * time.Second

// leaseKey is the key that authenticates the leases of a store's clients. It lies in the store, so that all processes
// have the same, also after a restart. It protects nothing from who can read the store.
type leaseKey struct {
	settings store.Settings
	cache    *documents.Cache[store.LeaseKey]
	known    atomic.Pointer[store.LeaseKey] // what get has returned last; nil: nothing
}

func newLeaseKey(settings store.Settings, log *slog.Logger) *leaseKey {
	return &leaseKey{settings: settings, cache: documents.New(documents.Options[store.LeaseKey]{
		Settings: settings, Kind: kindLeaseKey, Decode: decodeLeaseKey, Logger: log,
	})}
}

func decodeLeaseKey(doc store.Document, _ store.LeaseKey) (key store.LeaseKey, err error) {
	var stored []byte
	if err := json.Unmarshal(doc.Value, &stored); err != nil {
		return key, fmt.Errorf("%w: %w", store.ErrUnreadable, err)
	}
	if len(stored) != len(key) {
		return key, fmt.Errorf("%w: it has %d bytes", store.ErrUnreadable, len(stored))
	}
	return store.LeaseKey(stored), nil
}

// Get returns the key. The first process to need one makes it.
func (k *leaseKey) Get(ctx context.Context) (store.LeaseKey, error) {
	key, err := k.get(ctx)
	if err != nil {
		return key, fmt.Errorf("get the key of leases: %w", err)
	}
	k.known.Store(&key)
	return key, nil
}

func (k *leaseKey) get(ctx context.Context) (store.LeaseKey, error) {
	const name = "leases"
	set, err := k.cache.Snapshot(ctx, maxLeaseKeyAge)
	if err != nil {
		return store.LeaseKey{}, err
	}
	none := store.LeaseKey{}
	if key := set.Get(job.DefaultNamespace, name); key != none {
		return key, nil
	}
	fresh := k.known.Load()
	if fresh == nil {
		fresh = new(store.LeaseKey)
		_, _ = rand.Read(fresh[:]) // it never fails
	}
	doc := store.Document{
		Key:      store.DocumentKey{Kind: kindLeaseKey, Namespace: job.DefaultNamespace, Name: name},
		Revision: store.MustNotExist,
	}
	if doc.Value, err = json.Marshal(fresh[:]); err != nil {
		return none, fmt.Errorf("encode it: %w", err)
	}
	if _, err := k.settings.PutDocument(ctx, store.NewToken(), doc, policy.Limits{}); err != nil &&
		!errors.Is(err, store.ErrVersion) {
		return none, err
	}
	if set, err = k.cache.Reload(ctx); err != nil {
		return none, err
	}
	if key := set.Get(job.DefaultNamespace, name); key != none {
		return key, nil
	}
	return none, store.ErrUnreadable // it is there, but was left out
}
