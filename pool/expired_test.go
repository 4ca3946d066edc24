package pool_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

func TestEndExpired_LeavesAJobThatAPolicyLetsLiveLongerToItsDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(0)
		g.result = policy.Result{Class: policy.ClassHTTP, Status: 500}
		var e store.Entry
		e.ID, e.Queue, e.URL, e.MaxAge = "retried", queueOf("orders", "a"), "https://x.example/", time.Minute
		_, err := s.Insert(t.Context(), 0, store.NewToken(), []store.Entry{e})
		require.NoError(t, err)
		longer := policy.Topic{Ladder: policy.Ladder{time.Hour}, Jitter: new(0.0), MaxAge: 24 * time.Hour}
		p := pool.New(pool.Options{
			Store: s, Deliverer: g, Policies: fixed(longer.Over(policy.Builtin())), Logger: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		carry(t, s)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, g.count(""))
		due := get(t, s, "retried").DueAt
		require.Greater(t, time.Until(due), 50*time.Minute)
		p.EndExpired(0)
		time.Sleep(time.Second)
		carry(t, s)
		time.Sleep(time.Minute)
		require.Equal(t, 1, g.count(""), "no attempt before its rung")
		require.Equal(t, due, get(t, s, "retried").DueAt)
		cancel()
		require.NoError(t, <-ended)
	})
}
