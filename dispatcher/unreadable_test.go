package dispatcher_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// damagedSettings is a store that returns documents with a value that is no JSON, until they are put again.
type damagedSettings struct {
	store.Store
	mu      sync.Mutex
	damaged map[store.DocumentKey]bool
}

func (d *damagedSettings) damage(keys ...store.DocumentKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		d.damaged[key] = true
	}
}

func (d *damagedSettings) view(docs []store.Document) []store.Document {
	d.mu.Lock()
	defer d.mu.Unlock()
	docs = slices.Clone(docs)
	for i := range docs {
		if d.damaged[docs[i].Key] && docs[i].Revision != 0 {
			docs[i].Value = []byte("{")
		}
	}
	return docs
}

func (d *damagedSettings) repair(key store.DocumentKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.damaged, key)
}

func (d *damagedSettings) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	d.repair(doc.Key)
	return d.Store.PutDocument(ctx, token, doc, limits)
}

func (d *damagedSettings) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	changes, err := d.Store.ListChanges(ctx, kind, since)
	changes.Documents = d.view(changes.Documents)
	return changes, err
}

func (d *damagedSettings) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) ([]store.Document, int64, error) {
	docs, revision, err := d.Store.ListDocuments(ctx, after, limit)
	return d.view(docs), revision, err
}

func (d *damagedSettings) Shards() []store.Shard {
	return storetest.WrapShards(d.Store, func(_ int, next store.Shard) store.Shard { return damagedShard{next, d} })
}

type damagedShard struct {
	store.Shard
	of *damagedSettings
}

func (s damagedShard) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	s.of.repair(doc.Key)
	return s.Shard.PutDocument(ctx, token, doc, limits)
}

func (s damagedShard) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	docs, err := s.Shard.GetDocuments(ctx, keys)
	return s.of.view(docs), err
}

func (s damagedShard) Claim(
	ctx context.Context, token store.Token, request store.ClaimRequest,
) (store.ClaimResult, error) {
	claimed, err := s.Shard.Claim(ctx, token, request)
	return s.claimed(claimed), err
}

func (s damagedShard) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	errs, claimed, err := s.Shard.Settle(ctx, token, items, next)
	return errs, s.claimed(claimed), err
}

func (s damagedShard) claimed(result store.ClaimResult) store.ClaimResult {
	result.Queues = slices.Clone(result.Queues)
	for i := range result.Queues {
		if q := &result.Queues[i]; q.LaneDocument != nil {
			q.LaneDocument = &s.of.view([]store.Document{*q.LaneDocument})[0]
		}
	}
	return result
}

func TestSettings_UnreadableOnesHoldTheirTopicOrLaneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := model()
		rec := &receiver{answer: status(200)}
		first := start(t, dispatcher.Options{Store: all, RegisterOnly: true})
		for _, topic := range []string{"good", "bad"} {
			_, err := first.PutTopic(t.Context(), store.Topic{
				Namespace: job.DefaultNamespace, Name: topic, Policy: policy.Topic{URL: "https://topic.example/"},
			})
			require.NoError(t, err)
		}
		queue := func(topic, lane string) job.Queue {
			return job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane}
		}
		for _, lane := range []string{"good", "bad"} {
			_, err := first.ChangeLane(t.Context(), queue("good", lane), store.ChangeOptions{},
				func(l *policy.Lane) error { l.LaneConcurrency = 2; return nil })
			require.NoError(t, err)
		}
		_, err := first.PutSchedule(t.Context(), job.DefaultNamespace, "waits", store.ChangeOptions{},
			every(5*time.Minute, job.Spec{Queue: job.Queue{Topic: "bad"}}))
		require.NoError(t, err)
		made := map[job.Queue]job.Job{}
		for _, q := range []job.Queue{queue("good", "good"), queue("good", "bad"), queue("bad", "any")} {
			made[q] = first.register(t, job.New{Spec: job.Spec{Queue: q}})
		}
		topic := store.DocumentKey{Kind: store.KindTopic, Namespace: job.DefaultNamespace, Name: "bad"}
		damaged := &damagedSettings{Store: all, damaged: map[store.DocumentKey]bool{}}
		damaged.damage(topic, store.LaneKey(queue("good", "bad")))
		r := start(t, dispatcher.Options{Store: damaged, Deliverer: rec})
		time.Sleep(10 * time.Minute)
		for q, j := range made {
			require.Equal(t, q == queue("good", "good"), r.get(t, j.Ref()).State == job.Delivered, q.String())
		}
		require.Len(t, rec.calls(), 1)
		refused := r.Register(t.Context(), []job.New{{Spec: job.Spec{Queue: queue("bad", "any")}}})[0]
		require.ErrorIs(t, refused.Err, store.ErrUnreadable, "its topic may have a URL")
		scheduled, err := r.Schedule(t.Context(), job.DefaultNamespace, "waits")
		require.NoError(t, err)
		require.Zero(t, scheduled.Counts)
		shown, err := r.Topic(t.Context(), job.DefaultNamespace, "bad")
		require.NoError(t, err)
		require.True(t, shown.Policy.Paused)
		lane, err := r.Lane(t.Context(), queue("good", "bad"))
		require.NoError(t, err)
		require.True(t, lane.Settings.Paused)

		resumeTopic := func(p *policy.Topic) error { p.Paused = false; return nil }
		_, err = r.ChangeTopic(t.Context(), job.DefaultNamespace, "bad", store.ChangeOptions{}, resumeTopic)
		require.ErrorIs(t, err, store.ErrUnreadable, "the change would lose the other fields")
		resumeLane := func(l *policy.Lane) error { l.Paused = false; l.LaneConcurrency = 3; return nil }
		_, err = r.ChangeLane(t.Context(), queue("good", "bad"), store.ChangeOptions{}, resumeLane)
		require.ErrorIs(t, err, store.ErrUnreadable)
		for _, lane := range []string{"", "bad"} {
			owner := job.Queue{Namespace: job.DefaultNamespace, Topic: "good", Lane: lane}
			if lane == "" {
				owner.Topic = "bad"
			}
			_, err = r.AddSecret(t.Context(), owner, sign.NewSecret(), store.ChangeOptions{})
			require.ErrorIs(t, err, store.ErrUnreadable)
		}

		_, err = r.ReplaceTopic(t.Context(), job.DefaultNamespace, "bad", store.ChangeOptions{},
			func(p *policy.Topic) error {
				*p = policy.Topic{URL: "https://topic.example/"}
				return nil
			})
		require.NoError(t, err)
		_, err = r.ReplaceLane(t.Context(), queue("good", "bad"), store.ChangeOptions{}, resumeLane)
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		for q, j := range made {
			require.Equal(t, job.Delivered, r.get(t, j.Ref()).State, q.String())
		}
		scheduled, err = r.Schedule(t.Context(), job.DefaultNamespace, "waits")
		require.NoError(t, err)
		require.Positive(t, scheduled.Counts.Run)
		require.Zero(t, scheduled.Counts.Failed)
	})
}
