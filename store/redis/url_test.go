package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestAURLIsWrittenWithoutWhatItsLaneSays(t *testing.T) {
	for _, c := range []struct{ url, lane, field string }{
		{"http://a.example/x?y=1#z", "a.example:80", "\x10\x08/x?y=1#z"},
		{"https://a.example/x", "a.example:443", "\x11\x02/x"},
		{"http://a.example:80/x", "a.example:80", "\x0e\x02/x"},
		{"https://a.example:443/x", "a.example:443", "\x0f\x02/x"},
		{"http://a.example:8080/x", "a.example:8080", "\x0e\x02/x"},
		{"https://[::1]:8443/x", "[::1]:8443", "\x0f\x02/x"},
		{"https://[::1]/x", "[::1]:443", "\x11\x02/x"},
		{"https://a.example", "a.example:443", "\x11\x00"},
		{"http://a.example:8080", "a.example:8080", "\x0e\x00"},
		{"https://a.example?x", "a.example:443", "\x11\x02?x"},
		{"https://a.example:4430/x", "a.example:443", "\x0f\x030/x"},
		{"https://a.example.net/x", "a.example", "\x0f\x06.net/x"},
		{"https://A.example/x", "a.example:443", "\x03\x13https://A.example/x"},
		{"HTTPS://a.example/x", "a.example:443", "\x03\x13HTTPS://a.example/x"},
		{"https://a.example./x", "a.example:443", "\x11\x03./x"},
		{"https://u@a.example/x", "a.example:443", "\x03\x15https://u@a.example/x"},
		{"https://a.example/x", "customer-42", "\x03\x13https://a.example/x"},
		{"https://b.example/x", "a.example:443", "\x03\x13https://b.example/x"},
		{"", "default", ""},
	} {
		q := &queue{Queue: job.Queue{Lane: c.lane}, number: "1", short: true}
		require.Equal(t, c.field, string(appendURL(nil, c.url, q)), "%s in %s", c.url, c.lane)
		head, rest, err := encode(&job.Spec{URL: c.url, Method: "POST"}, q, false, 0, nil)
		require.NoError(t, err)
		got, err := decode(stamp(head, rest, 1), c.lane, false)
		require.NoError(t, err)
		require.Equal(t, c.url, got.spec.URL, "in %s", c.lane)

		q.short = false
		require.Equal(t, string(appendText(nil, tagURL, c.url)), string(appendURL(nil, c.url, q)))
	}
}

func TestRecordsOfBothFormsAreReadForEver(t *testing.T) {
	for _, text := range []string{
		"\x01\x06\x00\x00\x00\x07\x00\x05\xdc\x00\x00\x02\x01\x8b\xcf\xe5\x68\x00{}\x03\x13https://a.example/x\x01\x02\x03\xe8",
		"\x02\x06\x00\x00\x00\x07\x00\x05\xdc\x00\x00\x02\x01\x8b\xcf\xe5\x68\x00{}\x11\x02/x\x01\x02\x03\xe8",
	} {
		got, err := decode(text, "a.example:443", false)
		require.NoError(t, err)
		require.Equal(t, job.Spec{
			URL: "https://a.example/x", Method: "POST", BodyKind: job.BodyJSON, Body: []byte("{}"), ContentType: "application/json",
			Terms: policy.Terms{Timeout: 1500 * time.Millisecond},
		}, got.spec)
		require.EqualValues(t, 1700000000000, got.due)
		require.EqualValues(t, 1699999999000, got.created)
	}
}

// laidOut opens a store whose data have a layout.
func laidOut(t *testing.T, url string, layout int) *Store {
	t.Helper()
	at, err := ParseAddress(url)
	require.NoError(t, err)
	require.NoError(t, client(t, at.options.Addr).HSet(t.Context(), "rb:meta", "version", layout, "shards", 1).Err())
	return open(t, Options{URL: url})
}

func TestURLsStayWhatTheyAreHoweverTheyAreWritten(t *testing.T) {
	for name, layout := range map[string]int{"whole": layoutPlain, "short": layoutPlain + layoutShort} {
		t.Run(name, func(t *testing.T) {
			t.Run("miniredis", func(t *testing.T) { urlsStay(t, laidOut(t, "redis://"+miniredis.RunT(t).Addr(), layout)) })
			t.Run("redis", func(t *testing.T) { urlsStay(t, laidOut(t, redistest.Start(t).URL(), layout)) })
		})
	}
}

func urlsStay(t *testing.T, s *Store) {
	const own, other, stranger = "https://a.example/hooks/1", "https://a.example:443/2", "https://b.example/3"
	e := entry("a")
	e.URL, e.Lane = own, "a.example:443"
	request := store.ClaimRequest{Queues: []store.QueueClaim{{Queue: e.Queue, Max: 1, Timeout: time.Second}}, Max: 1, MaxBytes: 1 << 20}
	in := insert(t, s, e)
	require.Equal(t, own, in[0].Job.URL)

	// is reads the job in every way, and looks at its record.
	is := func(url string) {
		t.Helper()
		got, err := s.Shards()[0].Get(t.Context(), ref("a"))
		require.NoError(t, err)
		require.Equal(t, url, got.URL)
		page, err := s.Shards()[0].List(t.Context(), store.Filter{Namespace: e.Namespace, Topic: e.Topic, State: got.State, Limit: 1})
		require.NoError(t, err)
		require.Equal(t, url, page.Jobs[0].URL)
		require.Equal(t, url, insert(t, s, e)[0].Job.URL, "what is known is answered")
		rec, err := s.client.HGet(t.Context(), s.shards[0].jobs, "a").Result()
		require.NoError(t, err)
		if s.shards[0].short {
			require.EqualValues(t, formShort, rec[0])
		} else {
			require.EqualValues(t, formWhole, rec[0])
			require.Contains(t, rec, url)
		}
	}
	// hides says whether the record leaves out the host.
	hides := func(hidden bool) {
		t.Helper()
		rec, err := s.client.HGet(t.Context(), s.shards[0].jobs, "a").Result()
		require.NoError(t, err)
		require.Equal(t, hidden && s.shards[0].short, !strings.Contains(rec, "://"))
	}
	edit := func(url string) {
		t.Helper()
		token := store.NewToken()
		for range 2 { // a repeat answers from the call's memory
			edited, err := s.Shards()[0].Edit(t.Context(), token, ref("a"), store.Edit{Kind: job.KindEdited, URL: new(url)})
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

func TestProcessesThatOpenedTwoLayoutsReadEachOther(t *testing.T) {
	url := redistest.Start(t).URL()
	whole := laidOut(t, url, layoutPlain)
	short := laidOut(t, url, layoutPlain+layoutShort)
	e := entry("a")
	e.URL, e.Lane = "https://a.example/1", "a.example:443"
	for i, by := range []*Store{whole, short} {
		e.ID = []string{"a", "b"}[i]
		insert(t, by, e)
		other := []*Store{short, whole}[i]
		for range 2 {
			by, other = other, by
			got, err := by.Shards()[0].Get(t.Context(), e.Ref())
			require.NoError(t, err)
			require.Equal(t, e.URL, got.URL)
			got, err = by.Shards()[0].Edit(t.Context(), store.NewToken(), e.Ref(), store.Edit{Kind: job.KindEdited, Retries: new(3)})
			require.NoError(t, err)
			require.Equal(t, e.URL, got.URL)
			rec, err := by.client.HGet(t.Context(), by.shards[0].jobs, e.ID).Result()
			require.NoError(t, err)
			require.Equal(t, by == whole, strings.Contains(rec, e.URL))
		}
	}
}
