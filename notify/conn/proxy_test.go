package conn

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseProxy_AcceptsURLsOfProxiesOnly(t *testing.T) {
	for _, text := range []string{
		"http://proxy:3128", "https://a:b@proxy.example", "http://[::1]:80/", "http://10.0.0.1",
	} {
		u, err := ParseProxy(text)
		require.NoError(t, err, text)
		require.Equal(t, text, u.String())
	}
	for _, text := range []string{
		"", "proxy:3128", "socks5://proxy", "http://", "http://:80", "http://proxy:99999", "http://proxy/path",
		"http://proxy?x", "http://proxy#x",
		"http://someone:topsecret@pro xy", "http://someone:topsecret@[::1", "ftp://someone:topsecret@proxy",
	} {
		_, err := ParseProxy(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "topsecret")
	}
}

// Any response of a proxy is read within bounds.
func FuzzConnectAnswer_IsReadWithinBounds(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 407 No\r\nX: y\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200\r\n\r\nrest", "\x00", "HTTP/1.1 2",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		status, err := readConnectAnswer(bufio.NewReader(io.LimitReader(strings.NewReader(text), maxConnectAnswer)))
		if err != nil {
			require.Zero(t, status)
			return
		}
		require.True(t, status < 100 || status == 101 || status > 199)
	})
}
