package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// copyChunk is how many topics' terms are copied to a shard in one script.
const copyChunk = 256

// putTimeout bounds the copies to the shards once a policy is written: a caller that goes does not leave them behind.
const putTimeout = 10 * time.Second

// PutDocument writes the document, then a topic's limits to each shard. If that fails half way, the document is written and
// the call may be repeated. The shards' carriers copy the limits too, within a second.
func (s *Store) PutDocument(ctx context.Context, token store.Token, doc store.Document, limits policy.Limits) (store.Document, error) {
	text := ""
	if len(doc.Value) > 0 {
		encoded, err := json.Marshal(limits)
		if err != nil {
			return store.Document{}, fmt.Errorf("encode limits: %w", err)
		}
		text = string(encoded) + " " + string(doc.Value)
	}
	key, name := s.documentsKey(doc.Key.Kind), layout.TopicName(doc.Key.Namespace, doc.Key.Name)
	keys := []string{key, "{" + key + "}:m:" + string(token)}
	reply, reached, err := s.evalDurable(ctx, scriptPutDocument, keys, []any{name, doc.Revision, text})
	if err != nil {
		return store.Document{}, fmt.Errorf("put document: %w", err)
	}
	revision, newest, _ := strings.Cut(str(reply), " ")
	if revision == "!" {
		return store.Document{}, store.ErrVersion
	}
	doc.Revision, doc.Durability = num(revision), reached
	if doc.Key.Kind != store.KindTopic {
		return doc, nil
	}
	ctx, cancel := connect.WithTimeout(context.WithoutCancel(ctx), putTimeout)
	defer cancel()
	copied := layout.FormatLimits(num(newest), limits.Over(s.limits))
	for _, sh := range s.shards {
		keys := []string{sh.keys.Limits, sh.keys.Recheck, sh.keys.Wake}
		if _, err := s.eval(ctx, scriptCopyLimits, keys, []any{newest, "", name, copied}); err != nil {
			return store.Document{}, fmt.Errorf("copy limits to shard %d: %w", sh.index, err)
		}
	}
	return doc, nil
}

// documentsKey returns the key of the documents of a kind.
func (s *Store) documentsKey(kind string) string { return s.prefix + ":" + kind + "s" }

// GetDocuments implements store.Settings.
func (s *Store) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	checkBatchSize(len(keys))
	docs := make([]store.Document, len(keys))
	for i, key := range keys {
		text, err := s.client.HGet(ctx, s.documentsKey(key.Kind), layout.TopicName(key.Namespace, key.Name)).Result()
		if err != nil && !connect.IsNil(err) {
			return nil, fmt.Errorf("read documents: %w", connect.MapError(ctx, err))
		}
		docs[i], _ = parseDocument(key, text)
	}
	return docs, nil
}

// ListDocuments implements store.Settings. It checks the servers' health too: a process that only registers jobs may make no
// other call regularly.
func (s *Store) ListDocuments(ctx context.Context, after store.DocumentKey, limit int) ([]store.Document, int64, error) {
	stored, revision, err := s.documents(ctx, after.Kind)
	if err != nil {
		return nil, 0, err
	}
	var docs []store.Document
	for _, d := range stored {
		if d.Key.Compare(after) > 0 {
			docs = append(docs, d.Document)
		}
	}
	slices.SortFunc(docs, func(a, b store.Document) int { return a.Key.Compare(b.Key) })
	if limit > 0 {
		docs = docs[:min(limit, len(docs))]
	}
	return docs, revision, nil
}

// A storedDocument is a document with its limits.
type storedDocument struct {
	store.Document

	limits policy.Limits
}

// documents reads all documents of a kind, and its revision.
func (s *Store) documents(ctx context.Context, kind string) ([]storedDocument, int64, error) {
	s.checkHealth(ctx)
	stored, err := s.client.HGetAll(ctx, s.documentsKey(kind)).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("read documents: %w", connect.MapError(ctx, err))
	}
	docs := make([]storedDocument, 0, len(stored))
	for name, text := range stored {
		if name == "" {
			continue
		}
		key := store.DocumentKey{Kind: kind}
		key.Namespace, key.Name, _ = strings.Cut(name, "/")
		doc, encoded := parseDocument(key, text)
		d := storedDocument{Document: doc}
		if err := json.Unmarshal([]byte(encoded), &d.limits); err != nil {
			s.log.ErrorContext(ctx, "limits not readable, treating the topic as paused: put its policy again, then resume it",
				"topic", key.Name, "err", err)
			d.limits = policy.Limits{Paused: true}
		}
		docs = append(docs, d)
	}
	return docs, num(stored[""]), nil
}

// parseDocument reads a stored document, '<revision> <limits> <value>'; empty: there is none. It also returns the limits.
func parseDocument(key store.DocumentKey, text string) (store.Document, string) {
	if text == "" {
		return store.Document{Key: key}, ""
	}
	doc, rest := parseRevision(key, text)
	limits, value, _ := strings.Cut(rest, " ")
	doc.Value = []byte(value)
	return doc, limits
}

// parseRevision reads the revision that a stored document begins with. A damaged one is read as 1, so that the document
// does not seem to be missing.
func parseRevision(key store.DocumentKey, text string) (store.Document, string) {
	revision, rest, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(revision, 10, 64)
	if err != nil || n <= 0 {
		n = 1
	}
	return store.Document{Key: key, Revision: n}, rest
}

// revision reads that of all policies.
func (s *Store) revision(ctx context.Context) (int64, error) {
	text, err := s.client.HGet(ctx, s.documentsKey(store.KindTopic), "").Result()
	if err != nil && !connect.IsNil(err) {
		return 0, fmt.Errorf("read the topics' revision: %w", connect.MapError(ctx, err))
	}
	return num(text), nil
}

// copyTopics copies every topic's terms to one shard, and answers their revision.
//
// PutDocument writes the policies first, then the shards. So a shard that has a newer revision than the policies, read after
// it, has limits that a failover of the policies' server rolled back. The policies apply as they are then.
func (s *Store) copyTopics(ctx context.Context, sh *shard) (int64, error) {
	held, err := s.client.HGet(ctx, sh.keys.Limits, "").Result()
	if err != nil && !connect.IsNil(err) {
		return 0, fmt.Errorf("read the policies of shard %d: %w", sh.index, connect.MapError(ctx, err))
	}
	topics, revision, err := s.documents(ctx, store.KindTopic)
	if err != nil {
		return 0, err
	}
	copies := make([][2]string, 0, len(topics))
	for _, t := range topics {
		copies = append(copies, [2]string{layout.TopicName(t.Key.Namespace, t.Key.Name), layout.FormatLimits(t.Revision, t.limits.Over(s.limits))})
	}
	lost := ""
	if num(held) > revision {
		lost = held
		if copies, err = s.withForgotten(ctx, sh, copies); err != nil {
			return 0, err
		}
		s.log.WarnContext(ctx, "topic policies were rolled back by a failover", "shard", sh.index)
	}
	for from := 0; ; from += copyChunk {
		chunk := copies[from:min(from+copyChunk, len(copies))]
		last := from+copyChunk >= len(copies)
		args := []any{"", lost}
		if last || lost == "" {
			args[0] = revision
		}
		for _, c := range chunk {
			args = append(args, c[0], c[1])
		}
		reply, err := s.eval(ctx, scriptCopyLimits, []string{sh.keys.Limits, sh.keys.Recheck, sh.keys.Wake}, args)
		if err != nil {
			return 0, fmt.Errorf("copy topics to shard %d: %w", sh.index, err)
		}
		if num(reply) < 0 {
			return unknownRevision, nil // another carrier was quicker: look again
		}
		if last {
			return revision, nil
		}
	}
}

// withForgotten adds the topics that a shard knows and the policies have lost: they go by the defaults again.
func (s *Store) withForgotten(ctx context.Context, sh *shard, copies [][2]string) ([][2]string, error) {
	known, err := s.client.HGetAll(ctx, sh.keys.Limits).Result()
	if err != nil {
		return nil, fmt.Errorf("read the policies of shard %d: %w", sh.index, connect.MapError(ctx, err))
	}
	kept := map[string]bool{"": true}
	for _, c := range copies {
		kept[c[0]] = true
	}
	for name := range known {
		if !kept[name] {
			copies = append(copies, [2]string{name, s.defaults})
		}
	}
	return copies, nil
}
