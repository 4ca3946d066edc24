// Package clienttest runs Ringback in a test: the real API, dispatcher and sender in the test's process, on a store in
// memory, with a clock that the test moves.
//
//	func TestClose(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			srv := clienttest.New(t, shop) // shop is the http.Handler that gets the requests of all jobs
//			closeOrderLater(t.Context(), srv.Client(), 4711)
//			srv.Advance(30 * time.Minute) // shop got the request
//		})
//	}
//
// The clock is that of package testing/synctest: within synctest.Test no time passes but by Advance, time.Sleep and
// timers, and then all that is due happens: attempts, retries after their waits, breakers, schedules, callbacks.
// Connections are in memory. What waits for a real connection within the bubble, such as a driver of a database server,
// stops its clock: keep it out of these tests.
//
// Every host and port leads to the handler, over http and https; a request's Host and URL tell them apart. Requests are
// those of a server, with its headers and signatures. The store is the reference model of the engines, which differs
// from them in durability only.
package clienttest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/notify"
	"github.com/ringback/ringback/store/storetest"
)

// Server is a running Ringback.
type Server struct {
	// URL is the server's URL, for programs under test that make their client.
	URL string
	// HTTP makes requests to the server, for client.Options.HTTP of such programs.
	HTTP *http.Client

	client *client.Client
	order  *order
}

// New starts a server whose jobs are sent to a handler, and stops it at the end of the test. It fails the test if it is
// called outside of synctest.Test.
func New(t testing.TB, handler http.Handler) *Server {
	t.Helper()
	requireBubble(t)
	quiet := slog.New(slog.DiscardHandler)
	store := storetest.NewModel(storetest.ModelOptions{})

	receiver, err := newReceiver(handler)
	require(t, err)
	sender, err := notify.New(notify.Options{Agent: "Ringback/clienttest", Dial: receiver.dial, Roots: receiver.roots})
	require(t, err)
	d, err := dispatcher.New(dispatcher.Options{Store: store, Deliverer: sender, OneProcess: true, Logger: quiet})
	require(t, err)
	service := dispatcher.NewService(d, nil, quiet)
	apiListener := newListener()
	server := api.Server(api.New(api.Options{
		Service: api.NewService(service),
		Process: service.Process(), Logger: quiet,
	}),
		quiet)

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := service.Run(ctx); err != nil {
			t.Error("clienttest: ", err)
		}
	})
	running.Go(func() { _ = server.Serve(apiListener) })
	transport := &http.Transport{DialContext: apiListener.dial}
	s := &Server{URL: "http://ringback.test", HTTP: &http.Client{Transport: transport}, order: &receiver.order}
	t.Cleanup(func() {
		stop()
		transport.CloseIdleConnections()
		_ = server.Close()
		running.Wait()
		sender.Close()
		receiver.close()
		_ = store.Close()
	})
	s.client, err = client.New(s.URL, client.Options{HTTP: s.HTTP})
	require(t, err)
	synctest.Wait() // the server is ready
	return s
}

// Client returns a client of the server.
func (s *Server) Client() *client.Client { return s.client }

// settleTime is the time within which everything that is due at a moment happens: the sender, the pool and the carrier
// round up to milliseconds.
const settleTime = 10 * time.Millisecond

// Advance moves the clock. When it returns, what became due within d has happened: requests were sent and their results
// are recorded, unless the handler itself still waits. It moves the clock 10 ms further for that.
func (s *Server) Advance(d time.Duration) {
	s.order.step()
	time.Sleep(d)
	synctest.Wait()
	time.Sleep(settleTime)
	synctest.Wait()
}

var errNotInBubble = errors.New("clienttest.New must be called within testing/synctest.Test, whose clock it uses")

func requireBubble(t testing.TB) {
	t.Helper()
	defer func() {
		t.Helper()
		if recover() != nil {
			require(t, errNotInBubble)
		}
	}()
	synctest.Wait()
}

func require(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal("clienttest: ", err)
	}
}
