package layout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
)

// testSpec returns a job.Spec without its id.
func testSpec() job.Spec {
	return job.Spec{
		Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: "t", Lane: "l"},
		URL:   "https://example.com/hooks/0123456789", Method: "POST",
		ContentType: "application/json", BodyKind: job.BodyJSON, Body: []byte(`{"a":1}`),
	}
}

// stamp puts a due time into a record as the scripts do.
func stamp(head, rest []byte, due int64) string {
	ms := []byte{byte(due >> 40), byte(due >> 32), byte(due >> 24), byte(due >> 16), byte(due >> 8), byte(due)}
	return string(head) + string(ms) + string(rest)
}

func TestDecodeRecord_ReadsEncodedRecords(t *testing.T) {
	ms := rapid.Int64Range(0, 1<<47)
	rapid.Check(t, func(t *rapid.T) {
		q := job.Queue{Namespace: "n", Topic: "t", Lane: "a.example:443"}
		spec := job.Spec{
			Queue: q, URL: "https://a.example/x", Method: "PUT",
			BodyKind: rapid.SampledFrom([]job.BodyKind{job.BodyNone, job.BodyJSON, job.BodyText, job.BodyBase64}).
				Draw(t, "kind"),
			Terms: policy.Terms{Timeout: time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "timeout"))},
		}
		if spec.BodyKind != job.BodyNone {
			spec.Body = append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body")...)
		}
		spec.Unknown = codec.AppendField(nil, 60, []byte(rapid.String().Draw(t, "unknown")))
		due := ms.Draw(t, "due")
		r := &Record{
			Spec: spec, Fingerprint: rapid.Bool().Draw(t, "fingerprint"), Due: due,
			Created: rapid.Int64Range(0, due).Draw(t, "created"), MaxAge: ms.Draw(t, "max age"),
		}
		head, rest, err := r.Encode("4294967295")
		require.NoError(t, err)
		text := stamp(head, rest, due)
		got, err := DecodeRecord(text, q, false)
		require.NoError(t, err)
		require.Equal(t, r, got)
		require.Equal(t, "\xff\xff\xff\xff", text[2:6])

		got, err = DecodeRecord(text[:minRecord]+text[minRecord+len(spec.Body):], q, true)
		require.NoError(t, err)
		r.Spec.Body = nil
		require.Equal(t, r, got, "without the body")
	})
}

// The stored form of a record, by hand: the fields of a Spec are those of package codec.
func TestDecodeRecord_ReadsTheStoredForm(t *testing.T) {
	q := job.Queue{Lane: "a.example:443"}
	const text = "\x01\x01\x00\x00\x00\x07\x00\x05\xdc\x00\x00\x02\x01\x8b\xcf\xe5\x68\x00{}" +
		"\x02\x02\x08x" + "\x09\x05\x80\xbc\xc1\x96\x0b" + "\x82\x06\x00\x00\x00\x36\xee\x80" + "\x80\x02\x03\xe8"
	want := &Record{
		Spec: job.Spec{
			Queue: q, URL: "https://a.example/x", Method: "POST", BodyKind: job.BodyJSON, Body: []byte("{}"),
			ContentType: "application/json", Terms: policy.Terms{Timeout: 1500 * time.Millisecond},
		},
		Fingerprint: true, Due: 1700000000000, Created: 1699999999000, MaxAge: time.Hour.Milliseconds(),
	}
	head, rest, err := want.Encode("7")
	require.NoError(t, err)
	require.Equal(t, text, stamp(head, rest, want.Due))
	want.Expires = 1700000001000
	got, err := DecodeRecord(text+"\x81\x06\x01\x8b\xcf\xe5\x6b\xe8", q, false)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func FuzzDecodeRecord(f *testing.F) {
	head, rest, err := (&Record{Spec: testSpec(), Due: 1}).Encode("1")
	require.NoError(f, err)
	f.Add(stamp(head, rest, 1))
	f.Add("")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = DecodeRecord(text, testSpec().Queue, false) // must not panic
		_, _ = DecodeRecord(text, testSpec().Queue, true)  // as above
	})
}

func TestDecodeRecord_RefusesOtherFormats(t *testing.T) {
	head, rest, err := (&Record{Spec: testSpec()}).Encode("1")
	require.NoError(t, err)
	_, err = DecodeRecord(stamp(head, codec.AppendField(rest, TagOrder+1, nil), 1), testSpec().Queue, false)
	require.ErrorIs(t, err, ErrRecord)
	head[0]++
	_, err = DecodeRecord(stamp(head, rest, 1), testSpec().Queue, false)
	require.ErrorIs(t, err, ErrRecord)
}

func TestRecord_HoldsTheLargestBody(t *testing.T) {
	r := Record{Spec: job.Spec{BodyKind: job.BodyText, Method: "POST", Body: make([]byte, job.MaxBody)}}
	head, rest, err := r.Encode("1")
	require.NoError(t, err)
	read, err := DecodeRecord(stamp(head, rest, 0), testSpec().Queue, false)
	require.NoError(t, err)
	require.Len(t, read.Spec.Body, job.MaxBody)

	r.Spec.Body = make([]byte, job.MaxBody+1)
	_, _, err = r.Encode("1")
	require.Error(t, err)
	require.NotEmpty(t, job.Validate(job.New{Spec: r.Spec}, time.Now()), "no such job comes here")
}

// BenchmarkRecord encodes and decodes a record.
func BenchmarkRecord(b *testing.B) {
	r := Record{Spec: testSpec(), Due: 1000}
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := r.Encode("1"); err != nil {
				b.Fatal(err)
			}
		}
	})
	head, rest, err := r.Encode("1")
	require.NoError(b, err)
	text := stamp(head, rest, time.Now().UnixMilli())
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeRecord(text, testSpec().Queue, false); err != nil {
				b.Fatal(err)
			}
		}
	})
}
