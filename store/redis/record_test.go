package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// stamp puts a due moment into a record as the scripts do.
func stamp(head, rest []byte, due int64) string {
	ms := []byte{byte(due >> 40), byte(due >> 32), byte(due >> 24), byte(due >> 16), byte(due >> 8), byte(due)}
	return string(head) + string(ms) + string(rest)
}

// targets are URLs that begin as those of a lane do, or nearly so.
func targets(lane, path string) *rapid.Generator[string] {
	host, _, _ := strings.Cut(lane, ":")
	return rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "http://", "https://", "HTTP://", "ftp://"}).Draw(t, "scheme") +
			rapid.SampledFrom([]string{"", lane, host, strings.ToUpper(lane), host + ":443", host + ":80", "u:p@" + lane}).Draw(t, "authority") +
			rapid.SampledFrom([]string{"", "/", "?", "0/", ".b/"}).Draw(t, "then") + path
	})
}

func TestARecordReadsAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 20, -1)
		q := &queue{number: "4294967295", short: rapid.Bool().Draw(t, "short")}
		q.Lane = rapid.SampledFrom([]string{"a.example:443", "a.example:80", "a.example", "[::1]:8080", "l"}).Draw(t, "lane")
		spec := job.Spec{
			URL: targets(q.Lane, text.Draw(t, "path")).Draw(t, "url"), Method: rapid.SampledFrom([]string{"POST", "PUT", "GET"}).Draw(t, "method"),
			ContentType: rapid.SampledFrom([]string{"", "application/json", "text/plain", "text/plain; charset=utf-8"}).Draw(t, "type"),
			BodyKind:    rapid.SampledFrom([]job.BodyKind{job.BodyNone, job.BodyJSON, job.BodyText, job.BodyBase64}).Draw(t, "kind"),
			Kind:        text.Draw(t, "job kind"), Origin: text.Draw(t, "origin"),
		}
		if spec.BodyKind != job.BodyNone {
			spec.Body = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body")
			if spec.Body == nil {
				spec.Body = []byte{}
			}
		}
		if rapid.Bool().Draw(t, "more") {
			spec.Header = rapid.MapOf(text, rapid.SliceOfN(text, 1, 3)).Draw(t, "header")
			spec.Labels = rapid.MapOf(text, text).Draw(t, "labels")
			spec.Ladder = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
				return time.Duration(rapid.Int64Range(1, int64(policy.MaxRung)).Draw(t, "rung"))
			}), 1, 20).Draw(t, "ladder")
			spec.Retries = new(rapid.IntRange(0, 1000).Draw(t, "retries"))
			spec.Timeout = time.Duration(rapid.Int64Range(int64(100*time.Millisecond), int64(10*time.Minute)).Draw(t, "timeout"))
			spec.OnDelivered = rapid.SampledFrom([]*policy.Callback{nil, {URL: "https://told.example/?a=1"}}).Draw(t, "on delivered")
			spec.OnDead = rapid.SampledFrom([]*policy.Callback{nil, {
				URL: "https://told.example/é", Method: "PUT", Headers: map[string][]string{"X-A": {"1", "2"}}, Retries: new(0),
				Timeout: time.Second, Include: []string{policy.IncludeBody, policy.IncludeQuery},
			}}).Draw(t, "on dead")
		}
		due := rapid.Int64Range(1, 1<<47).Draw(t, "due")
		delta := rapid.Int64Range(0, due).Draw(t, "delta")
		printed := rapid.Bool().Draw(t, "print")
		extra := appendField(nil, 200, []byte(text.Draw(t, "unknown")))

		head, rest, err := encode(&spec, q, printed, delta, extra)
		require.NoError(t, err)
		got, err := decode(stamp(head, rest, due), q.Lane, false)
		require.NoError(t, err)
		require.Equal(t, spec, got.spec)
		require.Equal(t, "\xff\xff\xff\xff", string(head[2:6]))
		require.Equal(t, printed, got.print)
		require.Equal(t, due, got.due)
		require.Equal(t, due-delta, got.created)
		require.Equal(t, extra, got.extra)
	})
}

func FuzzDecode(f *testing.F) {
	e := entry("a")
	for _, short := range []bool{false, true} {
		head, rest, err := encode(&e.Spec, &queue{Queue: job.Queue{Lane: "example.com"}, number: "1", short: short}, true, 1, nil)
		require.NoError(f, err)
		f.Add(stamp(head, rest, 1))
	}
	f.Add("")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = decode(text, "l", false) // must not panic
		_, _ = decode(text, "l", true)  // as above
	})
}

func TestARecordOfANewerFormIsRefused(t *testing.T) {
	e := entry("a")
	head, rest, err := encode(&e.Spec, &queue{number: "1"}, true, 1, nil)
	require.NoError(t, err)
	head[0] = 3
	_, err = decode(stamp(head, rest, 1), "l", false)
	require.ErrorContains(t, err, "form 3")
}

func TestFieldsOfANewerVersionSurviveEdits(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		e := entry("a")
		e.ExpiresIn = time.Hour
		insert(t, s, e)
		key := s.shards[0].jobs
		before, err := s.client.HGet(t.Context(), key, "a").Result()
		require.NoError(t, err)
		newer := appendField(nil, 222, []byte("from the future"))
		require.NoError(t, s.client.HSet(t.Context(), key, "a", before+string(newer)).Err())

		edited, err := s.Shards()[0].Edit(t.Context(), store.NewToken(), ref("a"), store.Edit{Kind: job.KindEdited, URL: new("https://other.example/")})
		require.NoError(t, err)
		require.Equal(t, "https://other.example/", edited.URL)
		require.False(t, edited.ExpiresAt.IsZero())
		_, err = s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("a"))
		require.NoError(t, err)
		_, err = reviveOne(t, s, store.NewToken(), "a", 0)
		require.NoError(t, err)
		after, err := s.client.HGet(t.Context(), key, "a").Result()
		require.NoError(t, err)
		require.Contains(t, after, string(newer))
	})
}

func TestEncode_HoldsTheLargestBody(t *testing.T) {
	q := &queue{number: "1", Queue: job.Queue{Lane: "l"}}
	spec := job.Spec{BodyKind: job.BodyText, Method: "POST", Body: make([]byte, job.MaxBody)}
	head, rest, err := encode(&spec, q, false, 0, nil)
	require.NoError(t, err)
	read, err := decode(string(head)+"\x00\x00\x00\x00\x00\x00"+string(rest), "l", false)
	require.NoError(t, err)
	require.Len(t, read.spec.Body, job.MaxBody)

	spec.Body = make([]byte, job.MaxBody+1)
	_, _, err = encode(&spec, q, false, 0, nil)
	require.Error(t, err)
	require.NotEmpty(t, job.Validate(job.New{Spec: spec}, time.Now()), "no such job comes here")
}
