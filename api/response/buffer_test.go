package response

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
)

// written returns the JSON object whose members write writes. It must be valid JSON.
func written(t *testing.T, write func(o *Buffer)) string {
	t.Helper()
	o := NewBuffer()
	defer o.Free()
	o.Open()
	write(o)
	o.Close()
	require.True(t, json.Valid(o.Bytes()), string(o.Bytes()))
	return string(o.Bytes())
}

// requireExact compares JSON with its white space and its order of members.
func requireExact(t *testing.T, want, got string) {
	t.Helper()
	require.Equal(t, want, got)
}

func TestBuffer_WritesMembers(t *testing.T) {
	at := time.Date(2026, 3, 1, 13, 0, 0, int(7*time.Millisecond), time.FixedZone("CET", 3600))
	for name, c := range map[string]struct {
		write func(o *Buffer)
		want  string
	}{
		"nothing": {func(*Buffer) {}, `{}`},
		"commas": {func(o *Buffer) { o.Number("a", 1); o.Bool("b", true); o.Null("c") }, `{"a":1,"b":true,` +
			`"c":null}`},
		"empty text":  {func(o *Buffer) { o.Text("a", "") }, `{"a":""}`},
		"escapes":     {func(o *Buffer) { o.Text("a", "\"\\\n\u2028é\xff") }, `{"a":"\"\\\n\u2028é\ufffd"}`},
		"HTML":        {func(o *Buffer) { o.Text("a", "<&>") }, `{"a":"<&>"}`},
		"time in UTC": {func(o *Buffer) { o.Time("a", at) }, `{"a":"2026-03-01T12:00:00.007Z"}`},
		"zero time":   {func(o *Buffer) { o.Time("a", time.Time{}) }, `{"a":null}`},
		"duration":    {func(o *Buffer) { o.Duration("a", 90*time.Second) }, `{"a":"1m30s"}`},
		"durations": {
			func(o *Buffer) { o.Key("a"); o.durations([]time.Duration{0, time.Hour}) },
			`{"a":["0s","1h"]}`,
		},
		"no durations": {func(o *Buffer) { o.Key("a"); o.durations(nil) }, `{"a":[]}`},
		"texts": {func(o *Buffer) { o.texts("a", []string{"x", "y"}); o.texts("b", nil) }, `{"a":["x","y"],` +
			`"b":[]}`},
		"sorted labels": {func(o *Buffer) {
			o.labelsOrNull("a", map[string]string{"b": "2", "a\"": "1"})
		}, `{"a":{"a\"":"1","b":"2"}}`},
		"null for none": {func(o *Buffer) {
			o.TextOrNull("a", "")
			o.numberOrNull("b", 0)
			o.countOrNull("c", nil)
			o.DurationOrNull("d", 0)
			o.labelsOrNull("f", nil)
			o.headersOrNull("g", map[string][]string{})
		}, `{"a":null,"b":null,"c":null,"d":null,"f":null,"g":null}`},
		"nested objects": {
			func(o *Buffer) { o.Object("a"); o.Object("b"); o.Close(); o.Close(); o.Number("c", 0) },
			`{"a":{"b":{}},"c":0}`,
		},
		"array of objects": {func(o *Buffer) {
			o.Array("a")
			o.Open()
			o.Close()
			o.Open()
			o.Close()
			o.CloseArray()
		}, `{"a":[{},{}]}`},
		"member of JSON": {func(o *Buffer) { o.Member("a\n", []byte(`[1, 2]`)) }, `{"a\n":[1, 2]}`},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, written(t, c.write)) })
	}
}

func TestBuffer_RedactsHeaders(t *testing.T) {
	headers := map[string][]string{
		"X-Otp": {"1"}, "X-Two": {"1", "2"}, "X-Team": {"1", "2"},
		"Authorization": {"Bearer a"}, "X-Api-Key": {"a", "b"}, "X-Sealed": job.SealedValues("x1:"),
	}
	for want, to := range map[string]*access.Principal{
		`"X-Otp":"[redacted]","X-Sealed":"[redacted]","X-Team":["1","2"],"X-Two":"[redacted]"`: {Role: access.Read},
		`"X-Otp":"1","X-Sealed":"[redacted]","X-Team":["1","2"],"X-Two":["1",` +
			`"2"]`: {Role: access.Read, Bodies: true},
	} {
		got := written(t, func(o *Buffer) {
			o.ShowHeadersTo(to)
			o.headersOrNull("headers", headers)
		})
		requireExact(t, `{"headers":{"Authorization":"[redacted]","X-Api-Key":"[redacted]",`+want+`}}`, got)
	}
}

func TestBuffer_SendsWithLengthAndContentType(t *testing.T) {
	o := NewBuffer()
	o.Open()
	o.Close()
	w := httptest.NewRecorder()
	o.Send(w, 201)
	require.Equal(t, 201, w.Code)
	require.Equal(t, "{}\n", w.Body.String())
	require.Equal(t, "3", w.Header().Get("Content-Length"))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))

	o.Reset()
	w = httptest.NewRecorder()
	w.Header().Set("Content-Type", "text/plain")
	o.Send(w, 200)
	require.Equal(t, "text/plain", w.Header().Get("Content-Type"), "a content type that is set stays")
}

// A comma is decided by the last byte, which Flush therefore keeps.
func TestBuffer_FlushesLargeResponsesInParts(t *testing.T) {
	o, w := NewBuffer(), httptest.NewRecorder()
	defer o.Free()
	o.Open()
	o.Array("items")
	const n = 3
	for range n {
		o.Open()
		o.Text("text", strings.Repeat("x", MaxPooled))
		o.Close()
		before := w.Body.Len()
		o.Flush(w)
		require.Greater(t, w.Body.Len(), before)
		require.Len(t, o.Bytes(), 1)
		o.Flush(w)
		require.Len(t, o.Bytes(), 1, "a small buffer is not flushed")
	}
	o.CloseArray()
	o.Close()
	o.End(w)
	var got struct{ Items []struct{ Text string } }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.Len(t, got.Items, n)
	require.True(t, strings.HasSuffix(w.Body.String(), "}\n"))
}

func TestBuffer_FreeClearsSecrets(t *testing.T) {
	o := NewBuffer()
	o.Text("secret", "whsec_1")
	b := o.Bytes()
	o.Free()
	require.Equal(t, make([]byte, len(b)), b)
}
