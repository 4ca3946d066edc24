package carrier_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/carrier"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

// steppedClockStore reports a clock step in its first round.
type steppedClockStore struct {
	store.Store
	rounds atomic.Int32
}

func (s *steppedClockStore) Shards() []store.Shard {
	return storetest.WrapShards(s.Store,
		func(_ int, next store.Shard) store.Shard { return steppedClockShard{next, s} })
}

type steppedClockShard struct {
	store.Shard
	*steppedClockStore
}

func (s steppedClockShard) Carry(
	ctx context.Context, token store.Token, round store.CarryOptions,
) (store.CarryResult, error) {
	carried, err := s.Shard.Carry(ctx, token, round)
	if s.rounds.Add(1) == 1 {
		carried.ClockStep = -10 * time.Minute
	}
	return carried, err
}

func TestCarrier_WarnsOnceOfAClockStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		c := carrier.New(router.New(&steppedClockStore{Store: model(1)}), slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c.Run(ctx)
		require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
		require.Contains(t, log.String(), "store clock was stepped")
		require.Contains(t, log.String(), "shard=0 step=-10m0s")
	})
}
