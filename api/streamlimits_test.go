package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// pipes is a listener of unbuffered connections, whose deadlines use the time of synctest.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.ended); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// serveInSynctest serves h with Server's limits in synctest, and returns a client's connection. The server is shut down
// at the end of the test.
func serveInSynctest(
	t *testing.T, h http.Handler, test func(t *testing.T, server *http.Server, conn net.Conn, returned <-chan struct{}),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := watch(h)
		server := Server(w, quiet)
		if g, ok := h.(*shutdownHandler); ok {
			server.RegisterOnShutdown(g.end) // Server cannot see it inside the watched one
		}
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		served := make(chan error)
		go func() { served <- server.Serve(l) }()
		ours, theirs := net.Pipe()
		l.conns <- theirs
		defer func() { // also when the test fails
			require.NoError(t, ours.Close())
			require.NoError(t, server.Shutdown(t.Context()))
			require.Equal(t, http.ErrServerClosed, <-served)
		}()
		test(t, server, ours, w.returned)
	})
}

func TestStream_EndsWhenTheNextLineIsLate(t *testing.T) {
	for name, half := range map[string]string{"nothing": "", "half a line": `{"id": "b"}`, "blank lines": "\n\n \n"} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			serveInSynctest(t, handlerOf(f), func(
				t *testing.T, _ *http.Server, conn net.Conn, returned <-chan struct{},
			) {
				s := begin(t, conn)
				s.answer()
				require.NoError(t, s.send("{\"id\": \"a\"}\n"))
				require.Equal(t, 201, s.result().Status)
				began := time.Now()
				if half != "" {
					time.Sleep(lineTimeout / 2) // a bubble's time
					require.NoError(t, s.send(half))
				}
				rest := s.rest()
				require.Len(t, rest, 1)
				require.Equal(t, 408, rest[0].Status)
				require.Contains(t, rest[0].Error.Detail, "did not arrive within 1m0s")
				<-returned
				require.Equal(t, lineTimeout, time.Since(began), "part of a line is none")
				require.Len(t, f.jobs, 1)
			})
		})
	}
}

func TestStream_HasItsOwnTimeout(t *testing.T) {
	serveInSynctest(t, handlerOf(newFake()), func(t *testing.T, _ *http.Server, conn net.Conn, _ <-chan struct{}) {
		began := time.Now()
		s := begin(t, conn)
		s.answer()
		for time.Since(began) < streamTimeout-lineTimeout {
			time.Sleep(lineTimeout - time.Second)
			require.NoError(t, s.send("{}\n"))
			require.Less(t, s.result().Status, 300, "after %v", time.Since(began))
		}
		rest := s.rest()
		require.Equal(t, streamTimeout, time.Since(began))
		require.Len(t, rest, 1)
		require.Equal(t, 408, rest[0].Status)
		require.Contains(t, rest[0].Error.Detail, "the stream did not arrive within 15m0s")
	})
}

func TestStream_CutsOffAClientThatNeverReads(t *testing.T) {
	f := newFake()
	serveInSynctest(t, handlerOf(f), func(t *testing.T, _ *http.Server, conn net.Conn, returned <-chan struct{}) {
		s := begin(t, conn)
		s.answer()
		require.NoError(t, s.send(streamOf(1000, "")))
		require.NoError(t, s.send(""))
		began := time.Now()
		<-returned
		require.Equal(t, takeTimeout, time.Since(began))
		require.Len(t, f.jobs, 1000, "what was sent is registered")
		_, err := io.ReadAll(s.body)
		require.Equal(t, io.ErrUnexpectedEOF, err, "an answer that is cut off does not look like a whole one")
	})
}

func TestStream_StopsReadingWhileTheResultBufferIsFull(t *testing.T) {
	// Each result of these is far larger than the job.
	bad := strings.Repeat(`{"ladder": [`+strings.Repeat("0,", 99)+"0]}\n", 100)
	serveInSynctest(t, handlerOf(newFake()), func(t *testing.T, _ *http.Server, conn net.Conn, _ <-chan struct{}) {
		s := begin(t, conn)
		s.answer()
		sent := make(chan error, 1)
		go func() {
			for range 20 {
				if err := s.send(bad); err != nil {
					sent <- err
					return
				}
			}
			sent <- s.send("")
		}()
		synctest.Wait()
		require.Empty(t, sent, "reading goes on although nothing is taken")
		text, err := io.ReadAll(s.body)
		require.NoError(t, err)
		require.NoError(t, <-sent)
		require.Greater(t, len(text), 2*maxBuffered)
		require.Equal(t, 2000, strings.Count(string(text), "\n"))
	})
}

func TestStream_CutsOffAClientThatLeavesTheResultBufferFull(t *testing.T) {
	bad := strings.Repeat(`{"ladder": [`+strings.Repeat("0,", 99)+"0]}\n", 1000)
	serveInSynctest(t, handlerOf(newFake()), func(
		t *testing.T, _ *http.Server, conn net.Conn, returned <-chan struct{},
	) {
		began := time.Now()
		s := begin(t, conn)
		s.answer()
		var err error
		for range 10 {
			if err = s.send(bad); err != nil {
				break
			}
		}
		require.Error(t, err)
		<-returned
		require.Equal(t, takeTimeout, time.Since(began))
	})
}

func TestStream_DoesNotWaitForAClientThatDisconnects(t *testing.T) {
	bad := strings.Repeat(`{"ladder": [`+strings.Repeat("0,", 99)+"0]}\n", 1000)
	for name, n := range map[string]int{"a few": 1, "a full buffer": 10} {
		t.Run(name, func(t *testing.T) {
			serveInSynctest(t, handlerOf(newFake()), func(
				t *testing.T, _ *http.Server, conn net.Conn, returned <-chan struct{},
			) {
				s := begin(t, conn)
				s.answer()
				began := time.Now()
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for range n {
						_ = s.send(bad) // fails when the connection is closed
					}
				}()
				synctest.Wait() // the writer has something to write, and reading has stopped or waits
				require.NoError(t, conn.Close())
				<-sent
				<-returned
				require.Zero(t, time.Since(began))
			})
		})
	}
}

func TestStream_EndsAtShutdown(t *testing.T) {
	serveInSynctest(t, handlerOf(newFake()), func(t *testing.T, server *http.Server, conn net.Conn, _ <-chan struct{}) {
		s := begin(t, conn)
		s.answer()
		require.NoError(t, s.send("{\"id\": \"a\"}\n{\"id\": \"b\""))
		require.Equal(t, 201, s.result().Status)
		began := time.Now()
		shut := make(chan error)
		go func() { shut <- server.Shutdown(context.Background()) }()
		rest := s.rest()
		// The client is still connected: it gets its results at once, with some time to read them unless reading had
		// ended.
		require.LessOrEqual(t, time.Since(began), lingerTimeout)
		require.Len(t, rest, 1)
		require.Equal(t, 503, rest[0].Status)
		require.Contains(t, rest[0].Error.Detail, "the server is shutting down")
		require.NoError(t, <-shut)
	})
}

func TestStream_HurriesASlowReaderAtShutdown(t *testing.T) {
	serveInSynctest(t, handlerOf(newFake()), func(
		t *testing.T, server *http.Server, conn net.Conn, returned <-chan struct{},
	) {
		s := begin(t, conn)
		s.answer()
		require.NoError(t, s.send("{}\n"))
		began := time.Now()
		shut := make(chan error)
		go func() { shut <- server.Shutdown(context.Background()) }()
		<-returned
		require.Equal(t, lastTimeout, time.Since(began))
		require.NoError(t, <-shut)
	})
}

func TestServer_EndsStreamsAtShutdown(t *testing.T) {
	h, _ := handlerOf(newFake()).(*shutdownHandler)
	require.NotNil(t, h)
	ended := make(chan struct{})
	end := h.end
	h.end = func() { end(); close(ended) }
	require.NoError(t, Server(h, quiet).Shutdown(t.Context()))
	select {
	case <-ended:
	case <-time.After(testkit.MustCome):
		t.Fatal("the streams go on")
	}
}

// hangingService is a service whose store does not respond.
type hangingService struct{ *fake }

func (s hangingService) FindStore(context.Context, string) (Store, error) { return s, nil }

func (hangingService) Register(ctx context.Context, jobs []job.New) []store.RoutedResult {
	<-ctx.Done()
	results := make([]store.RoutedResult, len(jobs))
	for i := range results {
		results[i].Err = context.Cause(ctx)
	}
	return results
}

func TestStream_GivesAGroupTheTimeoutOfARequest(t *testing.T) {
	serveInSynctest(t, handlerOf(hangingService{newFake()}), func(
		t *testing.T, _ *http.Server, conn net.Conn, _ <-chan struct{},
	) {
		s := begin(t, conn)
		s.answer()
		began := time.Now()
		require.NoError(t, s.send("{}\n{}\n"))
		require.Equal(t, 503, s.result().Status)
		require.Equal(t, limits.Timeout, time.Since(began))
		require.NoError(t, s.send("{}\n"))
		require.NoError(t, s.send(""))
		require.Len(t, s.rest(), 2)
		require.Equal(t, limits.Timeout, time.Since(began), "it is not tried again")
	})
}

// panickingService is a service that panics.
type panickingService struct{ *fake }

func (s panickingService) FindStore(context.Context, string) (Store, error) { return s, nil }

func (panickingService) Register(context.Context, []job.New) []store.RoutedResult {
	panic(http.ErrAbortHandler)
}

func TestStream_LeavesNoGoroutineWhenTheServicePanics(t *testing.T) {
	serveInSynctest(t, handlerOf(panickingService{newFake()}), func(
		t *testing.T, _ *http.Server, conn net.Conn, returned <-chan struct{},
	) {
		s := begin(t, conn)
		s.answer()
		require.NoError(t, s.send("{}\n"))
		<-returned
		_, err := io.ReadAll(s.body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}
