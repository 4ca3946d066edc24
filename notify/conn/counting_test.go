package conn

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// givenConn returns a connection given to its second request, and the result of its waiting reader.
func givenConn(t *testing.T) (c *countingConn, peer net.Conn, read chan error) {
	t.Helper()
	near, peer := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), peer.Close() })
	c = newCountingConn(near, nil)
	read = make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 8))
		read <- err
	}()
	c.settle(c.queue)
	return c, peer, read
}

func TestCountingConn_SettlesWhenReadAgainOrClosed(t *testing.T) {
	for name, do := range map[string]func(*countingConn){
		"read":   func(c *countingConn) { _, _ = c.Read(make([]byte, 1)) },
		"closed": func(c *countingConn) { _ = c.Close() },
	} {
		synctest.Test(t, func(t *testing.T) {
			near, peer := net.Pipe()
			c, settled := newCountingConn(near, nil), false
			go func() {
				c.settle(c.queue)
				settled = true
			}()
			synctest.Wait()
			require.False(t, settled, name)
			go do(c)
			synctest.Wait()
			require.True(t, settled, name)
			_ = peer.Close()
		})
	}
}

func TestCountingConn_RejectsBytesBeforeARequest(t *testing.T) {
	for name, come := range map[string]func(net.Conn){
		"bytes":  func(peer net.Conn) { _, _ = io.WriteString(peer, "HTTP/1.1 299 Forged") },
		"an end": func(peer net.Conn) { _ = peer.Close() },
	} {
		c, peer, read := givenConn(t)
		go come(peer)
		require.ErrorIs(t, <-read, io.EOF, name)
		_, err := io.WriteString(c, "POST /")
		require.ErrorIs(t, err, net.ErrClosed, name)
		require.Zero(t, c.Written(), name)
	}
}

func TestCountingConn_ReadsTheResponseAfterTheFirstByte(t *testing.T) {
	c, peer, read := givenConn(t)
	go func() { _, _ = io.CopyN(peer, peer, 6) }()
	n, err := io.WriteString(c, "POST /")
	require.NoError(t, err)
	require.Equal(t, 6, n)
	require.NoError(t, <-read)
}

// Unread bytes in the socket make the connection unusable, too.
func TestCountingConn_WritesNothingWhenTheSocketHasUnread(t *testing.T) {
	for name, come := range map[string]func(net.Conn){
		"bytes":   func(peer net.Conn) { _, _ = io.WriteString(peer, "HTTP/1.1 299 Forged") },
		"an end":  func(peer net.Conn) { _ = peer.Close() },
		"a reset": reset,
		"nothing": nil,
	} {
		for layer, over := range map[string]func(net.Conn) net.Conn{
			"TCP":       func(conn net.Conn) net.Conn { return conn },
			"a tunnel":  func(conn net.Conn) net.Conn { return &prefixedConn{Conn: conn} },
			"the layer": func(conn net.Conn) net.Conn { return &handshakeConn{Conn: &prefixedConn{Conn: conn}} },
		} {
			near, far := tcpPair(t)
			c := newCountingConn(over(near), nil)
			c.given = true
			if come != nil {
				come(far)
				require.Eventually(t, c.socket.HasUnread, 5*time.Minute, time.Millisecond)
			}
			_, err := io.WriteString(c, "POST /")
			require.Equal(t, come == nil, err == nil, "%s over %s: %v", name, layer, err)
			require.Equal(t, come == nil, c.Written() > 0, "%s over %s", name, layer)
		}
	}
}

// tcpPair returns both ends of a TCP connection.
func tcpPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	near, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = near.Close() })
	far, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = far.Close() })
	return near, far
}
