package notify

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parts are a request's first line, the lines of its header in order, and its body.
func parts(t *testing.T, request string) (first string, header []string, body string) {
	t.Helper()
	head, body, ok := strings.Cut(request, "\r\n\r\n")
	require.True(t, ok)
	lines := strings.Split(head, "\r\n")
	slices.Sort(lines[1:])
	return lines[0], lines[1:], body
}

func TestARequestIsWrittenAsNetHTTPWritesIt(t *testing.T) {
	s := newSender(t, Options{Version: "1.2.3"})
	for _, url := range []string{
		"http://a.example", "http://a.example:/", "http://A.example:8080/x%20y/ü?q=a b&r=%2f#f", "http://[::1]:80/", "http://[::1]",
		"http://u:p@127.0.0.1/?", "http://a_b.example//double", "http://a.example/;p=1",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "Odd"} {
			for _, body := range []string{"", "x", strings.Repeat("y", 5000)} {
				for _, last := range []bool{false, true} {
					req := ask(url)
					req.Method, req.Body = method, []byte(body)
					req.Header = map[string][]string{
						"X-Empty": {""}, "x-lower": {"a", "b"}, "X-Space": {" \t a b \t"}, "User-Agent": {""}, "X-None": {},
						"Idempotency-Key": {"k"}, "Cookie": {"a=b"}, "Host": {"other"}, "Content-Length": {"9"}, "Connection": {"close"},
					}
					if last {
						delete(req.Header, "User-Agent")
					}
					var own, theirs bytes.Buffer
					for _, to := range []*bytes.Buffer{&own, &theirs} {
						r, err := s.request(t.Context(), time.Unix(1_700_000_000, 0), req)
						require.NoError(t, err)
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
					first, header, sent := parts(t, own.String())
					theirFirst, theirHeader, theirSent := parts(t, theirs.String())
					require.Equal(t, theirFirst, first)
					require.Equal(t, theirHeader, header, "%s %s", method, url)
					require.Equal(t, theirSent, sent)
				}
			}
		}
	}
}

func TestHostsThatAreWrittenOtherwiseInAURLAreNotPlain(t *testing.T) {
	for url, plain := range map[string]bool{
		"http://a.example:80": true, "http://[::1]:80": true, "http://bücher.example": false, "http://[fe80::1%25eth0]": false,
		"http://a%20b.example": false, "http://a,b": false, "http://a.example.": true,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
		if err != nil {
			continue // no URL
		}
		require.Equal(t, plain, plainHostPort(r.Host), url)
	}
}

func BenchmarkWriteRequest(b *testing.B) {
	s := newSender(b, Options{})
	req := ask("http://shop.example/hooks/close")
	req.Body = bytes.Repeat([]byte("x"), 256)
	for name, write := range map[string]func(*bufio.Writer, *http.Request){
		"own": writeRequest, "net/http": func(w *bufio.Writer, r *http.Request) { _ = r.Write(w) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r, err := s.request(b.Context(), time.Now(), req)
			require.NoError(b, err)
			w := bufio.NewWriter(io.Discard)
			for b.Loop() {
				setBody(r, req.Body)
				write(w, r)
				_ = w.Flush()
			}
		})
	}
}
