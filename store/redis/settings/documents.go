package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

const (
	// copyChunk is how many topics' limits are copied to a shard in one script.
	copyChunk = 256
	// putTimeout bounds the copies to the shards after a policy was written. An ended context does not stop them.
	putTimeout = 10 * time.Second
	// UnknownRevision is a revision that policies never have.
	UnknownRevision = -1
)

// PutDocument writes the document, then a topic's limits to each shard. If that fails half way, the document is written
// and the call may be repeated. The shards' carriers copy the limits too, within a second.
func (d *Documents) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	text := ""
	if len(doc.Value) > 0 {
		encoded, err := json.Marshal(limits)
		if err != nil {
			return store.Document{}, fmt.Errorf("encode limits: %w", err)
		}
		text = string(encoded) + " " + string(doc.Value)
	}
	key, name := layout.DocumentsKey(d.prefix, doc.Key.Kind), layout.TopicName(doc.Key.Namespace, doc.Key.Name)
	keys := []string{key, "{" + key + "}:m:" + string(token), layout.ChangesKey(d.prefix, doc.Key.Kind)}
	reply, reached, err := d.RunDurably(ctx, &layout.Call{
		Script: scriptPutDocument, Keys: keys, Args: []any{name, doc.Revision, text, store.KeptChanges},
	})
	if err != nil {
		return store.Document{}, fmt.Errorf("put document: %w", err)
	}
	revision, newest, _ := strings.Cut(layout.Str(reply), " ")
	if revision == "!" {
		return store.Document{}, store.ErrVersion
	}
	doc.Revision, doc.Durability = layout.Num(revision), reached
	if doc.Key.Kind != store.KindTopic {
		return doc, nil
	}
	ctx, cancel := connect.WithTimeout(context.WithoutCancel(ctx), putTimeout)
	defer cancel()
	copied := layout.FormatLimits(layout.Num(newest), limits.Over(d.limits))
	for _, sh := range d.shards {
		keys := []string{sh.Keys.Limits, sh.Keys.Recheck, sh.Keys.CarrierWakeup}
		if _, err := d.Eval(ctx, scriptCopyLimits, keys, []any{newest, "", name, copied}); err != nil {
			return store.Document{}, fmt.Errorf("copy limits to shard %d: %w", sh.Index, err)
		}
	}
	return doc, nil
}

// GetDocuments reads the documents in one round trip.
func (d *Documents) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	shard.CheckBatchSize(len(keys))
	docs, err := d.get(ctx, keys)
	return withoutLimits(docs), err
}

// ListDocuments implements store.Settings.
func (d *Documents) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) ([]store.Document, int64, error) {
	docs, revision, err := d.list(ctx, after.Kind)
	if err != nil {
		return nil, 0, err
	}
	docs = slices.DeleteFunc(docs, func(doc storedDocument) bool { return doc.Key.Compare(after) <= 0 })
	if limit > 0 {
		docs = docs[:min(limit, len(docs))]
	}
	return withoutLimits(docs), revision, nil
}

// ListChanges implements store.Settings.
func (d *Documents) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	docs, changes, err := d.changes(ctx, kind, since)
	changes.Documents = withoutLimits(docs)
	return changes, err
}

// A storedDocument is a document with its limits in their stored form.
type storedDocument struct {
	store.Document

	limits string
}

func withoutLimits(stored []storedDocument) (docs []store.Document) {
	for _, doc := range stored {
		docs = append(docs, doc.Document)
	}
	return docs
}

// get reads documents by their keys.
func (d *Documents) get(ctx context.Context, keys []store.DocumentKey) ([]storedDocument, error) {
	pipe := d.Client.Pipeline()
	stored := make([]*redis.StringCmd, len(keys))
	for i, key := range keys {
		stored[i] = pipe.HGet(ctx, layout.DocumentsKey(d.prefix, key.Kind), layout.TopicName(key.Namespace, key.Name))
	}
	_, _ = pipe.Exec(ctx) // the errors are read from the commands
	docs := make([]storedDocument, len(keys))
	for i, key := range keys {
		text, err := stored[i].Result()
		if err != nil && !connect.IsNil(err) {
			return nil, fmt.Errorf("read documents: %w", connect.MapError(ctx, err))
		}
		docs[i] = parseDocument(key, text)
	}
	return docs, nil
}

// list reads all documents of a kind, in order of key, and their newest revision with one command. A cursor of HSCAN
// would skip documents without an error if another server, after a failover or restart, answered for a page.
func (d *Documents) list(ctx context.Context, kind string) ([]storedDocument, int64, error) {
	stored, err := d.Client.HGetAll(ctx, layout.DocumentsKey(d.prefix, kind)).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("read documents: %w", connect.MapError(ctx, err))
	}
	docs := make([]storedDocument, 0, len(stored))
	for name, text := range stored {
		if name != "" {
			docs = append(docs, parseDocument(parseKey(kind, name), text))
		}
	}
	slices.SortFunc(docs, func(a, b storedDocument) int { return a.Key.Compare(b.Key) })
	return docs, layout.Num(stored[""]), nil
}

// changes reads what ListChanges returns: the documents, and the rest. If another server answers for the documents than
// for their names, without the newest changes, then it does not know the revision of the first at the next call.
func (d *Documents) changes(
	ctx context.Context, kind string, since int64,
) (docs []storedDocument, changes store.Changes, err error) {
	names, changes, err := listChanges(ctx, d.Client, layout.ChangesKey(d.prefix, kind),
		layout.DocumentsKey(d.prefix, kind), since)
	switch {
	case err != nil:
	case changes.IsComplete:
		docs, changes.Revision, err = d.list(ctx, kind)
	case len(names) > 0:
		keys := make([]store.DocumentKey, len(names))
		for i, name := range names {
			keys[i] = parseKey(kind, name)
		}
		docs, err = d.get(ctx, keys)
	}
	return docs, changes, err
}

// listChanges reads the names of what changed since a revision, each once, with what else ListChanges returns. Of
// changes that are complete it does not read the names.
func listChanges(
	ctx context.Context, client *connect.Client, changesKey, documentsKey string, since int64,
) (names []string, changes store.Changes, err error) {
	pipe := client.Pipeline()
	entries := pipe.ZRangeByScore(ctx, changesKey, &redis.ZRangeBy{
		Min: strconv.FormatInt(since, 10), Max: "+inf",
	})
	newest := pipe.HGet(ctx, documentsKey, "")
	if _, err := pipe.Exec(ctx); err != nil && !connect.IsNil(err) {
		return nil, changes, fmt.Errorf("read changes of documents: %w", connect.MapError(ctx, err))
	}
	log := entries.Val()
	none := since == 0 && len(log) == 0 && newest.Val() == "" // no document was ever written
	changes = store.Changes{IsComplete: !none, Revision: since}
	for _, entry := range log {
		revision, name, _ := strings.Cut(entry, " ")
		if changes.Revision = layout.Num(revision); changes.Revision > since {
			names = append(names, name)
		} else {
			changes.IsComplete = false // the revision is known
		}
	}
	slices.Sort(names)
	return slices.Compact(names), changes, nil
}

// parseKey returns the key of a document by its stored name.
func parseKey(kind, name string) store.DocumentKey {
	key := store.DocumentKey{Kind: kind}
	key.Namespace, key.Name, _ = strings.Cut(name, "/")
	return key
}

// parseDocument reads a stored document, '<revision> <limits> <value>'; empty: there is none.
func parseDocument(key store.DocumentKey, text string) storedDocument {
	if text == "" {
		return storedDocument{Document: store.Document{Key: key}}
	}
	doc, rest := parseRevision(key, text)
	limits, value, _ := strings.Cut(rest, " ")
	doc.Value = []byte(value)
	return storedDocument{doc, limits}
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

// Revision reads the newest revision of a kind.
func (d *Documents) Revision(ctx context.Context, kind string) (int64, error) {
	text, err := d.Client.HGet(ctx, layout.DocumentsKey(d.prefix, kind), "").Result()
	if err != nil && !connect.IsNil(err) {
		return 0, fmt.Errorf("read the revision of documents: %w", connect.MapError(ctx, err))
	}
	return layout.Num(text), nil
}

// CopyLimits copies the limits of the topics that changed after a revision to one shard, and returns their newest
// revision; UnknownRevision when another process was faster. A shard that a failover rolled back gets more.
//
// PutDocument writes the policies first, then the shards. So a shard that has a newer revision than the policies, read
// after it, has limits that a failover of the policies' server rolled back. The policies apply as they are then.
func (d *Documents) CopyLimits(ctx context.Context, sh *shard.Shard, since int64) (int64, error) {
	held, err := d.Client.HGet(ctx, sh.Keys.Limits, "").Result()
	if err != nil && !connect.IsNil(err) {
		return 0, fmt.Errorf("read the policies of shard %d: %w", sh.Index, connect.MapError(ctx, err))
	}
	topics, changes, err := d.changes(ctx, store.KindTopic, min(since, layout.Num(held)))
	if err != nil {
		return 0, err
	}
	revision, lost := changes.Revision, ""
	if layout.Num(held) > revision {
		lost = held
		if topics, revision, err = d.list(ctx, store.KindTopic); err != nil {
			return 0, err
		}
	}
	copies := make([][2]string, 0, len(topics))
	for _, t := range topics {
		copies = append(copies, [2]string{layout.TopicName(t.Key.Namespace, t.Key.Name), d.limitsOf(ctx, t, revision)})
	}
	if lost != "" {
		if copies, err = d.withForgotten(ctx, sh, copies); err != nil {
			return 0, err
		}
		d.log.WarnContext(ctx, "topic policies were rolled back by a failover", "shard", sh.Index)
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
		reply, err := d.Eval(ctx, scriptCopyLimits,
			[]string{sh.Keys.Limits, sh.Keys.Recheck, sh.Keys.CarrierWakeup}, args)
		if err != nil {
			return 0, fmt.Errorf("copy topics to shard %d: %w", sh.Index, err)
		}
		if layout.Num(reply) < 0 {
			return UnknownRevision, nil
		}
		if last {
			return revision, nil
		}
	}
}

// limitsOf returns what a shard stores of a topic as of a revision, from which on a removed topic has the defaults.
func (d *Documents) limitsOf(ctx context.Context, topic storedDocument, revision int64) string {
	var limits policy.Limits
	if topic.Revision == 0 {
		topic.Revision = revision
	} else if err := json.Unmarshal([]byte(topic.limits), &limits); err != nil {
		d.log.ErrorContext(ctx,
			"limits not readable, treating the topic as paused: put its policy again, then resume it",
			"topic", topic.Key.Name, "err", err)
		limits = policy.Limits{Paused: true}
	}
	return layout.FormatLimits(topic.Revision, limits.Over(d.limits))
}

// withForgotten adds the topics that a shard has limits of, but whose policies were lost, with the default limits.
func (d *Documents) withForgotten(ctx context.Context, sh *shard.Shard, copies [][2]string) ([][2]string, error) {
	known, err := d.Client.HGetAll(ctx, sh.Keys.Limits).Result()
	if err != nil {
		return nil, fmt.Errorf("read the policies of shard %d: %w", sh.Index, connect.MapError(ctx, err))
	}
	kept := map[string]bool{"": true}
	for _, c := range copies {
		kept[c[0]] = true
	}
	for name := range known {
		if !kept[name] {
			copies = append(copies, [2]string{name, d.Defaults})
		}
	}
	return copies, nil
}
