package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// good are options for a test, on a store of its own.
func good(t *testing.T) Options {
	return Options{
		Addr: "127.0.0.1:0", Store: "sqlite:" + filepath.Join(t.TempDir(), "ringback.db"), AllowPrivate: true,
		Grace: 10 * time.Second,
	}
}

// A rig is a running App.
type rig struct {
	*App
	stop func() error // ends it and gives what Run returned
}

func run(t *testing.T, o Options) rig {
	t.Helper()
	a, err := New(t.Context(), o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stop := func() error {
		cancel()
		err := <-done
		done <- err
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return rig{a, stop}
}

// ask makes one request and returns the answer's status and body.
func (r rig) ask(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.Addr()+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Host = req.Header.Get("Host") // empty: the URL's
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestAJobGoesThroughTheWholeProduct(t *testing.T) {
	got := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Header.Get("webhook-id") + " " + string(body)
	}))
	defer receiver.Close()
	r := run(t, good(t))
	status, answer := r.ask(t, http.MethodPost, "/v1/jobs", `{"id": "one", "url": "`+receiver.URL+`", "body": {"a": 1}}`)
	require.Equal(t, http.StatusCreated, status, answer)
	require.Equal(t, `one {"a": 1}`, <-got)
	require.Eventually(t, func() bool {
		_, answer := r.ask(t, http.MethodGet, "/v1/jobs/one", "")
		var job struct{ State string }
		return json.Unmarshal([]byte(answer), &job) == nil && job.State == "delivered"
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, r.stop())
}

func TestTheStoreCanBeOpenedAgainAfterAStop(t *testing.T) {
	o := good(t)
	require.NoError(t, run(t, o).stop())
	require.NoError(t, run(t, o).stop())
}

func TestAJobCannotCallTheAPIItself(t *testing.T) {
	r := run(t, good(t))
	_, port, err := net.SplitHostPort(r.Addr())
	require.NoError(t, err)
	for _, host := range []string{r.Addr(), "localhost:" + port, "[::ffff:127.0.0.1]:" + port} {
		status, answer := r.ask(t, http.MethodPost, "/v1/jobs", `{"url": "http://`+host+`/v1/jobs"}`)
		require.Equal(t, http.StatusUnprocessableEntity, status, answer)
	}
}

func TestPrivateTargetsAreRefusedUnlessAllowed(t *testing.T) {
	o := good(t)
	o.AllowPrivate = false
	r := run(t, o)
	status, answer := r.ask(t, http.MethodPost, "/v1/jobs", `{"url": "http://10.1.2.3/"}`)
	require.Equal(t, http.StatusUnprocessableEntity, status, answer)
	require.Contains(t, answer, "/url")
}

func TestRequestHeader_OfManyLinesIsRefused(t *testing.T) {
	var header []string
	for n := range 150 {
		header = append(header, fmt.Sprint("X-", n), "")
	}
	status, _ := run(t, good(t)).ask(t, http.MethodGet, "/healthz", "", header...)
	require.Equal(t, http.StatusBadRequest, status)
}

func TestHost_IsCheckedWhereNoTokenIsNeeded(t *testing.T) {
	const token = "s3cret-0123456789"
	for _, c := range []struct {
		addr, token   string
		address, name int // what requests to an address and to an unknown name get
	}{
		{"127.0.0.1:0", "", http.StatusForbidden, http.StatusForbidden},
		{"0.0.0.0:0", "", http.StatusOK, http.StatusForbidden},
		{"0.0.0.0:0", token, http.StatusOK, http.StatusOK},
	} {
		o := good(t)
		o.Addr, o.Token, o.NoAuth, o.AllowedHosts = c.addr, Token(c.token), c.token == "", []string{"ringback.internal"}
		r := run(t, o)
		for host, want := range map[string]int{
			"localhost": http.StatusOK, "ringback.internal:80": http.StatusOK, "10.1.2.3": c.address, "foreign.example": c.name,
		} {
			status, answer := r.ask(t, http.MethodGet, "/v1/stats", "", "Host", host, "Authorization", "Bearer "+token)
			require.Equal(t, want, status, "%+v %s: %s", c, host, answer)
		}
	}
}

func TestATokenIsAskedFor(t *testing.T) {
	o := good(t)
	o.Token = "s3cret-0123456789"
	r := run(t, o)
	status, _ := r.ask(t, http.MethodGet, "/v1/stats", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = r.ask(t, http.MethodGet, "/v1/stats", "", "Authorization", "Bearer s3cret-0123456789")
	require.Equal(t, http.StatusOK, status)
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	o := good(t)
	o.Addr = taken.Addr().String()
	_, err = New(t.Context(), o)
	require.ErrorContains(t, err, o.Addr)
}

func TestWhatWasOpenedIsClosedWhenTheRestCannotBeHad(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	o := good(t)
	o.Addr, o.Store = addr, "sqlite:"+t.TempDir()+"/missing/ringback.db"
	_, err = New(t.Context(), o)
	require.ErrorContains(t, err, "missing")
	again, err := net.Listen("tcp", addr)
	require.NoError(t, err, "the port is free again")
	require.NoError(t, again.Close())
}

func TestRunSaysWhyItEndedByItself(t *testing.T) {
	a, err := New(t.Context(), good(t))
	require.NoError(t, err)
	require.NoError(t, a.listener.Close())
	require.ErrorContains(t, a.Run(t.Context()), "serve the API")
}

func TestAContextThatHasEndedStopsBeforeItStarts(t *testing.T) {
	a, err := New(t.Context(), good(t))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, a.Run(ctx))
}
