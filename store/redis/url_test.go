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
	request := store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: e.Queue, Max: 1, Timeout: time.Second}},
		Max:    1, MaxBytes: 1 << 20,
	}
	in := insert(t, s, e)
	require.Equal(t, own, in[0].Job.URL)

	// requireURL reads the job in every way.
	requireURL := func(url string) {
		t.Helper()
		got, err := s.Shards()[0].Get(t.Context(), ref("a"))
		require.NoError(t, err)
		require.Equal(t, url, got.URL)
		page, err := s.Shards()[0].List(t.Context(),
			store.Filter{Namespace: e.Namespace, Topic: e.Topic, States: []job.State{got.State}, Limit: 1})
		require.NoError(t, err)
		require.Equal(t, url, page.Jobs[0].URL)
		require.Equal(t, url, insert(t, s, e)[0].Job.URL, "a known id returns the stored job")
	}
	// requireHidden requires that the record leaves out the host, or that it does not.
	requireHidden := func(hidden bool) {
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
		for range 2 { // a repeat returns the stored reply
			edited, err := s.Shards()[0].Replace(t.Context(), token, ref("a"), store.Replacement{
				Kind: job.EventEdited, IfVersion: found.Version, Spec: &found.Spec,
			})
			require.NoError(t, err)
			require.Equal(t, url, edited.URL)
		}
		requireURL(url)
	}
	revive := func(url, want string) {
		t.Helper()
		_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("a"), store.Cancellation{})
		require.NoError(t, err)
		token := store.NewToken()
		for range 2 {
			revived, err := s.Shards()[0].Revive(t.Context(), token, []store.Revival{{Ref: ref("a"), URL: url}})
			require.NoError(t, err)
			require.NoError(t, revived[0].Err)
			require.Equal(t, want, revived[0].Job.URL)
		}
		requireURL(want)
	}
	requireURL(own)
	requireHidden(true)
	edit(stranger)
	requireHidden(false)
	edit(other)
	requireHidden(true)
	revive("", other)
	requireHidden(true)
	revive(stranger, stranger)
	requireHidden(false)
	revive(own, own)
	requireHidden(true)
	revive("", own)
	edit(other)
	requireHidden(true)

	claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Equal(t, other, claimed.Jobs[0].URL)
	requireURL(other)
	settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Again}, 500))
	requireURL(other)
	claimed, err = s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Equal(t, other, claimed.Jobs[0].URL)
	settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted}, 500))
	requireURL(other)
}
