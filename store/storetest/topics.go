package storetest

import (
	"context"

	"github.com/ringback/ringback/store"
)

// ListTopics reads all stored policies in order of namespace and name, and their revision. Unreadable ones are pauses.
func ListTopics(ctx context.Context, s store.Settings) ([]store.Topic, int64, error) {
	docs, revision, err := s.ListDocuments(ctx, store.DocumentKey{Kind: store.KindTopic}, 0)
	topics := make([]store.Topic, len(docs))
	for i, doc := range docs {
		topics[i], _ = doc.Topic()
	}
	return topics, revision, err
}
