package limits

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A pipeListener accepts one end of a net.Pipe, in a synctest bubble.
type pipeListener struct{ conns chan net.Conn }

func (l pipeListener) Accept() (net.Conn, error) {
	conn, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return halfPipe{conn}, nil
}

func (l pipeListener) Close() error   { return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

type halfPipe struct{ net.Conn }

func (p halfPipe) CloseRead() error                       { return p.Close() }
func (p halfPipe) CloseWrite() error                      { return p.Close() }
func (p halfPipe) ReadFrom(from io.Reader) (int64, error) { return io.Copy(p.Conn, from) }

// connectTo returns a connection to a server that allows 5 s for a header.
func connectTo(t *testing.T) net.Conn {
	t.Helper()
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, IdleTimeout: IdleTimeout, ConnState: ExpectHeader,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
	}
	l := pipeListener{make(chan net.Conn, 1)}
	go func() { _ = server.Serve(LimitHeaders(l)) }()
	client, conn := net.Pipe()
	l.conns <- conn
	t.Cleanup(func() {
		_ = client.Close()
		close(l.conns)
	})
	return client
}

func TestLimitHeaders_ServesTheFirstRequestOfASilentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := connectTo(t)
		answers := bufio.NewReader(conn)
		for range 3 { // the first is treated like later ones
			time.Sleep(IdleTimeout - time.Second)
			_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n\r\n")
			require.NoError(t, err)
			resp, err := http.ReadResponse(answers, nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusNoContent, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
		}
	})
}

func TestLimitHeaders_EndsSilentConnectionsAndSlowHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		sent string
		ends time.Duration
	}{"nothing": {"", IdleTimeout}, "a part of a header": {"POST / HT", time.Second + 5*time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, began := connectTo(t), time.Now()
				time.Sleep(time.Second)
				_, err := io.WriteString(conn, c.sent)
				require.NoError(t, err)
				_, err = io.ReadAll(conn)
				require.NoError(t, err)
				require.Equal(t, c.ends, time.Since(began))
			})
		})
	}
}
