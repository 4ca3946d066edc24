package dispatcher

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

func TestLaneOf_IsTheDialledHost(t *testing.T) {
	for target, lane := range map[string]string{
		"http://a.example/":              "a.example:80",
		"https://A.Example./":            "a.example:443",
		"http://[::1]:8080/":             "[::1]:8080",
		"http://bücher.example/":         "xn--bcher-kva.example:80",
		"https://BÜCHER.example.:8443/x": "xn--bcher-kva.example:8443",
		"https://bu\u0308cher.example/":  "xn--bcher-kva.example:443",
		"http://b%C3%BCcher.example/":    "xn--bcher-kva.example:80",
		"http://ｅｘａｍｐｌｅ.com/":            "example.com:80",
		"http://例え。テスト/":                 "xn--r8jz45g.xn--zckzah:80",
		"http://straße.example/":         "xn--strae-oqa.example:80",
		"http://xn--bcher-kva.example/":  "xn--bcher-kva.example:80",
	} {
		require.Equal(t, lane, laneOf(target), target)
		require.True(t, job.IsLane(laneOf(target)), target)

		var dialled string
		transport := &http.Transport{DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
			dialled = addr
			return nil, errors.New("looked at only")
		}, DialTLSContext: func(_ context.Context, _, addr string) (net.Conn, error) {
			dialled = addr
			return nil, errors.New("looked at only")
		}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
		require.NoError(t, err)
		resp, err := transport.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		require.Error(t, err)
		require.Equal(t, lane, strings.ToLower(strings.Replace(dialled, ".:", ":", 1)), target)
	}
}

func TestLaneOf_HashesInvalidLaneNames(t *testing.T) {
	long := strings.Repeat("a.", 64) + "example"
	require.Regexp(t, "^host-[0-9a-f]{24}:80$", laneOf("http://"+long+"/"))
	require.NotEqual(t, laneOf("http://"+long+"/"), laneOf("http://b."+long+"/"))
	require.Equal(t, job.DefaultLane, laneOf("http://%00/"))
}
