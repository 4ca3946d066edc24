package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// stamp puts a due moment into a record as the scripts do.
func stamp(head, rest []byte, due int64) string {
	ms := []byte{byte(due >> 40), byte(due >> 32), byte(due >> 24), byte(due >> 16), byte(due >> 8), byte(due)}
	return string(head) + string(ms) + string(rest)
}

func TestDecode_ReadsWhatWasEncoded(t *testing.T) {
	ms := rapid.Int64Range(0, 1<<47)
	rapid.Check(t, func(t *rapid.T) {
		q := job.Queue{Namespace: "n", Topic: "t", Lane: "a.example:443"}
		spec := job.Spec{
			Queue: q, URL: "https://a.example/x", Method: "PUT",
			BodyKind: rapid.SampledFrom([]job.BodyKind{job.BodyNone, job.BodyJSON, job.BodyText, job.BodyBase64}).Draw(t, "kind"),
			Terms:    policy.Terms{Timeout: time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "timeout"))},
		}
		if spec.BodyKind != job.BodyNone {
			spec.Body = append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body")...)
		}
		spec.Unknown = codec.AppendField(nil, 60, []byte(rapid.String().Draw(t, "unknown")))
		due := ms.Draw(t, "due")
		r := &record{
			spec: spec, fingerprint: rapid.Bool().Draw(t, "fingerprint"), due: due,
			created: rapid.Int64Range(0, due).Draw(t, "created"), maxAge: ms.Draw(t, "max age"),
		}
		head, rest, err := r.encode("4294967295")
		require.NoError(t, err)
		text := stamp(head, rest, due)
		got, err := decode(text, q, false)
		require.NoError(t, err)
		require.Equal(t, r, got)
		require.Equal(t, "\xff\xff\xff\xff", text[2:6])

		got, err = decode(text[:dueEnd]+text[dueEnd+len(spec.Body):], q, true)
		require.NoError(t, err)
		r.spec.Body = nil
		require.Equal(t, r, got, "without the body")
	})
}

// The stored form of a record, by hand: the fields of a Spec are those of package codec.
func TestDecode_ReadsTheStoredForm(t *testing.T) {
	q := job.Queue{Lane: "a.example:443"}
	const text = "\x01\x01\x00\x00\x00\x07\x00\x05\xdc\x00\x00\x02\x01\x8b\xcf\xe5\x68\x00{}" +
		"\x02\x03\x04/x" + "\x09\x05\x80\xbc\xc1\x96\x0b" + "\x82\x06\x00\x00\x00\x36\xee\x80" + "\x80\x02\x03\xe8"
	want := &record{
		spec: job.Spec{
			Queue: q, URL: "https://a.example/x", Method: "POST", BodyKind: job.BodyJSON, Body: []byte("{}"), ContentType: "application/json",
			Terms: policy.Terms{Timeout: 1500 * time.Millisecond},
		},
		fingerprint: true, due: 1700000000000, created: 1699999999000, maxAge: time.Hour.Milliseconds(),
	}
	head, rest, err := want.encode("7")
	require.NoError(t, err)
	require.Equal(t, text, stamp(head, rest, want.due))
	want.expires = 1700000001000
	got, err := decode(text+"\x81\x06\x01\x8b\xcf\xe5\x6b\xe8", q, false)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func FuzzDecode(f *testing.F) {
	head, rest, err := (&record{spec: entry("a").Spec, due: 1}).encode("1")
	require.NoError(f, err)
	f.Add(stamp(head, rest, 1))
	f.Add("")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = decode(text, lane, false) // must not panic
		_, _ = decode(text, lane, true)  // as above
	})
}

func TestDecode_RefusesOtherForms(t *testing.T) {
	head, rest, err := (&record{spec: entry("a").Spec}).encode("1")
	require.NoError(t, err)
	_, err = decode(stamp(head, codec.AppendField(rest, tagMaxAge+1, nil), 1), lane, false)
	require.ErrorIs(t, err, errRecord)
	head[0]++
	_, err = decode(stamp(head, rest, 1), lane, false)
	require.ErrorIs(t, err, errRecord)
}

func TestEdit_KeepsFieldsOfANewerVersion(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		e := entry("a")
		e.ExpiresIn = time.Hour
		insert(t, s, e)
		key := s.shards[0].jobs
		before, err := s.client.HGet(t.Context(), key, "a").Result()
		require.NoError(t, err)
		newer := codec.AppendField(nil, 60, []byte("from the future"))
		require.NoError(t, s.client.HSet(t.Context(), key, "a", before+string(newer)).Err())

		edited, err := storetest.Edit(t.Context(), s.Shards()[0], store.NewToken(), ref("a"), func(spec *job.Spec) { spec.URL = "https://other.example/" })
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
	r := record{spec: job.Spec{BodyKind: job.BodyText, Method: "POST", Body: make([]byte, job.MaxBody)}}
	head, rest, err := r.encode("1")
	require.NoError(t, err)
	read, err := decode(stamp(head, rest, 0), lane, false)
	require.NoError(t, err)
	require.Len(t, read.spec.Body, job.MaxBody)

	r.spec.Body = make([]byte, job.MaxBody+1)
	_, _, err = r.encode("1")
	require.Error(t, err)
	require.NotEmpty(t, job.Validate(job.New{Spec: r.spec}, time.Now()), "no such job comes here")
}
