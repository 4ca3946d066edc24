package storetest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestFaulty_FailsBeforeOrAfterACall(t *testing.T) {
	for fault, registered := range map[storetest.Fault]int{storetest.Before: 0, storetest.LostReply: 1} {
		m := storetest.NewModel(storetest.ModelOptions{})
		f := storetest.Faulty(m, storetest.Nth("Insert", 2, fault))
		_, err := f.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("first", 0)})
		require.NoError(t, err)
		token := store.NewToken()
		_, err = f.Shards()[0].Insert(t.Context(), token, []store.NewJob{entry("second", 0)})
		require.ErrorIs(t, err, store.ErrUnavailable)
		stats, err := f.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: "default", Topics: []string{"orders"}})
		require.NoError(t, err)
		require.EqualValues(t, 1+registered, stats[0].Registered)
		got, err := f.Shards()[0].Insert(t.Context(), token, []store.NewJob{entry("second", 0)})
		require.NoError(t, err)
		require.Equal(t, store.Created, got[0].Outcome)
	}
}

func TestFaulty_ShareIsRepeatable(t *testing.T) {
	a, b := storetest.Share(3, 0.5), storetest.Share(3, 0.5)
	count := make(map[storetest.Fault]int)
	for range 1000 {
		fault := a("Claim")
		require.Equal(t, fault, b("Claim"))
		count[fault]++
	}
	require.InDelta(t, 500, count[storetest.None], 100)
	require.InDelta(t, 250, count[storetest.Before], 100)
	require.InDelta(t, 250, count[storetest.LostReply], 100)
}

func TestFaulty_CoversEveryMethodThatChangesSomething(t *testing.T) {
	f := storetest.Faulty(storetest.NewModel(storetest.ModelOptions{}),
		func(string) storetest.Fault { return storetest.Before })
	ctx, token, ref := t.Context(), store.NewToken(), job.Ref{Namespace: "default", ID: "a"}
	for method, call := range map[string]func() error{
		"Insert": func() error {
			_, err := f.Shards()[0].Insert(ctx, token, []store.NewJob{entry("a", 0)})
			return err
		},
		"Lead":  func() error { _, err := f.Shards()[0].Lead(ctx); return err },
		"Carry": func() error { _, err := f.Shards()[0].Carry(ctx, token, store.CarryOptions{}); return err },
		"Wait": func() error {
			_, err := f.Shards()[0].Wait(ctx, store.WaitOptions{Groups: []string{store.GroupPush}})
			return err
		},
		"Notify": func() error { return f.Shards()[0].Notify(ctx, []job.Queue{queue}) },
		"ClaimExpired": func() error {
			_, err := f.Shards()[0].ClaimExpired(ctx, token, store.ClaimExpiredRequest{Max: 1, Lease: time.Second})
			return err
		},
		"Claim":  func() error { _, err := f.Shards()[0].Claim(ctx, token, all); return err },
		"Settle": func() error { _, _, err := f.Shards()[0].Settle(ctx, token, nil, nil); return err },
		"Cancel": func() error { _, err := f.Shards()[0].Cancel(ctx, token, ref, store.Cancellation{}); return err },
		"Replace": func() error {
			_, err := f.Shards()[0].Replace(ctx, token, ref, store.Replacement{})
			return err
		},
		"Revive": func() error {
			_, err := f.Shards()[0].Revive(ctx, token, []store.Revival{{Ref: ref}})
			return err
		},
		"Purge": func() error {
			_, err := f.Shards()[0].Purge(ctx, token, []store.Removal{{Ref: ref}})
			return err
		},
		"PutRecords": func() error { _, err := f.Shards()[0].PutRecords(ctx, token, nil); return err },
		"Sweep":      func() error { _, err := f.Shards()[0].Sweep(ctx, token, 1); return err },
		"PutTopic": func() error {
			_, err := store.PutTopic(ctx, f, store.Topic{Namespace: "default", Name: "orders"})
			return err
		},
		"PutLane": func() error {
			_, err := store.PutLane(ctx, f.Shards()[0], token, store.Lane{Queue: queue})
			return err
		},
		"Permit": func() error {
			_, err := f.Shards()[0].Permit(ctx, token, []store.PermitRequest{{Topic: "orders"}})
			return err
		},
		"Alarm": func() error {
			_, err := f.Shards()[0].Alarm(ctx, token, store.Alarm{Topic: "orders", Raised: true})
			return err
		},
	} {
		require.ErrorIs(t, call(), store.ErrUnavailable, method)
	}
}
