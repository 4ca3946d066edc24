package storetest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestFaultyFailsBeforeOrAfterACall(t *testing.T) {
	for fault, registered := range map[storetest.Fault]int{storetest.Before: 0, storetest.LostReply: 1} {
		m := storetest.NewModel(storetest.ModelOptions{})
		f := storetest.Faulty(m, storetest.Nth("Insert", 2, fault))
		_, err := f.Insert(t.Context(), 0, store.NewToken(), []store.NewJob{entry("first", 0)})
		require.NoError(t, err)
		token := store.NewToken()
		_, err = f.Insert(t.Context(), 0, token, []store.NewJob{entry("second", 0)})
		require.ErrorIs(t, err, store.ErrUnavailable)
		stats, err := f.TopicStats(t.Context(), 0, store.StatsFilter{Namespace: "default", Topics: []string{"orders"}})
		require.NoError(t, err)
		require.EqualValues(t, 1+registered, stats[0].Registered)
		got, err := f.Insert(t.Context(), 0, token, []store.NewJob{entry("second", 0)})
		require.NoError(t, err)
		require.Equal(t, store.Created, got[0].Outcome)
	}
}

func TestFaultyShareIsRepeatable(t *testing.T) {
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

func TestFaultyCoversEveryMethodThatChangesSomething(t *testing.T) {
	f := storetest.Faulty(storetest.NewModel(storetest.ModelOptions{}), func(string) storetest.Fault { return storetest.Before })
	ctx, token, ref := t.Context(), store.NewToken(), job.Ref{Namespace: "default", ID: "a"}
	for method, call := range map[string]func() error{
		"Insert": func() error { _, err := f.Insert(ctx, 0, token, []store.NewJob{entry("a", 0)}); return err },
		"Lead":   func() error { _, err := f.Lead(ctx, 0); return err },
		"Carry":  func() error { _, err := f.Carry(ctx, 0, token, store.CarryOptions{}); return err },
		"Wait":   func() error { _, err := f.Wait(ctx, 0, store.WaitOptions{Group: store.GroupPush}); return err },
		"Notify": func() error { return f.Notify(ctx, 0, []job.Queue{queue}) },
		"ClaimExpired": func() error {
			_, err := f.ClaimExpired(ctx, 0, token, store.ClaimExpiredRequest{Max: 1, Lease: time.Second})
			return err
		},
		"Claim":  func() error { _, err := f.Claim(ctx, 0, token, all); return err },
		"Settle": func() error { _, _, err := f.Settle(ctx, 0, token, nil, nil); return err },
		"Cancel": func() error { _, err := f.Cancel(ctx, 0, token, ref); return err },
		"Edit":   func() error { _, err := f.Edit(ctx, 0, token, ref, store.Edit{}); return err },
		"Revive": func() error { _, err := f.Revive(ctx, 0, token, []store.Revival{{Ref: ref}}); return err },
		"Purge":  func() error { _, err := f.Purge(ctx, 0, token, []job.Ref{ref}); return err },
		"Sweep":  func() error { _, err := f.Sweep(ctx, 0, token, 1); return err },
		"PutTopic": func() error {
			_, err := f.PutTopic(ctx, store.Topic{Namespace: "default", Name: "orders"})
			return err
		},
		"PutLane": func() error { _, err := f.PutLane(ctx, 0, token, store.Lane{Queue: queue}); return err },
		"Permit":  func() error { _, err := f.Permit(ctx, 0, token, []store.PermitRequest{{Topic: "orders"}}); return err },
		"Alarm":   func() error { _, err := f.Alarm(ctx, 0, token, store.Alarm{Topic: "orders", Raised: true}); return err },
	} {
		require.ErrorIs(t, call(), store.ErrUnavailable, method)
	}
}
