package tenancy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// decodeNamespace decodes a namespace.
func decodeNamespace(doc store.Document, _ *job.Namespace) (*job.Namespace, error) {
	n := &job.Namespace{Name: doc.Key.Name, Revision: doc.Revision}
	if err := json.Unmarshal(doc.Value, n); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnreadable, err)
	}
	n.Store = cmp.Or(n.Store, job.MainStore)
	return n, nil
}

// defaultNamespace is the default namespace until it is put.
var defaultNamespace = job.Namespace{Name: job.DefaultNamespace, Store: job.MainStore}

// HasNamespace reports whether a namespace exists.
func (r *Registry) HasNamespace(ctx context.Context, name string) (bool, error) {
	_, err := r.StoreOf(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// QuotaOf returns the quota of a namespace, without waiting for the store once quotas were read.
func (r *Registry) QuotaOf(ctx context.Context, name string) (job.Quota, error) {
	set, err := r.namespaces.Snapshot(ctx, documents.AnyAge)
	if err != nil {
		return job.Quota{}, err
	}
	if n := find(set, name); n != nil {
		return n.Quota, nil
	}
	return job.Quota{}, nil
}

// StoreOf returns the name of a namespace's store, without waiting for the main store if the namespace is cached.
// store.ErrNotFound.
func (r *Registry) StoreOf(ctx context.Context, name string) (string, error) {
	if name == job.DefaultNamespace {
		return job.MainStore, nil
	}
	set, err := r.namespaces.Snapshot(ctx, documents.AnyAge)
	if err == nil && find(set, name) == nil {
		set, err = r.namespaces.Reload(ctx)
	}
	if err != nil {
		return "", err
	}
	if n := find(set, name); n != nil {
		return n.Store, nil
	}
	return "", store.ErrNotFound
}

// MissingStores returns the stores that namespaces name and this process does not have, with one of their namespaces
// each. With several stores it loads the cache, so that calls for the others need not wait until the main store is
// back. With one it does not, because the cache would be kept up to date from then on.
func (r *Registry) MissingStores(ctx context.Context) (map[string]string, error) {
	if len(r.stores) > 1 {
		if _, err := r.namespaces.Reload(ctx); err != nil {
			return nil, err
		}
	}
	docs, _, err := r.settings.ListDocuments(ctx, store.DocumentKey{Kind: KindNamespace}, 0)
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	missing := make(map[string]string)
	for _, doc := range docs {
		if n, err := decodeNamespace(doc, nil); err == nil && !slices.Contains(r.stores, n.Store) {
			missing[n.Store] = n.Name
		}
	}
	return missing, nil
}

// Namespace returns a namespace. store.ErrNotFound.
func (r *Registry) Namespace(ctx context.Context, name string) (job.Namespace, error) {
	set, err := r.namespaces.Reload(ctx)
	if err != nil {
		return job.Namespace{}, err
	}
	if n := find(set, name); n != nil {
		return *n, nil
	}
	if name == job.DefaultNamespace {
		return defaultNamespace, nil
	}
	return job.Namespace{}, store.ErrNotFound
}

// Namespaces returns the namespaces in order of name, at most limit after a name.
func (r *Registry) Namespaces(ctx context.Context, after string, limit int) ([]job.Namespace, error) {
	set, err := r.namespaces.Reload(ctx)
	if err != nil {
		return nil, err
	}
	return list(set, after, limit), nil
}

// CachedNamespaces returns the first namespaces in order of name, a few seconds old. While the main store is down they
// are those that were loaded last. It returns an error only if they were never loaded.
func (r *Registry) CachedNamespaces(ctx context.Context, limit int) ([]job.Namespace, error) {
	set, err := r.namespaces.Snapshot(ctx, maxAge)
	if err != nil {
		return nil, err
	}
	return list(set, "", limit), nil
}

// list returns the namespaces of a snapshot in order of name, at most limit after a name.
func list(set *documents.Set[*job.Namespace], after string, limit int) []job.Namespace {
	all := make([]job.Namespace, 0, len(set.Values)+1)
	if find(set, job.DefaultNamespace) == nil {
		all = append(all, defaultNamespace)
	}
	for _, n := range set.Values {
		all = append(all, *n)
	}
	all = slices.DeleteFunc(all, func(n job.Namespace) bool { return n.Name <= after })
	slices.SortFunc(all, func(a, b job.Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return all[:min(len(all), limit)]
}

// maxConflicts bounds the repetitions of a change after others came first.
const maxConflicts = 10

// PutNamespace stores a namespace. Without a store it is created on the main one, and stays where it is later.
// ifRevision is as for store.CheckCondition. Errors: *job.InvalidError, *job.NamespaceStoreError, *job.LimitError,
// *store.RevisionError, store.ErrContended.
func (r *Registry) PutNamespace(ctx context.Context, n job.Namespace, ifRevision int64) (job.Namespace, error) {
	for range maxConflicts {
		put, err := r.putNamespace(ctx, n, ifRevision)
		if !errors.Is(err, store.ErrVersion) {
			return put, err
		}
	}
	return job.Namespace{}, store.ErrContended
}

// putNamespace returns store.ErrVersion if another process has changed the namespace meanwhile.
func (r *Registry) putNamespace(ctx context.Context, n job.Namespace, ifRevision int64) (job.Namespace, error) {
	set, err := r.namespaces.Reload(ctx)
	if err != nil {
		return job.Namespace{}, err
	}
	stored, old := int64(0), find(set, n.Name)
	if old != nil {
		stored = old.Revision
	} else if len(set.Values) >= MaxNamespaces {
		return job.Namespace{}, &job.LimitError{
			What: "namespaces", Limit: MaxNamespaces,
			Remedy: "remove those that are not used",
		}
	}
	if err := store.CheckCondition(ifRevision, stored); err != nil {
		return job.Namespace{}, err
	}
	if err := r.setStore(&n, old); err != nil {
		return job.Namespace{}, err
	}
	doc, err := r.put(ctx, key(KindNamespace, n.Name), n, cmp.Or(stored, store.MustNotExist))
	if err != nil {
		return job.Namespace{}, err
	}
	n.Revision = doc.Revision
	r.reloadNamespaces(ctx)
	return n, nil
}

// setStore completes or refuses the store of a namespace that is put; old is the stored one, or nil.
func (r *Registry) setStore(n, old *job.Namespace) error {
	is := ""
	switch {
	case old != nil:
		is = old.Store
	case n.Name == job.DefaultNamespace:
		is = job.MainStore
	}
	switch n.Store = cmp.Or(n.Store, is, job.MainStore); {
	case is == n.Store:
		return nil
	case !slices.Contains(r.stores, n.Store):
		return &job.InvalidError{Errors: []job.FieldError{{
			Field: "/store", Detail: "this process has no such store: use " + strings.Join(r.stores, " or "),
		}}}
	case is != "":
		return &job.NamespaceStoreError{Namespace: n.Name, Store: is}
	}
	return nil
}

// RemoveNamespace removes a namespace, without a look at its store. ifRevision is as for store.CheckCondition. Errors:
// store.ErrNotFound, store.ErrVersion.
func (r *Registry) RemoveNamespace(ctx context.Context, name string, ifRevision int64) error {
	n, err := r.Namespace(ctx, name)
	if err == nil && n.Revision == 0 {
		err = store.ErrNotFound
	}
	if err == nil {
		err = store.CheckCondition(ifRevision, n.Revision)
	}
	if err != nil {
		return err
	}
	if _, err := r.put(ctx, key(KindNamespace, name), nil, n.Revision); err != nil {
		return err
	}
	if _, err := r.put(ctx, key(KindLastUses, name), nil, 0); err != nil { // of tokens that are revoked
		r.log.Warn("removing the last uses of a namespace's tokens failed; they are dropped at the next use",
			"namespace", name, "err", err)
	}
	r.reloadNamespaces(ctx)
	return nil
}

func (r *Registry) reloadNamespaces(ctx context.Context) {
	if _, err := r.namespaces.Reload(ctx); err != nil {
		r.log.Warn("reloading namespaces failed; the change holds within 5s", "err", err)
	}
}
