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

// testOptions returns options with a new store.
func testOptions(t *testing.T) Options {
	return Options{
		Addr: "127.0.0.1:0", Store: "sqlite:" + filepath.Join(t.TempDir(), "ringback.db"), AllowPrivate: true,
		Grace: 10 * time.Second,
	}
}

// runningApp is an App that runs until stop.
type runningApp struct {
	*App
	stop func() error // stops the App and returns Run's error
}

func run(t *testing.T, o Options) runningApp {
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
	return runningApp{a, stop}
}

// ask makes one request and returns the response's status and body.
func (r runningApp) ask(t *testing.T, method, path, body string, header ...string) (int, string) {
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

func TestRun_DeliversARegisteredJob(t *testing.T) {
	got := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Header.Get("webhook-id") + " " + string(body)
	}))
	defer receiver.Close()
	r := run(t, testOptions(t))
	status, answer := r.ask(t, http.MethodPost, "/v1/jobs",
		`{"id": "one", "url": "`+receiver.URL+`", "body": {"a": 1}}`)
	require.Equal(t, http.StatusCreated, status, answer)
	require.Equal(t, `one {"a": 1}`, <-got)
	require.Eventually(t, func() bool {
		_, answer := r.ask(t, http.MethodGet, "/v1/jobs/one", "")
		var job struct{ State string }
		return json.Unmarshal([]byte(answer), &job) == nil && job.State == "delivered"
	}, 10*time.Second, 5*time.Millisecond)
	_, page := r.ask(t, http.MethodGet, "/metrics", "")
	require.Contains(t, page, `ringback_sqlite_log_bytes{store="main"} `)
	require.NoError(t, r.stop())
}

func TestRun_ReleasesTheStore(t *testing.T) {
	o := testOptions(t)
	require.NoError(t, run(t, o).stop())
	require.NoError(t, run(t, o).stop())
}

func TestGuard_RejectsTheAPIsOwnAddress(t *testing.T) {
	r := run(t, testOptions(t))
	_, port, err := net.SplitHostPort(r.Addr())
	require.NoError(t, err)
	for _, host := range []string{r.Addr(), "localhost:" + port, "[::ffff:127.0.0.1]:" + port} {
		status, answer := r.ask(t, http.MethodPost, "/v1/jobs", `{"url": "http://`+host+`/v1/jobs"}`)
		require.Equal(t, http.StatusUnprocessableEntity, status, answer)
	}
}

func TestGuard_RejectsPrivateTargetsByDefault(t *testing.T) {
	o := testOptions(t)
	o.AllowPrivate = false
	r := run(t, o)
	status, answer := r.ask(t, http.MethodPost, "/v1/jobs", `{"url": "http://10.1.2.3/"}`)
	require.Equal(t, http.StatusUnprocessableEntity, status, answer)
	require.Contains(t, answer, "/url")
}

func TestRequestHeader_RejectsTooManyLines(t *testing.T) {
	var header []string
	for n := range 150 {
		header = append(header, fmt.Sprint("X-", n), "")
	}
	status, _ := run(t, testOptions(t)).ask(t, http.MethodGet, "/healthz", "", header...)
	require.Equal(t, http.StatusBadRequest, status)
}

func TestHost_IsCheckedWithoutAToken(t *testing.T) {
	const token = "s3cret-0123456789"
	for _, c := range []struct {
		addr, token   string
		address, name int // status of requests to an address and to an unknown name
	}{
		{"127.0.0.1:0", "", http.StatusForbidden, http.StatusForbidden},
		{"0.0.0.0:0", "", http.StatusOK, http.StatusForbidden},
		{"0.0.0.0:0", token, http.StatusOK, http.StatusOK},
	} {
		o := testOptions(t)
		o.Addr, o.Token, o.NoAuth, o.AllowedHosts = c.addr, Secret(c.token), c.token == "",
			[]string{"ringback.internal"}
		r := run(t, o)
		for host, want := range map[string]int{
			"localhost": http.StatusOK, "ringback.internal:80": http.StatusOK, "10.1.2.3": c.address,
			"foreign.example": c.name,
		} {
			header := []string{"Host", host}
			if c.token != "" {
				header = append(header, "Authorization", "Bearer "+c.token)
			}
			status, answer := r.ask(t, http.MethodGet, "/v1/stats", "", header...)
			require.Equal(t, want, status, "%+v %s: %s", c, host, answer)
		}
	}
}

func TestToken_IsRequired(t *testing.T) {
	o := testOptions(t)
	o.Token = "s3cret-0123456789"
	r := run(t, o)
	status, _ := r.ask(t, http.MethodGet, "/v1/stats", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = r.ask(t, http.MethodGet, "/v1/stats", "", "Authorization", "Bearer s3cret-0123456789")
	require.Equal(t, http.StatusOK, status)
}

func TestToken_MayBeSeveralLines(t *testing.T) {
	o := testOptions(t)
	o.Token = "old-0123456789abc\r\n\nnew-0123456789abc\n"
	r := run(t, o)
	for token, want := range map[string]int{"old-0123456789abc": 200, "new-0123456789abc": 200, "old": 401} {
		status, answer := r.ask(t, http.MethodGet, "/v1/stats", "", "Authorization", "Bearer "+token)
		require.Equal(t, want, status, "%q: %s", token, answer)
	}
}

func TestNew_NamesATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	o := testOptions(t)
	o.Addr = taken.Addr().String()
	_, err = New(t.Context(), o)
	require.ErrorContains(t, err, o.Addr)
}

func TestNew_ClosesThePortWhenTheStoreFails(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	o := testOptions(t)
	o.Addr, o.Store = addr, "sqlite:"+t.TempDir()+"/missing/ringback.db"
	_, err = New(t.Context(), o)
	require.ErrorContains(t, err, "missing")
	again, err := net.Listen("tcp", addr)
	require.NoError(t, err, "the port was released")
	require.NoError(t, again.Close())
}

// Only a store that is unavailable is opened later.
func TestNew_FailsIfAnotherStoreCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "main.db")
	o := Options{Addr: "127.0.0.1:0", Store: "sqlite:" + file + " eu=sqlite:/no/such/folder/x.db"}
	_, err := New(t.Context(), o)
	require.ErrorContains(t, err, "/no/such/folder")
	o.Store = "sqlite:" + file
	a, err := New(t.Context(), o)
	require.NoError(t, err, "the main store was closed")
	require.NoError(t, a.down.run())
}

func TestRun_ReturnsTheCauseOfAnUnexpectedExit(t *testing.T) {
	a, err := New(t.Context(), testOptions(t))
	require.NoError(t, err)
	require.NoError(t, a.listener.Close())
	require.ErrorContains(t, a.Run(t.Context()), "serve the API")
}

func TestRun_ReturnsAtOnceWhenItsContextHasEnded(t *testing.T) {
	a, err := New(t.Context(), testOptions(t))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, a.Run(ctx))
}
