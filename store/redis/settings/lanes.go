package settings

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

// PutDocument writes a lane's settings. The lane need not have jobs.
func (s *Lanes) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	q := doc.Key.Queue()
	err := s.RetryStale(func() error {
		found, _, err := s.Find(ctx, []job.Queue{q})
		if err != nil {
			return err
		}
		c := s.NewCall(scriptPutLane, s.Keys.Reply(string(token), "l"), found, nil, 6)
		c.Keys = append(c.Keys, s.Keys.LaneSettings,
			s.Keys.ConfiguredLanes(layout.TopicName(q.Namespace, q.Topic)), s.Keys.Queues, s.Keys.LaneChanges)
		c.Add(q.String(), q.Lane, doc.Revision, layout.FormatLaneLimits(limits), doc.Value, store.KeptChanges)
		reply, reached, err := s.RunDurably(ctx, c)
		if err != nil {
			return err
		}
		if layout.Str(reply) == "!" {
			return store.ErrVersion
		}
		doc.Revision, doc.Durability = layout.Num(reply), reached
		return nil
	})
	if err != nil {
		return store.Document{}, fmt.Errorf("put lane settings: %w", err)
	}
	return doc, nil
}

// GetDocuments implements store.Settings.
func (s *Lanes) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	shard.CheckBatchSize(len(keys))
	docs, _, err := s.read(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read lane settings: %w", err)
	}
	return docs, nil
}

// read reads the settings of lanes, and the newest revision.
func (s *Lanes) read(ctx context.Context, keys []store.DocumentKey) ([]store.Document, int64, error) {
	names := make([]string, len(keys), len(keys)+1)
	for i, key := range keys {
		names[i] = key.Queue().String()
	}
	values, err := s.Client.HMGet(ctx, s.Keys.LaneSettings, append(names, "")...).Result()
	if err != nil {
		return nil, 0, connect.MapError(ctx, err)
	}
	docs := make([]store.Document, len(keys))
	for i, key := range keys {
		docs[i] = ParseLane(key, layout.Str(values[i]))
	}
	return docs, layout.Num(layout.Str(values[len(keys)])), nil
}

// ParseLane parses a lane's stored settings, '<revision> <settings>'; empty: there are none.
func ParseLane(key store.DocumentKey, text string) store.Document {
	if text == "" {
		return store.Document{Key: key}
	}
	doc, value := parseRevision(key, text)
	doc.Value = []byte(value)
	return doc
}

// ListChanges implements store.Settings. Like Documents.list it reads all of them with one command.
func (s *Lanes) ListChanges(ctx context.Context, _ string, since int64) (store.Changes, error) {
	names, changes, err := listChanges(ctx, s.Client, s.Keys.LaneChanges, s.Keys.LaneSettings, since)
	switch {
	case err != nil:
	case changes.IsComplete:
		var stored map[string]string
		stored, err = s.Client.HGetAll(ctx, s.Keys.LaneSettings).Result()
		for name, text := range stored {
			if q, ok := layout.ParseQueue(name); ok { // the field without a name is the newest revision
				changes.Documents = append(changes.Documents, ParseLane(store.LaneKey(q), text))
			}
		}
		changes.Revision, err = layout.Num(stored[""]), connect.MapError(ctx, err)
	case len(names) > 0:
		keys := make([]store.DocumentKey, len(names))
		for i, name := range names {
			q, _ := layout.ParseQueue(name) // written by PutDocument
			keys[i] = store.LaneKey(q)
		}
		changes.Documents, _, err = s.read(ctx, keys)
	}
	if err != nil {
		return changes, fmt.Errorf("read changes of lane settings: %w", err)
	}
	return changes, nil
}

// scanChunk is about how many lanes ScanLanes reads at a time.
const scanChunk = 500

// ScanLanes implements store.Records.
func (s *Lanes) ScanLanes(ctx context.Context, cursor string) (docs []store.Document, next string, err error) {
	fields, at, err := s.Client.HScan(ctx, s.Keys.LaneSettings, uint64(layout.Int(cursor)), "", scanChunk).Result()
	if err != nil {
		return nil, "", fmt.Errorf("scan lane settings: %w", connect.MapError(ctx, err))
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if q, ok := layout.ParseQueue(fields[i]); ok { // the field without a name is the newest revision
			docs = append(docs, ParseLane(store.LaneKey(q), fields[i+1]))
		}
	}
	if at != 0 {
		next = strconv.FormatUint(at, 10)
	}
	return docs, next, nil
}

// ListDocuments lists the lanes of after's topic that have settings.
func (s *Lanes) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) (docs []store.Document, revision int64, err error) {
	shard.CheckBatchSize(limit)
	if limit <= 0 {
		limit = store.MaxBatch
	}
	topic := layout.TopicName(after.Namespace, after.Name)
	for len(docs) < limit {
		names, err := s.Client.MembersAfter(ctx, s.Keys.ConfiguredLanes(topic), after.Lane, limit-len(docs))
		if err != nil {
			return nil, 0, fmt.Errorf("list lane settings: %w", err)
		}
		keys := make([]store.DocumentKey, len(names))
		for i, name := range names {
			after.Lane = name
			keys[i] = after
		}
		var found []store.Document
		if found, revision, err = s.read(ctx, keys); err != nil {
			return nil, 0, fmt.Errorf("list lane settings: %w", err)
		}
		for _, doc := range found {
			if doc.Revision != 0 { // else it was removed in between
				docs = append(docs, doc)
			}
		}
		if len(names) == 0 {
			break
		}
	}
	return docs, revision, nil
}
