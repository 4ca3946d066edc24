package h1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// splitRequest returns a request's first line, its header lines in order, and its body.
func splitRequest(t *testing.T, request string) (first string, header []string, body string) {
	t.Helper()
	head, body, ok := strings.Cut(request, "\r\n\r\n")
	require.True(t, ok)
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines[1:])
	return lines[0], lines[1:], body
}

// request returns a request as a sender makes it.
func request(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	switch {
	case body != "":
		r.ContentLength = int64(len(body))
	case method == http.MethodGet:
		r.TransferEncoding = []string{"identity"}
	default:
		return r
	}
	r.Body = io.NopCloser(strings.NewReader(body))
	return r
}

func TestWriteRequest_WritesAsNetHTTPDoes(t *testing.T) {
	for _, url := range []string{
		"http://a.example", "http://a.example:/", "http://A.example:8080/x%20y/ü?q=a%20b&r=%2f#f",
		"http://[::1]:80/", "http://[::1]", "http://127.0.0.1/?", "http://a_b.example//double", "http://a.example/;p=1",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "Odd"} {
			for _, body := range []string{"", "x", strings.Repeat("y", 5000)} {
				for _, last := range []bool{false, true} {
					var own, theirs bytes.Buffer
					for _, to := range []*bytes.Buffer{&own, &theirs} {
						r := request(t, method, url, body)
						r.Header = http.Header{
							"X-Empty": {""}, "X-Lower": {"a", "b"}, "X-Space": {" \t a b \t"}, "User-Agent": {""},
							"X-None": {}, "idempotency-key": {"k"}, "Cookie": {"a=b"}, "Webhook-Id": {"1"},
						}
						if last {
							r.Header["User-Agent"] = []string{"Ringback/1.2.3"}
						}
						r.Close = last
						require.True(t, plainHostPort(r.Host))
						w := bufio.NewWriter(to)
						if to == &own {
							writeRequest(w, r)
						} else {
							require.NoError(t, r.Write(w))
						}
						require.NoError(t, w.Flush())
					}
					first, header, sent := splitRequest(t, own.String())
					theirFirst, theirHeader, theirSent := splitRequest(t, theirs.String())
					require.Equal(t, theirFirst, first)
					require.Equal(t, theirHeader, header, "%s %s", method, url)
					require.Equal(t, theirSent, sent)
				}
			}
		}
	}
}

func TestSupports_NeedsAPlainHostAndAShortBody(t *testing.T) {
	for url, supported := range map[string]bool{
		"http://a.example:80": true, "http://[::1]:80": true, "http://bücher.example": false,
		"http://[fe80::1%25eth0]": false,
		"http://a%20b.example":    false, "http://a,b": false, "http://a.example.": true, "https://a.example": false,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
		if err != nil {
			continue // no URL
		}
		require.Equal(t, supported, Supports(r), url)
	}
	r := request(t, http.MethodPost, "http://a.example", "x")
	r.ContentLength = MaxBody
	require.True(t, Supports(r))
	for _, length := range []int64{MaxBody + 1, -1} {
		r.ContentLength = length
		require.False(t, Supports(r))
	}
}

func BenchmarkWriteRequest(b *testing.B) {
	text := strings.Repeat("x", 256)
	for name, write := range map[string]func(*bufio.Writer, *http.Request){
		"own": writeRequest, "net/http": func(w *bufio.Writer, r *http.Request) { _ = r.Write(w) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := request(b, http.MethodPost, "http://shop.example/hooks/close", text)
			r.Header = http.Header{
				"Webhook-Id": {"job-1"}, "Content-Type": {"application/json"},
				"User-Agent": {"Ringback/dev"},
			}
			w := bufio.NewWriter(io.Discard)
			for b.Loop() {
				r.Body = io.NopCloser(strings.NewReader(text))
				write(w, r)
				_ = w.Flush()
			}
		})
	}
}
