package transfer

import (
	"context"
	"fmt"
	"slices"

	"github.com/ringback/ringback/dispatcher/schedules"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// exportDocuments writes all documents, and finds the ordered queues.
func (e *exporter) exportDocuments(ctx context.Context) error {
	for _, kind := range mainKinds {
		if e.WithoutSecrets && isToken(kind) {
			continue
		}
		if err := eachDocument(ctx, e.Stores[0], kind, e.exportDocument); err != nil {
			return err
		}
	}
	for _, s := range e.Stores {
		own := func(doc store.Document) error {
			if !slices.Contains(e.of[s.Name], doc.Key.Namespace) {
				return nil
			}
			return e.exportDocument(doc)
		}
		for _, kind := range storeKinds {
			if err := eachDocument(ctx, s, kind, own); err != nil {
				return err
			}
		}
		for _, shard := range s.Shards() {
			if err := eachLane(ctx, shard, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachLane calls do for the settings of the lanes of a shard.
func eachLane(ctx context.Context, shard store.Records, do func(store.Document) error) error {
	for cursor := ""; ; {
		docs, next, err := shard.ScanLanes(ctx, cursor)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			if err := do(doc); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

func (e *exporter) exportDocument(doc store.Document) error {
	if limitsOf(doc).Ordered {
		e.ordered[doc.Key.Queue()] = true
	}
	value := doc.Value
	if doc.Key.Kind == store.KindSchedule {
		var err error
		if value, err = schedules.Portable(&doc); err != nil {
			return fmt.Errorf("%s: %w", describe(doc.Key), err)
		}
	}
	if e.WithoutSecrets {
		var err error
		if value, err = removeFromValue(value); err != nil {
			return fmt.Errorf("%s: %w", describe(doc.Key), err)
		}
	}
	l := &line{Document: &document{
		Kind: doc.Key.Kind, Namespace: doc.Key.Namespace, Name: doc.Key.Name,
		Lane: doc.Key.Lane, Value: value,
	}}
	if err := e.w.write(l); err != nil {
		return fmt.Errorf("%s: %w", describe(doc.Key), err)
	}
	return nil
}

// limitsOf returns the limits of a document that engines apply. Those of an unreadable one pause.
func limitsOf(doc store.Document) policy.Limits {
	doc.Revision = max(doc.Revision, 1) // it is stored
	switch doc.Key.Kind {
	case store.KindTopic:
		t, _ := doc.Topic()
		return t.Policy.Limits()
	case store.KindLane:
		l, _ := doc.Lane()
		return l.Settings.Limits()
	}
	return policy.Limits{}
}

func (e *exporter) isOrdered(q job.Queue) bool {
	return e.ordered[q] || e.ordered[job.Queue{Namespace: q.Namespace, Topic: q.Topic}]
}
