package codec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
)

func TestAppendURL_LeavesOutTheLane(t *testing.T) {
	for _, c := range []struct{ url, lane, field string }{
		{"http://a.example/x?y=1#z", "a.example:80", "\x02\x08\x07x?y=1#z"},
		{"https://a.example/x", "a.example:443", "\x02\x02\x08x"},
		{"http://a.example:80/x", "a.example:80", "\x02\x02\x05x"},
		{"https://a.example:443/x", "a.example:443", "\x02\x02\x06x"},
		{"http://a.example:8080/x", "a.example:8080", "\x02\x02\x05x"},
		{"https://[::1]:8443/x", "[::1]:8443", "\x02\x02\x06x"},
		{"https://[::1]/x", "[::1]:443", "\x02\x02\x08x"},
		{"https://a.example", "a.example:443", "\x02\x01\x04"},
		{"http://a.example:8080", "a.example:8080", "\x02\x01\x01"},
		{"https://a.example?x", "a.example:443", "\x02\x03\x04?x"},
		{"https://a.example:4430/x", "a.example:443", "\x02\x04\x020/x"},
		{"https://a.example.net/x", "a.example", "\x02\x07\x02.net/x"},
		{"https://A.example/x", "a.example:443", "\x02\x14\x00https://A.example/x"},
		{"HTTPS://a.example/x", "a.example:443", "\x02\x14\x00HTTPS://a.example/x"},
		{"https://a.example./x", "a.example:443", "\x02\x04\x04./x"},
		{"https://u@a.example/x", "a.example:443", "\x02\x16\x00https://u@a.example/x"},
		{"https://a.example/x", "customer-42", "\x02\x14\x00https://a.example/x"},
		{"https://b.example/x", "a.example:443", "\x02\x14\x00https://b.example/x"},
		{"", "default", ""},
	} {
		field := codec.AppendURL(nil, c.lane, c.url)
		require.Equal(t, c.field, string(field), "%s in %s", c.url, c.lane)
		spec := job.Spec{
			Queue: job.Queue{Lane: c.lane}, URL: c.url, Method: "POST", BodyKind: job.BodyJSON,
			ContentType: "application/json",
		}
		require.Equal(t, c.field, string(codec.AppendSpec(nil, &spec)))
		got := job.Spec{Queue: spec.Queue}
		require.NoError(t, codec.DecodeSpec(field, &got, nil))
		require.Equal(t, spec, got)
	}
}
