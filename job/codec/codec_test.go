package codec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
)

// encodedRegistration is what AppendNew writes of registration, but for its body: by hand, since it is stored.
const encodedRegistration = encodedQueue +
	"\x45\x06\x80\xe0\xba\x84\xbf\x03" + "\x47\x07\x80\x80\xc5\x8b\xc6\xd1\x01" +
	"\x02\x06\x08hooks" +
	"\x05\x18\x03" + "\x03X-A\x02\x011\x012" + "\x03X-B\x01\x013" + "\x03X-C\x01\x014" +
	"\x06\x0d\x03" + "\x01a\x011" + "\x01b\x012" + "\x01c\x013" +
	"\x07\x0b\x80\x94\xeb\xdc\x03" + "\x80\xb0\x9d\xc2\xdf\x01" +
	"\x08\x01\x05" + "\x09\x05\x80\xa8\xd6\xb9\x07" + "\x0c\x08callback" + "\x0d\x06parent"

const encodedQueue = "\x40\x07default" + "\x41\x06orders" + "\x42\x10shop.example:443" + "\x43\x0aorder-4711"

func TestAppendNew_IsStable(t *testing.T) {
	n := registration()
	require.Equal(t, encodedRegistration[:len(encodedQueue)]+"\x44\x07"+string(n.Body)+
		encodedRegistration[len(encodedQueue):], string(codec.AppendNew(nil, n)))
}

func TestAppendSpecWithoutURL_LeavesOnlyTheURLOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := specs(t)
		spec.Unknown = rapid.SliceOf(rapid.Byte()).Draw(t, "unknown")
		got := codec.AppendSpecWithoutURL(nil, &spec)
		spec.URL = ""
		require.Equal(t, codec.AppendSpec(nil, &spec), got)
	})
}

// urls are URLs that begin as those of a lane do, or nearly so.
func urls(lane, path string) *rapid.Generator[string] {
	host, _, _ := strings.Cut(lane, ":")
	return rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "http://", "https://", "HTTP://", "ftp://"}).Draw(t, "scheme") +
			rapid.SampledFrom([]string{"", lane, host, strings.ToUpper(lane), host + ":443", host + ":80", "u:p@" +
				lane}).Draw(t, "authority") +
			rapid.SampledFrom([]string{"", "/", "?", "0/", ".b/"}).Draw(t, "then") + path
	})
}

// specs are Specs with random fields.
func specs(t *rapid.T) job.Spec {
	text := rapid.StringN(0, 200, -1)
	spec := job.Spec{
		ID: text.Draw(t, "id"), Queue: job.Queue{
			Namespace: text.Draw(t, "namespace"), Topic: text.Draw(t, "topic"),
			Lane: rapid.SampledFrom([]string{"a.example:443", "a.example:80", "a.example", "[::1]:8080", "l", ""}).
				Draw(t, "lane"),
		},
		Method: rapid.SampledFrom([]string{"POST", "PUT", "GET"}).Draw(t, "method"),
		ContentType: rapid.SampledFrom([]string{"", "application/json", "text/plain", "text/plain; " +
			"charset=utf-8"}).Draw(t, "type"),
		BodyKind: rapid.SampledFrom([]job.BodyKind{job.BodyNone, job.BodyJSON, job.BodyText, job.BodyBase64}).Draw(t,
			"kind"),
		Kind: text.Draw(t, "job kind"), Origin: text.Draw(t, "origin"),
	}
	spec.URL = urls(spec.Lane, text.Draw(t, "path")).Draw(t, "url")
	if spec.BodyKind != job.BodyNone {
		spec.Body = append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body")...)
	}
	if rapid.Bool().Draw(t, "more") {
		spec.Header = rapid.MapOf(text, rapid.SliceOfN(text, 1, 3)).Draw(t, "header")
		spec.Labels = rapid.MapOf(text, text).Draw(t, "labels")
		spec.Ladder = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(1, int64(policy.MaxRung)).Draw(t, "rung"))
		}), 1, 20).Draw(t, "ladder")
		spec.Retries = new(rapid.IntRange(0, 1000).Draw(t, "retries"))
		spec.Timeout = time.Duration(rapid.Int64Range(int64(100*time.Millisecond), int64(10*time.Minute)).Draw(t,
			"timeout"))
		spec.OnDelivered = rapid.SampledFrom([]*policy.Callback{nil, {Off: true}, {URL: "https://owner.example/?a=1"}}).
			Draw(t, "on delivered")
		spec.OnDead = rapid.SampledFrom([]*policy.Callback{nil, {
			URL: "https://owner.example/é", Method: "PUT", Headers: map[string][]string{"X-A": {"1", "2"}},
			Retries: new(0), Timeout: time.Second, Include: []string{policy.IncludeBody, policy.IncludeQuery},
		}}).Draw(t, "on dead")
	}
	return spec
}

func TestDecodeSpec_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := specs(t)
		spec.Unknown = codec.AppendField(nil, 60, []byte("of a newer version"))
		b := codec.AppendField(codec.AppendSpec(nil, &spec), 200, []byte("own"))

		got := job.Spec{ID: spec.ID, Queue: spec.Queue, Body: spec.Body}
		var own []string
		require.NoError(t, codec.DecodeSpec(b, &got, func(tag byte, value []byte) error {
			require.EqualValues(t, 200, tag)
			own = append(own, string(value))
			return nil
		}))
		require.Equal(t, spec, got)
		require.Equal(t, []string{"own"}, own)
	})
}

func TestChange_TakesTheNamedFieldsFromAnother(t *testing.T) {
	stored := job.Spec{
		ID: "a", Queue: job.Queue{Topic: "t", Lane: "a.example:443"}, URL: "https://a.example/x",
		FirstURL: "https://b.example/", Method: "PUT",
		BodyKind: job.BodyText, ContentType: "text/csv", Body: []byte("1"), Labels: map[string]string{"x": "y"},
		Terms: policy.Terms{Retries: new(7), Timeout: time.Second, Ladder: policy.Ladder{time.Second}},
		Kind:  "callback",
	}
	from := job.Spec{
		URL: "https://a.example/y", BodyKind: job.BodyJSON, ContentType: "application/json",
		Body: []byte("2"), Terms: policy.Terms{Retries: new(0)},
	}
	changed, err := codec.Change(&stored, &from, []string{"url", "labels", "retries", "ladder"})
	require.NoError(t, err)
	wanted := stored
	wanted.URL, wanted.Labels, wanted.Retries, wanted.Ladder = from.URL, nil, new(0), nil
	require.Equal(t, wanted, changed)

	changed, err = codec.Change(&stored, &from, []string{"body", "content_type"})
	require.NoError(t, err)
	wanted = stored
	wanted.BodyKind, wanted.ContentType, wanted.Body = from.BodyKind, from.ContentType, from.Body
	require.Equal(t, wanted, changed)
}

func TestDecodeNew_RoundTrips(t *testing.T) {
	instant := func(t *rapid.T, name string) time.Time {
		if ms := rapid.Int64Range(0, 1<<47).Draw(t, name); ms > 0 {
			return time.UnixMilli(ms).UTC()
		}
		return time.Time{}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := job.New{
			Spec:  specs(t),
			Delay: time.Duration(rapid.Int64().Draw(t, "delay")), RunAt: instant(t, "run at"),
			ExpiresIn: time.Duration(rapid.Int64().Draw(t, "expires in")), ExpiresAt: instant(t, "expires at"),
		}
		got, err := codec.DecodeNew(codec.AppendNew(nil, &n), nil)
		require.NoError(t, err)
		require.Equal(t, n, got)
	})
}

func TestAppendNew_RoundsTimesUpToMilliseconds(t *testing.T) {
	n := job.New{RunAt: time.UnixMilli(5).Add(time.Nanosecond)}
	got, err := codec.DecodeNew(codec.AppendNew(nil, &n), nil)
	require.NoError(t, err)
	require.Equal(t, time.UnixMilli(6).UTC(), got.RunAt)
}

func TestDecodeSpec_RejectsUnexpectedCallerFields(t *testing.T) {
	require.Error(t, codec.DecodeSpec(codec.AppendField(nil, codec.FirstOwnTag, nil), &job.Spec{}, nil))
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(encodedRegistration))
	f.Add(codec.AppendField(nil, 2, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := codec.DecodeNew(b, func(byte, []byte) error { return nil })
		if err != nil {
			return
		}
		first := codec.AppendNew(nil, &n)
		n, err = codec.DecodeNew(first, nil)
		require.NoError(t, err)
		require.Equal(t, first, codec.AppendNew(nil, &n))
	})
}

func BenchmarkAppendSpec(b *testing.B) {
	n := registration()
	buffer := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		buffer = codec.AppendSpec(buffer[:0], &n.Spec)
	}
}

func BenchmarkDecodeSpec(b *testing.B) {
	n := registration()
	raw := codec.AppendSpec(nil, &n.Spec)
	b.ReportAllocs()
	for b.Loop() {
		spec := job.Spec{Queue: n.Queue}
		if err := codec.DecodeSpec(raw, &spec, nil); err != nil {
			b.Fatal(err)
		}
	}
}
