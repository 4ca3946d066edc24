package carrier_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

// partialOutage is a store with a shard that fails or hangs.
type partialOutage struct {
	store.Store

	mu      sync.Mutex
	shard   int // -1: none
	silent  bool
	inserts int
	skipped int // the most that a round of another shard passed over
	bytes   int // handed out by other shards' outboxes
}

func (p *partialOutage) Shards() []store.Shard {
	return storetest.WrapShards(p.Store,
		func(n int, next store.Shard) store.Shard { return partialOutageShard{next, p, n} })
}

type partialOutageShard struct {
	store.Shard
	*partialOutage
	number int
}

func (p *partialOutage) set(shard int, silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shard, p.silent = shard, silent
}

// counts are the insertions that failed, the most that was passed over, and the bytes handed out.
func (p *partialOutage) counts() (inserts, skipped, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inserts, p.skipped, p.bytes
}

func (p *partialOutage) call(ctx context.Context, shard int) error {
	p.mu.Lock()
	out, silent := p.shard == shard, p.silent
	p.mu.Unlock()
	if !out {
		return nil
	}
	if silent {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return &store.UnavailableError{Reason: "the shard is away"}
}

func (s partialOutageShard) Insert(
	ctx context.Context, token store.Token, e []store.NewJob,
) ([]store.InsertResult, error) {
	if err := s.call(ctx, s.number); err != nil {
		s.mu.Lock()
		s.inserts++
		s.mu.Unlock()
		return nil, err
	}
	return s.Shard.Insert(ctx, token, e)
}

func (s partialOutageShard) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	if err := s.call(ctx, s.number); err != nil {
		return nil, err
	}
	return s.Shard.Known(ctx, refs)
}

func (s partialOutageShard) Carry(
	ctx context.Context, token store.Token, round store.CarryOptions,
) (store.CarryResult, error) {
	if err := s.call(ctx, s.number); err != nil {
		return store.CarryResult{}, err
	}
	c, err := s.Shard.Carry(ctx, token, round)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skipped = max(s.skipped, round.SkipOutbox)
	for _, e := range c.Outbox {
		s.bytes += len(e.Body)
	}
	return c, err
}

// laneOn is a lane of the topic whose queue is on a shard.
func laneOn(r *router.Router, shard int) job.Queue {
	for i := 0; ; i++ {
		q := job.Queue{Namespace: "default", Topic: job.CallbackTopic, Lane: fmt.Sprint("l", i)}
		if r.ShardOf(q) == shard {
			return q
		}
	}
}

// callbackJobs returns n callback jobs of a queue, as settlements write them to the outbox.
func callbackJobs(name string, q job.Queue, n int) (entries []store.NewJob) {
	for i := range n {
		var e store.NewJob
		e.ID, e.Queue, e.URL, e.Method, e.Kind = fmt.Sprintf("rb:%s-%d", name, i), q, "https://x.example/", "POST",
			job.KindCallback
		e.Body = make([]byte, 1000)
		e.Fingerprint = codec.Fingerprint(&e.New)
		entries = append(entries, e)
	}
	return entries
}

// fillOutbox settles a new job of shard 0 with outbox jobs.
func fillOutbox(t *testing.T, s store.Store, entries ...store.NewJob) {
	t.Helper()
	insert(t, s, fmt.Sprint("parent of ", entries[0].ID), 0)
	held := claim(t, s)
	require.Len(t, held, 1)
	_, _, err := s.Shards()[0].Settle(t.Context(), store.NewToken(), []store.Settlement{{
		Ref: held[0].Ref(), Queue: queue, Lease: held[0].Lease,
		Verdict: policy.Verdict{Kind: policy.Delivered}, Outbox: entries,
	}}, nil)
	require.NoError(t, err)
}

// countInserted returns how many of the entries are in their queue.
func countInserted(t *testing.T, s store.Store, shard int, entries []store.NewJob) (n int) {
	t.Helper()
	for _, e := range entries {
		if _, err := s.Shards()[shard].Get(t.Context(), e.Ref()); err == nil {
			n++
		}
	}
	return n
}

func TestShards_UnavailableShardDelaysNoOther(t *testing.T) {
	for name, silent := range map[string]bool{"away": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := model(4)
				s := &partialOutage{Store: m, shard: 3, silent: silent}
				rt := router.New(m)
				run(t, s)
				time.Sleep(time.Second)
				far, near := laneOn(rt, 3), laneOn(rt, 1)
				// More entries than a round returns are before those that can be inserted.
				lost := callbackJobs("lost", far, 2*store.MaxBatch)
				fillOutbox(t, m, lost...)
				for i := range 5 {
					some := callbackJobs(fmt.Sprint("near", i), near, 3)
					fillOutbox(t, m, append(callbackJobs(fmt.Sprint("far", i), far, 2), some...)...)
					began := time.Now()
					for countInserted(t, m, 1, some) < 3 {
						time.Sleep(time.Millisecond)
						require.Less(t, time.Since(began), time.Second)
					}
					require.LessOrEqual(t, time.Since(began), 250*time.Millisecond)
				}
				time.Sleep(3 * time.Minute)
				require.Zero(t, countInserted(t, m, 3, lost))
				inserts, _, bytes := s.counts()
				require.Less(t, inserts, 450, "it is tried again and again, not all the time")
				require.Less(t, bytes, 8*2*store.MaxBatch*1000,
					"entries that cannot be inserted are not read in every round")

				s.set(-1, false)
				time.Sleep(15 * time.Second)
				require.Equal(t, len(lost), countInserted(t, m, 3, lost))
				stats, err := rt.TopicStats(t.Context(),
					store.StatsFilter{Namespace: "default", Topics: []string{job.CallbackTopic}})
				require.NoError(t, err)
				require.EqualValues(t, len(lost)+5*5, stats[0].Registered, "each once")
				carried, err := m.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
				require.NoError(t, err)
				require.Empty(t, carried.Outbox, "relayed entries leave the outbox")
			})
		})
	}
}

func TestShards_SilentShardDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model(4)
		s := &partialOutage{Store: m, shard: 3, silent: true}
		rt := router.New(m)
		run(t, s)
		time.Sleep(time.Second)
		fillOutbox(t, m, callbackJobs("lost", laneOn(rt, 3), 5)...)
		// the parent's wake-up
		_, err := m.Shards()[0].Wait(t.Context(),
			store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Millisecond})
		require.NoError(t, err)
		for i := range 100 {
			insert(t, m, fmt.Sprint("due-", i), 300*time.Millisecond)
			began := time.Now()
			wakeup, err := m.Shards()[0].Wait(t.Context(),
				store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Minute})
			require.NoError(t, err)
			require.Equal(t, []job.Queue{queue}, wakeup)
			require.LessOrEqual(t, time.Since(began), 450*time.Millisecond)
			settleAll(t, m, claim(t, m))
		}
		s.set(-1, false)
		time.Sleep(15 * time.Second) // the hanging shard responds now
	})
}

// settleAll delivers held jobs.
func settleAll(t *testing.T, s store.Store, held []store.ClaimedJob) {
	t.Helper()
	require.NotEmpty(t, held)
	for _, h := range held {
		_, _, err := s.Shards()[0].Settle(t.Context(), store.NewToken(), []store.Settlement{{
			Ref: h.Ref(), Queue: queue, Lease: h.Lease, Verdict: policy.Verdict{Kind: policy.Delivered},
		}}, nil)
		require.NoError(t, err)
	}
}

// Entries relayed by another carrier, whose lock expired unnoticed, make this one skip too many.
func TestRepair_RetriesSkippedEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model(4)
		s := &partialOutage{Store: m, shard: 3}
		rt := router.New(m)
		run(t, s)
		time.Sleep(time.Second)
		lost := callbackJobs("lost", laneOn(rt, 3), 10)
		fillOutbox(t, m, lost...)
		time.Sleep(5 * time.Second)
		_, skipped, _ := s.counts()
		require.Equal(t, 10, skipped)
		var relayed []job.Ref
		for _, e := range lost {
			relayed = append(relayed, e.Ref())
		}
		_, err := m.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{Relayed: relayed})
		require.NoError(t, err)
		near := callbackJobs("near", laneOn(rt, 1), 3)
		fillOutbox(t, m, near...)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 3, countInserted(t, m, 1, near))
	})
}
