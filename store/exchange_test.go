package store_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// settling is a shard whose Settle is a function.
type settling struct {
	store.Queue
	settle func(token store.Token, items []store.Settlement) ([]error, error)
}

func (s settling) Settle(
	_ context.Context, token store.Token, items []store.Settlement, _ *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	errs, err := s.settle(token, items)
	return errs, store.ClaimResult{}, err
}

// settlements returns settlements of jobs with the ids.
func settlements(ids ...string) (all []store.Settlement) {
	for _, id := range ids {
		all = append(all, store.Settlement{Ref: job.Ref{ID: id}})
	}
	return all
}

var (
	errRejected    = errors.New("rejected")
	errUnavailable = &store.UnavailableError{Reason: "it is down"}
)

func TestExchange_RepeatsUnderOneTokenUntilTheStoreAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tokens []store.Token
		var settled []string
		e := store.Exchange{
			Log:     slog.New(slog.DiscardHandler),
			Settled: func(s *store.Settlement) { settled = append(settled, s.Ref.ID) },
			Queue: settling{settle: func(token store.Token, items []store.Settlement) ([]error, error) {
				if tokens = append(tokens, token); len(tokens) < 4 {
					return nil, errUnavailable
				}
				return []error{nil, store.ErrLeaseLost}, nil
			}},
		}
		got := make([]error, 2)
		e.Settle(t.Context(), "t", settlements("a", "b"), func(i int, err error) { got[i] = err })
		require.Equal(t, []error{nil, store.ErrLeaseLost}, got)
		require.Equal(t, []store.Token{"t", "t", "t", "t"}, tokens)
		require.Equal(t, []string{"a"}, settled, "not what was refused")
	})
}

func TestExchange_SettlesOneByOneAfterARejectionUntilTheStoreIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(map[store.Token]bool)
		e := store.Exchange{For: 5 * time.Second, Log: slog.New(slog.DiscardHandler)}
		e.Queue = settling{settle: func(token store.Token, items []store.Settlement) ([]error, error) {
			tokens[token] = true
			switch items[0].Ref.ID {
			case "b":
				return nil, errRejected
			case "d":
				return nil, errUnavailable
			}
			if len(items) > 1 {
				return nil, errRejected
			}
			return []error{nil}, nil
		}}
		got, began := make([]error, 6), time.Now()
		e.Settle(t.Context(), "t", settlements("a", "b", "c", "d", "e", "f"), func(i int, err error) { got[i] = err })
		require.Equal(t, []error{nil, errRejected, nil, errUnavailable, errUnavailable, errUnavailable}, got)
		require.Len(t, tokens, 5, "one for all, and one for each that was tried")
		require.Less(t, time.Since(began), 8*time.Second, "the rest is not tried")
		e.Settle(t.Context(), "t", settlements("a", "b", "c", "d"), func(int, error) {})
		require.Len(t, tokens, 5, "a repeat has the same tokens")
	})
}

func TestExchange_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := store.Exchange{
			Log: slog.New(slog.DiscardHandler),
			Queue: settling{settle: func(store.Token, []store.Settlement) ([]error, error) {
				return nil, errUnavailable
			}},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, began := make([]error, 2), time.Now()
		e.Settle(ctx, "t", settlements("a", "b"), func(i int, err error) { got[i] = err })
		require.Equal(t, []error{errUnavailable, errUnavailable}, got)
		require.WithinRange(t, time.Now(), began.Add(time.Minute), began.Add(time.Minute+time.Second))
	})
}

func TestExchange_LeavesTheRestWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := store.Exchange{Log: slog.New(slog.DiscardHandler)}
	e.Queue = settling{settle: func(_ store.Token, items []store.Settlement) ([]error, error) {
		if len(items) > 1 {
			return nil, errRejected
		}
		cancel()
		return []error{nil}, nil
	}}
	got := make([]error, 3)
	e.Settle(ctx, "t", settlements("a", "b", "c"), func(i int, err error) { got[i] = err })
	require.Equal(t, []error{nil, context.Canceled, context.Canceled}, got)
}
