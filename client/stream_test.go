package client_test

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

	"github.com/ringback/ringback/client"
)

// watch collects the events of a stream until stop is called, which returns its error.
func watch(
	t *testing.T, c *client.Client, o client.StreamOptions,
) (events <-chan *client.StreamUpdate, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	got, ended := make(chan *client.StreamUpdate, 100), make(chan error, 1)
	go func() {
		for e, err := range c.Stream(ctx, o) {
			if err != nil {
				ended <- err
				return
			}
			got <- e
		}
		ended <- nil
	}()
	require.Equal(t, "connected", (<-got).Kind)
	return got, func() error {
		cancel()
		return <-ended
	}
}

func TestStream_ShowsAttemptsAndChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		events, stop := watch(t, srv.Client(), client.StreamOptions{Topic: "order.close"})
		// so that its attempt is not told before its creation
		_, err := srv.Client().Register(t.Context(),
			client.Job{ID: "a", Topic: "order.close", URL: "https://shop.example/", Delay: time.Second})
		require.NoError(t, err)
		_, err = srv.Client().Register(t.Context(), client.Job{Topic: "other", URL: "https://shop.example/"})
		require.NoError(t, err)
		created := <-events
		require.Equal(t, "change", created.Kind)
		require.Equal(t, "created", created.Change.Kind)
		require.Equal(t, "a", created.Change.ID)
		attempt := <-events
		require.Equal(t, "a", attempt.Attempt.ID)
		require.Equal(t, 200, attempt.Attempt.Status)
		require.Equal(t, "delivered", attempt.Attempt.Verdict)
		time.Sleep(time.Minute) // with comments only
		require.Empty(t, events)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

// The server's comments come less often than this client expects answers.
func TestStream_KeepsAQuietConnectionWithAShortTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		c := newClient(t, srv, client.Options{Timeout: 5 * time.Second}, srv.HTTP.Transport.RoundTrip)
		events, stop := watch(t, c, client.StreamOptions{})
		time.Sleep(10 * time.Minute)
		require.Empty(t, events)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestStream_ConnectsAgainAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		conns := make(chan net.Conn, 10)
		c := proxied(t, srv, func(c net.Conn) net.Conn { conns <- c; return c })
		events, stop := watch(t, c, client.StreamOptions{})
		require.NoError(t, (<-conns).Close())
		resumed := <-events
		require.True(t, resumed.Resumed)
		// so that its attempt is not told before its creation
		_, err := srv.Client().Register(t.Context(), client.Job{URL: "https://shop.example/", Delay: time.Second})
		require.NoError(t, err)
		created := <-events
		require.Equal(t, "change", created.Kind)
		require.Equal(t, "created", created.Change.Kind)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestStream_ReadsWhatAServerMaySend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := faked(t, client.Options{Timeout: time.Minute}, func(r *http.Request) (*http.Response, error) {
			switch calls++; calls {
			case 1:
				return response(200, ": hello\nretry: 2000\n\nevent: skipped\ndata: {\"skipped\": 1250}\n\nevent: "+
					"weather\ndata: {\ndata: }\n\nevent: attempt\ndata: {\"n\": 1"), nil
			case 2:
				return response(503, problem(503, "overloaded"), "Retry-After", "5"), nil
			case 3:
				res := response(200, "")
				res.Body = io.NopCloser(silence{r.Context()})
				return res, nil
			default:
				return response(200, "event: problem\ndata: "+problem(401, "token_expired")+"\n\n"), nil
			}
		})
		var kinds []string
		var last error
		for e, err := range c.Stream(t.Context(), client.StreamOptions{}) {
			if last = err; err == nil {
				kinds = append(kinds, e.Kind+" "+string(e.Data))
			}
		}
		require.ErrorIs(t, last, client.ErrUnauthorized)
		require.Equal(t,
			[]string{"connected ", `skipped {"skipped": 1250}`, "weather {\n}", "resumed ", "resumed "}, kinds)
		require.Equal(t, 4, calls)
	})
}

func TestStream_StopsWithTheLoopAndIsBounded(t *testing.T) {
	calls := 0
	c := faked(t, client.Options{}, func(*http.Request) (*http.Response, error) {
		calls++
		res := response(200, "")
		res.Body = io.NopCloser(io.MultiReader(strings.NewReader("event: a\ndata: b\n\n"), endlessText{}))
		return res, nil
	})
	for _, err := range c.Stream(t.Context(), client.StreamOptions{}) {
		require.NoError(t, err)
		break
	}
	var last error
	for _, err := range c.Stream(t.Context(), client.StreamOptions{}) {
		last = err
	}
	require.Equal(t, 2, calls)
	require.ErrorContains(t, last, "too long")
}
