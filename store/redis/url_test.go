package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestRecord_KeepsURLsThroughEveryRewrite(t *testing.T) { each(t, urlsStay) }

func urlsStay(t *testing.T, s *Store) {
	const own, other, stranger = "https://a.example/hooks/1", "https://a.example:443/2", "https://b.example/3"
	e := entry("a")
	e.URL, e.Lane = own, "a.example:443"
	request := store.ClaimRequest{Queues: []store.QueueClaim{{Queue: e.Queue, Max: 1, Timeout: time.Second}}, Max: 1, MaxBytes: 1 << 20}
	in := insert(t, s, e)
	require.Equal(t, own, in[0].Job.URL)

	// is reads the job in every way.
	is := func(url string) {
		t.Helper()
		got, err := s.Shards()[0].Get(t.Context(), ref("a"))
		require.NoError(t, err)
		require.Equal(t, url, got.URL)
		page, err := s.Shards()[0].List(t.Context(), store.Filter{Namespace: e.Namespace, Topic: e.Topic, State: got.State, Limit: 1})
		require.NoError(t, err)
		require.Equal(t, url, page.Jobs[0].URL)
		require.Equal(t, url, insert(t, s, e)[0].Job.URL, "what is known is answered")
	}
	// hides says whether the record leaves out the host.
	hides := func(hidden bool) {
		t.Helper()
		rec, err := s.Client.HGet(t.Context(), s.shards[0].Keys.Jobs, "a").Result()
		require.NoError(t, err)
		require.Equal(t, hidden, !strings.Contains(rec, "://"))
	}
	edit := func(url string) {
		t.Helper()
		found, err := s.Shards()[0].Get(t.Context(), ref("a"))
		require.NoError(t, err)
		found.URL = url
		token := store.NewToken()
		for range 2 { // a repeat answers from the call's memory
			edited, err := s.Shards()[0].Replace(t.Context(), token, ref("a"), store.Replacement{
				Kind: job.KindEdited, IfVersion: found.Version, Spec: &found.Spec,
			})
			require.NoError(t, err)
			require.Equal(t, url, edited.URL)
		}
		is(url)
	}
	revive := func(url, want string) {
		t.Helper()
		_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("a"))
		require.NoError(t, err)
		token := store.NewToken()
		for range 2 {
			revived, err := s.Shards()[0].Revive(t.Context(), token, []store.Revival{{Ref: ref("a"), URL: url}})
			require.NoError(t, err)
			require.NoError(t, revived[0].Err)
			require.Equal(t, want, revived[0].Job.URL)
		}
		is(want)
	}
	is(own)
	hides(true)
	edit(stranger)
	hides(false)
	edit(other)
	hides(true)
	revive("", other)
	hides(true)
	revive(stranger, stranger)
	hides(false)
	revive(own, own)
	hides(true)
	revive("", own)
	edit(other)
	hides(true)

	claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Equal(t, other, claimed.Jobs[0].URL)
	is(other)
	settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Again}, 500))
	is(other)
	claimed, err = s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Equal(t, other, claimed.Jobs[0].URL)
	settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted}, 500))
	is(other)
}
