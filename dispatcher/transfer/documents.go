package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ringback/ringback/dispatcher/tenancy"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// storeDocuments stores documents that are not stored. Others must be equal, but for the store of a namespace, and the
// last uses of tokens.
func (i *importer) storeDocuments(ctx context.Context, docs []numbered[document]) error {
	for _, n := range docs {
		key, value := n.value.key(), []byte(n.value.Value)
		if key.Kind == tenancy.KindNamespace {
			if err := i.placeNamespace(n.line, key.Name, value); err != nil {
				return err
			}
		}
		to, err := i.settingsOf(n.line, key)
		if err != nil {
			return err
		}
		stored, err := getDocuments(ctx, to, key)
		if err != nil {
			return fmt.Errorf("read documents: %w", err)
		}
		if stored[0].Revision != 0 {
			if !isStored(key.Kind, stored[0].Value, value) {
				return &ConflictError{Line: n.line, What: describe(key)}
			}
			continue
		}
		if i.dry {
			continue
		}
		if err := i.note(ctx); err != nil {
			return err
		}
		doc, token := store.Document{Key: key, Value: value, Revision: store.MustNotExist}, store.NewToken()
		if err := retry(ctx, func() error {
			_, err := to.PutDocument(ctx, token, doc, limitsOf(doc))
			return err
		}); err != nil {
			return fmt.Errorf("store %s: %w", describe(key), err)
		}
	}
	return nil
}

// getDocuments returns documents. It waits for a store that is unavailable.
func getDocuments(
	ctx context.Context, from store.Settings, keys ...store.DocumentKey,
) (docs []store.Document, err error) {
	err = retry(ctx, func() error {
		docs, err = from.GetDocuments(ctx, keys)
		return err
	})
	return docs, err
}

// placeNamespace finds the store of a namespace: that which it has, or else that of the file.
func (i *importer) placeNamespace(number int, name string, value []byte) error {
	if i.storeOfNamespace[name] != nil {
		return nil
	}
	is, err := storeNamed(value)
	if err != nil {
		return faultf(number, "%v", err)
	}
	s := i.storeOf(is)
	if s == nil {
		return faultf(number, "the namespace %s is on the store %s: pass --store %s=URL, or create the namespace on "+
			"another store before the import", name, is, is)
	}
	i.storeOfNamespace[name] = s
	return nil
}

// settingsOf returns where a document is stored.
func (i *importer) settingsOf(number int, key store.DocumentKey) (store.Settings, error) {
	if slices.Contains(mainKinds, key.Kind) {
		return i.Stores[0], nil
	}
	s := i.storeOfNamespace[key.Namespace]
	switch {
	case s == nil:
		return nil, faultf(number, "the namespace %s is not known: its line is missing", key.Namespace)
	case key.Kind == store.KindLane:
		return s.Shards()[store.ShardOf(len(s.Shards()), key.Queue())], nil
	}
	return s, nil
}

// isStored reports whether a stored document need not be replaced.
func isStored(kind string, stored, value []byte) bool {
	switch kind {
	case tenancy.KindLastUses:
		return true
	case tenancy.KindNamespace:
		var a, b job.Namespace
		if json.Unmarshal(stored, &a) != nil || json.Unmarshal(value, &b) != nil {
			return false
		}
		a.Store, b.Store = "", ""
		return a == b
	}
	return bytes.Equal(stored, value)
}
