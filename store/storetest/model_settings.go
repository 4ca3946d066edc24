package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// settings are the documents of the model, or of one of its shards.
type settings struct {
	documents map[store.DocumentKey]document
	revisions map[string]int64    // the newest, by kind
	changes   map[string][]change // the last KeptChanges, by kind
	counted   bool                // ModelOptions.CountRevisions
}

// A change is the key of a document that got a revision or was removed with it.
type change struct {
	revision int64
	key      store.DocumentKey
}

// A document is a stored document with its limits.
type document struct {
	store.Document

	limits policy.Limits
}

func newSettings(counted bool) settings {
	return settings{
		documents: make(map[store.DocumentKey]document), revisions: make(map[string]int64),
		changes: make(map[string][]change), counted: counted,
	}
}

// put writes a document.
func (s settings) put(doc store.Document, limits policy.Limits, now time.Time) (store.Document, error) {
	if err := store.CheckRevision(doc.Revision, s.documents[doc.Key].Revision); err != nil {
		return store.Document{}, err
	}
	kind := doc.Key.Kind
	at := now.UnixMilli()
	if s.counted {
		at = 0
	}
	s.revisions[kind] = store.NextRevision(s.revisions[kind], at)
	s.changes[kind] = append(s.changes[kind], change{s.revisions[kind], doc.Key})
	s.changes[kind] = s.changes[kind][max(len(s.changes[kind])-store.KeptChanges, 0):]
	if len(doc.Value) == 0 {
		delete(s.documents, doc.Key)
		return store.Document{Key: doc.Key}, nil
	}
	doc.Value, doc.Revision = slices.Clone(doc.Value), s.revisions[kind]
	s.documents[doc.Key] = document{doc, limits}
	return s.get(doc.Key), nil
}

// get returns a copy of a document.
func (s settings) get(key store.DocumentKey) store.Document {
	doc := s.documents[key].Document
	doc.Key, doc.Value = key, slices.Clone(doc.Value)
	return doc
}

// list returns a page of documents.
func (s settings) list(after store.DocumentKey, limit int) ([]store.Document, int64) {
	var docs []store.Document
	for key := range s.documents {
		if key.Kind == after.Kind && key.Compare(after) > 0 &&
			(key.Kind != store.KindLane || after.Name == "" || isSameTopic(key, after)) {
			docs = append(docs, s.get(key))
		}
	}
	slices.SortFunc(docs, func(a, b store.Document) int { return a.Key.Compare(b.Key) })
	if limit > 0 {
		docs = docs[:min(len(docs), limit)]
	}
	return docs, s.revisions[after.Kind]
}

// since returns what changed since a revision.
func (s settings) since(kind string, revision int64) store.Changes {
	changes := s.changes[kind]
	known := slices.IndexFunc(changes, func(c change) bool { return c.revision == revision })
	if known < 0 {
		docs, newest := s.list(store.DocumentKey{Kind: kind}, 0)
		return store.Changes{Documents: docs, IsComplete: true, Revision: newest}
	}
	changed := store.Changes{Revision: s.revisions[kind]}
	seen := make(map[store.DocumentKey]bool)
	for _, c := range changes[known+1:] {
		if !seen[c.key] {
			changed.Documents = append(changed.Documents, s.get(c.key))
		}
		seen[c.key] = true
	}
	return changed
}

func isSameTopic(a, b store.DocumentKey) bool { return a.Namespace == b.Namespace && a.Name == b.Name }

// PutDocument writes a document, and reschedules a topic's queues.
func (m *Model) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	now, err := m.open(ctx)
	if err != nil {
		return store.Document{}, err
	}
	defer m.mu.Unlock()
	return once(m.shards[0], now, call{"document", token}, func() (store.Document, error) {
		put, err := m.put(doc, limits, now)
		if err != nil || doc.Key.Kind != store.KindTopic {
			return put, err
		}
		for _, s := range m.shards {
			t := s.topics[topicName{doc.Key.Namespace, doc.Key.Name}]
			if t == nil {
				continue
			}
			for _, q := range t.lanes {
				q.notifiedAt = time.Time{} // the next round notifies it
				s.reschedule(q, now, true)
			}
		}
		return put, nil
	})
}

// PutDocument writes a lane's settings and reschedules its queue.
func (s *modelShard) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	now, err := s.model.open(ctx)
	if err != nil {
		return store.Document{}, err
	}
	defer s.model.mu.Unlock()
	return once(s, now, call{"lane", token}, func() (store.Document, error) {
		put, err := s.put(doc, limits, now)
		if q := s.queues[doc.Key.Queue()]; q != nil && err == nil {
			q.notifiedAt = time.Time{} // the next round notifies it
			if !s.blocked(q, now) && q.claimable(now) != nil {
				s.notify(q, now)
			}
			s.reschedule(q, now, true)
		}
		return put, err
	})
}

// GetDocuments reads documents.
func (m *Model) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	return m.getDocuments(ctx, m.settings, keys)
}

// GetDocuments reads lanes' settings.
func (s *modelShard) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	return s.model.getDocuments(ctx, s.settings, keys)
}

func (m *Model) getDocuments(ctx context.Context, from settings, keys []store.DocumentKey) ([]store.Document, error) {
	bound(len(keys))
	if _, err := m.open(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	docs := make([]store.Document, len(keys))
	for i, key := range keys {
		docs[i] = from.get(key)
	}
	return docs, nil
}

// ListDocuments lists documents.
func (m *Model) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) ([]store.Document, int64, error) {
	return m.listDocuments(ctx, m.settings, after, limit)
}

// ListDocuments lists lanes' settings.
func (s *modelShard) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) ([]store.Document, int64, error) {
	return s.model.listDocuments(ctx, s.settings, after, limit)
}

// ListChanges returns what changed in documents since a revision.
func (m *Model) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	return m.listChanges(ctx, m.settings, kind, since)
}

// ListChanges returns what changed in lanes' settings since a revision.
func (s *modelShard) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	return s.model.listChanges(ctx, s.settings, kind, since)
}

func (m *Model) listChanges(ctx context.Context, from settings, kind string, since int64) (store.Changes, error) {
	if _, err := m.open(ctx); err != nil {
		return store.Changes{}, err
	}
	defer m.mu.Unlock()
	return from.since(kind, since), nil
}

func (m *Model) listDocuments(
	ctx context.Context, from settings, after store.DocumentKey, limit int,
) ([]store.Document, int64, error) {
	bound(limit)
	if _, err := m.open(ctx); err != nil {
		return nil, 0, err
	}
	defer m.mu.Unlock()
	docs, revision := from.list(after, limit)
	return docs, revision, nil
}
