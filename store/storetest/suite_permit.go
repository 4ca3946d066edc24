package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// ask returns a request for starts of a topic.
func (s *suite) ask(topic string, rate policy.Rate, n int) store.PermitRequest {
	return store.PermitRequest{Namespace: s.queue.Namespace, Topic: topic, Rate: rate, Starts: n}
}

func (s *suite) permitUnder(token store.Token, asks ...store.PermitRequest) []store.Permit {
	s.Helper()
	shard := s.router.ShardOfTopic(asks[0].Namespace, asks[0].Topic)
	permits, err := s.Store.Shards()[shard].Permit(s.Context(), token, asks)
	require.NoError(s, err)
	require.Len(s, permits, len(asks))
	return permits
}

func (s *suite) permit(ask store.PermitRequest) store.Permit {
	s.Helper()
	return s.permitUnder(store.NewToken(), ask)[0]
}

var permitCases = []testCase{
	{"grants the starts that the window has left, and returns when it has more", func(s *suite) {
		rate := policy.Rate{Starts: 5, Per: long}
		first := s.permit(s.ask("orders", rate, 3))
		require.Equal(s, 3, first.Starts)
		require.Zero(s, first.Next)
		s.sameTime(s.now(), first.At, "At")
		second := s.permit(s.ask("orders", rate, 3))
		require.Equal(s, 2, second.Starts)
		require.InDelta(s, long, second.Next, float64(s.tolerance()))
		third := s.permit(s.ask("orders", rate, 3))
		require.Zero(s, third.Starts)
		require.InDelta(s, long, third.Next, float64(s.tolerance()))
		none := s.permit(s.ask("orders", rate, 0))
		require.Zero(s, none.Starts)
		require.Zero(s, none.Next)
	}},
	{"grants a part of a request larger than the rate", func(s *suite) {
		p := s.permit(s.ask("orders", policy.Rate{Starts: 5, Per: long}, 50))
		require.Equal(s, 5, p.Starts)
		require.InDelta(s, long, p.Next, float64(s.tolerance()))
	}},
	{"grants the next start at Next", func(s *suite) {
		rate := policy.Rate{Starts: 2, Per: s.shortTime()}
		ask := s.ask("orders", rate, 2)
		ask.Slack = s.shortTime() / 4
		first := s.permit(ask)
		require.Equal(s, 2, first.Starts)
		next := s.permit(ask)
		if s.Advance == nil { // it may be a slow machine
			s.eventually("another grant", func() bool { next = s.permit(ask); return next.Starts > 0 })
			require.GreaterOrEqual(s, next.At.Sub(first.At), ask.Slack+rate.Per)
			return
		}
		require.Zero(s, next.Starts)
		require.Equal(s, ask.Slack+rate.Per, next.Next)
		s.Advance(next.Next - time.Millisecond)
		require.Equal(s, time.Millisecond, s.permit(ask).Next)
		s.Advance(time.Millisecond)
		require.Equal(s, 2, s.permit(ask).Starts)
	}},
	{"no window has more starts than the rate allows, over all callers", func(s *suite) {
		rate := policy.Rate{Starts: 6, Per: s.shortTime() / 4}
		slacks := []time.Duration{0, rate.Per / 5, rate.Per / 2}
		random := rand.New(rand.NewPCG(3, 3))
		var mu sync.Mutex
		var made []time.Time
		for range s.number(20, 40) {
			var wg sync.WaitGroup
			for range 3 {
				ask := s.ask("orders", rate, random.IntN(5))
				ask.Slack = slacks[random.IntN(len(slacks))]
				use, late := random.Float64(), random.Float64()
				wg.Go(func() {
					got, err := s.Store.Shards()[s.router.ShardOfTopic(ask.Namespace, ask.Topic)].Permit(s.Context(),
						store.NewToken(), []store.PermitRequest{ask})
					if err != nil {
						s.Error(err)
						return
					}
					p := got[0]
					mu.Lock()
					defer mu.Unlock()
					used := int(use * float64(p.Starts+1))
					for range used {
						made = append(made, p.At.Add(time.Duration(late*float64(ask.Slack))))
					}
				})
			}
			wg.Wait()
			s.advance(time.Duration(1+random.IntN(int(rate.Per/time.Millisecond))) * time.Millisecond / 2)
		}
		slices.SortFunc(made, time.Time.Compare)
		for i := range len(made) - rate.Starts {
			require.GreaterOrEqual(s, made[i+rate.Starts].Sub(made[i]), rate.Per, "starts %d to %d", i, i+rate.Starts)
		}
		require.GreaterOrEqual(s, len(made), 2*rate.Starts, "the rate lets starts go")
	}},
	{"starts count by the Slack of the request that was granted", func(s *suite) {
		rate := func(starts int) policy.Rate { return policy.Rate{Starts: starts, Per: 4 * s.shortTime()} }
		asks := func(topic string, starts int) (late, early store.PermitRequest) {
			late, early = s.ask(topic, rate(starts), starts/2), s.ask(topic, rate(starts), starts/2)
			late.Slack, early.Slack = long, 10*time.Millisecond
			return late, early
		}
		sizes := map[string]int{"few": 10, "many": 100} // counted one by one, and in groups
		for name, starts := range sizes {
			late, soon := asks(name+" at once", starts)
			granted := s.permitUnder(store.NewToken(), late, soon)
			require.Equal(s, starts/2, granted[0].Starts)
			require.Equal(s, starts/2, granted[1].Starts)
			late, soon = asks(name+" in turn", starts)
			require.Equal(s, starts/2, s.permit(late).Starts)
			s.advance(3 * time.Millisecond)
			require.Equal(s, starts/2, s.permit(soon).Starts)
		}
		s.advance(10*time.Millisecond + 4*s.shortTime() + 2*time.Millisecond)
		for name, starts := range sizes {
			for _, topic := range []string{name + " at once", name + " in turn"} {
				next := s.permit(s.ask(topic, rate(starts), starts))
				require.LessOrEqual(s, next.Starts, starts/2, "%s: the other half counts still", topic)
			}
		}
	}},
	{"topics are counted apart, and requests of a call are answered in order", func(s *suite) {
		rate := policy.Rate{Starts: 3, Per: long}
		shard := s.router.ShardOfTopic(s.queue.Namespace, "orders")
		other := ""
		for i := 0; other == ""; i++ {
			if name := fmt.Sprintf("topic-%d", i); s.router.ShardOfTopic(s.queue.Namespace, name) == shard {
				other = name
			}
		}
		got := s.permitUnder(store.NewToken(), s.ask("orders", rate, 2), s.ask(other, rate, 3),
			s.ask("orders", rate, 2), s.ask("orders", rate, 1))
		for i, n := range []int{2, 3, 1, 0} {
			require.Equal(s, n, got[i].Starts, "ask %d", i)
		}
		theirs := s.ask("orders", rate, 2)
		theirs.Namespace = "other"
		require.Equal(s, 2, s.permit(theirs).Starts, "another namespace is another topic")
	}},
	{"a repeated token returns the first result and grants nothing more", func(s *suite) {
		rate := policy.Rate{Starts: 5, Per: long}
		token := store.NewToken()
		first := s.permitUnder(token, s.ask("orders", rate, 3))
		s.advance(2 * time.Millisecond)
		require.Equal(s, first, s.permitUnder(token, s.ask("orders", rate, 3)))
		require.Equal(s, 2, s.permit(s.ask("orders", rate, 9)).Starts)
	}},
	{"the request's rate applies", func(s *suite) {
		require.Equal(s, 2, s.permit(s.ask("orders", policy.Rate{Starts: 2, Per: long}, 9)).Starts)
		s.put(policy.Topic{Rate: policy.Rate{Starts: 50, Per: long}})
		require.Zero(s, s.permit(s.ask("orders", policy.Rate{Starts: 2, Per: long}, 9)).Starts)
		require.Equal(s, 3, s.permit(s.ask("orders", policy.Rate{Starts: 5, Per: long}, 9)).Starts)
		s.advance(2 * time.Millisecond)
		require.Equal(s, 5, s.permit(s.ask("orders", policy.Rate{Starts: 5, Per: time.Millisecond}, 5)).Starts)
	}},
	{"grants survive a restart", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		rate := policy.Rate{Starts: 5, Per: long}
		s.permit(s.ask("orders", rate, 4))
		s.Store = s.Reopen()
		require.Equal(s, 1, s.permit(s.ask("orders", rate, 4)).Starts)
	}},
}
