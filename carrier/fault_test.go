package carrier_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

func TestCarry_BacksOffWhenOnlyTheMoveFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		s := storetest.Faulty(model(1), func(m string) storetest.Fault {
			if m == "Carry" {
				n.Add(1)
				return storetest.Before
			}
			return storetest.None
		})
		run(t, s)
		time.Sleep(time.Minute)
		require.Less(t, n.Load(), int32(80))
	})
}

type noInsertStore struct {
	store.Store
	shard int
}

func (n noInsertStore) Shards() []store.Shard {
	return storetest.WrapShards(n.Store,
		func(number int, next store.Shard) store.Shard { return noInsertShard{next, n, number} })
}

type noInsertShard struct {
	store.Shard
	noInsertStore
	number int
}

func (s noInsertShard) Insert(ctx context.Context, token store.Token, e []store.NewJob) ([]store.InsertResult, error) {
	if s.number == s.shard {
		return nil, errors.New("a print of 300 bytes is longer than 255")
	}
	return s.Shard.Insert(ctx, token, e)
}

func TestRelay_SkipsAnEntryThatCannotBeInserted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{Shards: 2})
		rt := router.New(m)
		lane := ""
		for i := 0; lane == ""; i++ {
			if l := fmt.Sprint("l", i); rt.ShardOf(job.Queue{Namespace: "default", Topic: "children", Lane: l}) == 1 {
				lane = l
			}
		}
		insert(t, m, "parent", 0)
		insert(t, m, "held", 0)
		held := claim(t, m)
		require.Len(t, held, 2)
		var b store.NewJob
		b.ID, b.URL, b.Method, b.Queue = "callback", "https://x.example/", "POST", job.Queue{
			Namespace: "default",
			Topic:     "children", Lane: lane,
		}
		_, _, err := m.Shards()[0].Settle(t.Context(), store.NewToken(), []store.Settlement{{
			Ref: held[0].Ref(), Queue: queue, Lease: held[0].Lease, Verdict: policy.Verdict{Kind: policy.Delivered},
			Outbox: []store.NewJob{b},
		}}, nil)
		require.NoError(t, err)
		run(t, noInsertStore{m, 1})
		time.Sleep(10 * time.Minute)
		got, err := m.Shards()[0].Get(t.Context(), held[1].Ref())
		require.NoError(t, err)
		require.Equal(t, job.Ready, got.State, "its lease expired ten minutes ago")
	})
}

func TestSweep_KeepsUpWithTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy.Builtin()
		p.KeepDelivered.For = new(10 * time.Second)
		m := storetest.NewModel(storetest.ModelOptions{Defaults: p})
		run(t, m)
		n := 0
		for range 60 {
			for range testkit.Of(1, 4) { // of 250 delivered jobs, a second
				var es []store.NewJob
				for range 250 {
					n++
					var e store.NewJob
					e.ID, e.Queue, e.URL, e.Method = fmt.Sprint(n), queue, "https://x.example/", "POST"
					es = append(es, e)
				}
				_, err := m.Shards()[0].Insert(t.Context(), store.NewToken(), es)
				require.NoError(t, err)
				for left := 250; left > 0; {
					c, err := m.Shards()[0].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
						Queues: []store.QueueClaim{{Queue: queue, Max: 250, Timeout: time.Second}}, Max: 250,
						MaxBytes: 1 << 30, Margin: time.Second,
					})
					require.NoError(t, err)
					var ss []store.Settlement
					for _, h := range c.Jobs {
						ss = append(ss, store.Settlement{
							Ref: h.Ref(), Queue: queue, Lease: h.Lease,
							Verdict: policy.Verdict{Kind: policy.Delivered},
						})
					}
					left -= len(ss)
					_, _, err = m.Shards()[0].Settle(t.Context(), store.NewToken(), ss, nil)
					require.NoError(t, err)
				}
				time.Sleep(time.Second / time.Duration(testkit.Of(1, 4)))
			}
		}
		time.Sleep(20 * time.Second)
		kept := 0
		f := store.Filter{
			Namespace: "default", Topic: "orders", States: []job.State{job.Delivered},
			Limit: store.MaxListLimit,
		}
		for more := true; more; {
			page, err := m.Shards()[0].List(t.Context(), f)
			require.NoError(t, err)
			kept += len(page.Jobs)
			f.After, more = page.Reached, page.More
		}
		require.Less(t, kept, 1000, "all are older than 10 s")
	})
}
