package redis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// PutDocument writes a lane's settings where the lane's jobs are, whether it has any or not.
func (sh *shard) PutDocument(ctx context.Context, token store.Token, doc store.Document, limits policy.Limits) (store.Document, error) {
	s, q := sh.store, doc.Key.Queue()
	err := s.retryStale(sh, func() error {
		found, err := sh.find(ctx, s.runner, []job.Queue{q})
		if err != nil {
			return err
		}
		if found[0] == nil {
			found = nil
		}
		c := s.newCall(sh, scriptPutLane, sh.keys.Reply(string(token), "l"), found, nil, 5)
		c.keys = append(c.keys, sh.keys.Settings, sh.keys.ConfiguredLanes(layout.TopicName(q.Namespace, q.Topic)), sh.keys.Queues)
		c.add(q.String(), q.Lane, doc.Revision, layout.FormatLaneLimits(limits), doc.Value)
		reply, reached, err := s.evalDurable(ctx, c.script, c.keys, c.args)
		if err != nil {
			return err
		}
		if str(reply) == "!" {
			return store.ErrVersion
		}
		doc.Revision, doc.Durability = num(reply), reached
		return nil
	})
	if err != nil {
		return store.Document{}, fmt.Errorf("put lane settings: %w", err)
	}
	return doc, nil
}

// GetDocuments implements store.Settings.
func (sh *shard) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	checkBatchSize(len(keys))
	docs, _, err := sh.laneDocuments(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read lane settings: %w", err)
	}
	return docs, nil
}

// laneDocuments reads the settings of lanes, '<revision> <settings>', and the newest revision.
func (sh *shard) laneDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, int64, error) {
	names := make([]string, len(keys), len(keys)+1)
	for i, key := range keys {
		names[i] = key.Queue().String()
	}
	values, err := sh.store.client.HMGet(ctx, sh.keys.Settings, append(names, "")...).Result()
	if err != nil {
		return nil, 0, connect.MapError(ctx, err)
	}
	docs := make([]store.Document, len(keys))
	for i, key := range keys {
		docs[i] = laneDocument(key, str(values[i]))
	}
	return docs, num(str(values[len(keys)])), nil
}

// laneDocument reads stored settings, '<revision> <settings>'; empty: there are none.
func laneDocument(key store.DocumentKey, text string) store.Document {
	if text == "" {
		return store.Document{Key: key}
	}
	doc, value := parseRevision(key, text)
	doc.Value = []byte(value)
	return doc
}

// ListDocuments lists the lanes of after's topic that have settings.
func (sh *shard) ListDocuments(ctx context.Context, after store.DocumentKey, limit int) (docs []store.Document, revision int64, err error) {
	checkBatchSize(limit)
	if limit <= 0 {
		limit = store.MaxBatch
	}
	topic := layout.TopicName(after.Namespace, after.Name)
	for len(docs) < limit {
		from := "-"
		if after.Lane != "" {
			from = "(" + after.Lane
		}
		names, err := sh.store.client.ZRangeByLex(ctx, sh.keys.ConfiguredLanes(topic),
			&redis.ZRangeBy{Min: from, Max: "+", Count: int64(limit - len(docs))}).Result()
		if err != nil {
			return nil, 0, fmt.Errorf("list lane settings: %w", connect.MapError(ctx, err))
		}
		keys := make([]store.DocumentKey, len(names))
		for i, name := range names {
			after.Lane = name
			keys[i] = after
		}
		var found []store.Document
		if found, revision, err = sh.laneDocuments(ctx, keys); err != nil {
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
