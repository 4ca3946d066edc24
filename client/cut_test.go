package client_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/clienttest"
)

// cutConn breaks after a number of bytes in one direction.
type cutConn struct {
	net.Conn

	write, read int // what is left; negative: no limit
}

func (c *cutConn) Write(p []byte) (int, error) {
	if c.write < 0 || len(p) <= c.write {
		n, err := c.Conn.Write(p)
		c.write -= min(n, max(c.write, 0))
		return n, err
	}
	n, _ := c.Conn.Write(p[:c.write])
	c.write = 0
	_ = c.Close()
	return n, io.ErrClosedPipe
}

func (c *cutConn) Read(p []byte) (int, error) {
	if c.read < 0 {
		return c.Conn.Read(p)
	}
	if c.read == 0 {
		_ = c.Close()
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p[:min(len(p), c.read)])
	c.read -= n
	return n, err
}

// proxied returns a client whose connections are made by through, from those to the server.
func proxied(t *testing.T, srv *clienttest.Server, through func(net.Conn) net.Conn) *client.Client {
	t.Helper()
	direct := srv.HTTP.Transport.(*http.Transport)
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := direct.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return through(c), nil
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return newClient(t, srv, client.Options{}, transport.RoundTrip)
}

// newServer returns a server whose receivers answer 200.
func newServer(t *testing.T) *clienttest.Server {
	t.Helper()
	return newServerOf(t, func(*http.Request) {})
}

func TestRegister_RegistersOnceThroughAProxyThatCutsAfterEveryByte(t *testing.T) {
	for name, cut := range map[string]func(net.Conn, int) *cutConn{
		"of the request": func(c net.Conn, n int) *cutConn { return &cutConn{c, n, -1} },
		"of the answer":  func(c net.Conn, n int) *cutConn { return &cutConn{c, -1, n} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newServer(t)
				tries := 0
				c := proxied(t, srv, func(c net.Conn) net.Conn {
					tries++
					return cut(c, tries-1) // the n-th try is cut after n bytes, until one is whole
				})
				job, err := c.Register(t.Context(),
					client.Job{Topic: "order.close", URL: "https://shop.example/", Delay: time.Hour * 24, Body: 4711})
				require.NoError(t, err)
				require.Greater(t, tries, 200, "bytes of a whole request or answer")
				require.NotEmpty(t, job.ID)
				requireRegistered(t, srv, 1)
			})
		})
	}
}

// requireRegistered fails the test unless the server has n jobs.
func requireRegistered(t *testing.T, srv *clienttest.Server, n int64) {
	t.Helper()
	stats, err := srv.Client().Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, n, stats.Totals.Registered)
}

// jobs yields n jobs that are due in a month.
func jobs(n int) func(func(client.Job) bool) {
	return func(yield func(client.Job) bool) {
		for i := range n {
			if !yield(client.Job{
				Topic: "order.close", URL: "https://shop.example/", Delay: 30 * 24 * time.Hour,
				Body: i, Labels: map[string]string{"n": strconv.Itoa(i)},
			}) {
				return
			}
		}
	}
}

func TestRegisterAll_GivesEachJobOneResultOverCutConnections(t *testing.T) {
	for name, cut := range map[string]func(net.Conn, int) *cutConn{
		"of requests": func(c net.Conn, n int) *cutConn { return &cutConn{c, n, -1} },
		"of answers":  func(c net.Conn, n int) *cutConn { return &cutConn{c, -1, n} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 40
				srv := newServer(t)
				tries := 0
				c := proxied(t, srv, func(c net.Conn) net.Conn {
					tries++
					return cut(c, 61*(tries-1)) // lines have more bytes
				})
				var got []int
				for result, err := range c.RegisterAll(t.Context(), jobs(n)) {
					require.NoError(t, err)
					require.NoError(t, result.Err)
					require.NotEmpty(t, result.ID)
					got = append(got, result.Index)
				}
				require.Greater(t, tries, 5)
				slices.Sort(got)
				require.Len(t, got, n)
				require.Len(t, slices.Compact(got), n)
				requireRegistered(t, srv, n)
			})
		})
	}
}

// newServerOf returns a server whose receivers call a function.
func newServerOf(t *testing.T, receive func(*http.Request)) *clienttest.Server {
	t.Helper()
	return clienttest.New(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { receive(r) }))
}
