package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/testkit"
)

// rootToken is the root token of the services.
const rootToken = "root-token-of-the-browser"

// prefix begins the paths of a service at its proxy, which removes it.
const prefix = "/ops"

// built is the path of the binary, if a test has built it.
var built string

// buildRingback builds the binary once.
var buildRingback = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ringback-browser-")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*testkit.MustCome)
	defer cancel()
	binary := filepath.Join(dir, "ringback")
	built = binary
	if out, err := testkit.GoCommand(ctx, "build", "-o", binary, "../../cmd/ringback").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ringback: %w\n%s", err, out)
	}
	return binary, nil
})

// service is a running ringback dev behind a proxy, which adds a prefix to the paths and collects what the browser
// reports about the content security policy.
type service struct {
	t     *testing.T
	url   string // of the console, at the proxy
	api   *client.Client
	inbox string // host:port of the inbox
	token string // the id of a token that seed created

	mu      sync.Mutex
	reports []string
}

// startService starts a service on a store until the test ends.
func startService(t *testing.T, store string) *service {
	t.Helper()
	binary, err := buildRingback()
	require.NoError(t, err)
	tokens := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte(rootToken+"\n"), 0o600))
	if store == "" {
		store = "sqlite:" + filepath.Join(t.TempDir(), "ringback.db")
	}
	// which ends before the cleanup: a second signal ends it at once
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, binary, "dev", "--addr=127.0.0.1:0", "--inbox=127.0.0.1:0", "--store="+store,
		"--token-file="+tokens, "--log=json", "--grace=2s")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = testkit.MustCome
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "RINGBACK_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	s := &service{t: t}
	addr, inbox := make(chan string, 1), make(chan string, 1)
	var reading sync.WaitGroup
	var problems []string
	reading.Go(func() { problems = followLog(stderr, addr) })
	reading.Go(func() { followOutput(stdout, inbox) })
	t.Cleanup(func() {
		stop()
		reading.Wait()
		_ = cmd.Wait() // the context has ended it
		require.Empty(t, problems, "the service logged errors")
	})
	target := &url.URL{Scheme: "http", Host: receive(t, addr)}
	s.inbox = receive(t, inbox)
	s.url = s.proxy(target) + prefix + "/console/"
	s.api, err = client.New(target.String(), client.Options{Token: rootToken})
	require.NoError(t, err)
	ready := func() bool {
		_, err := s.api.Ready(t.Context())
		return err == nil
	}
	require.Eventually(t, ready, testkit.MustCome, 10*time.Millisecond)
	return s
}

// receive returns what the service says about itself.
func receive(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case text := <-from:
		return text
	case <-time.After(testkit.MustCome):
		t.Fatal("the service does not say where it listens")
		return ""
	}
}

// followLog reads the log, and returns its errors. The line that says where the service listens sends the address.
func followLog(from io.Reader, addr chan<- string) (problems []string) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var line struct{ Level, Msg, Addr string }
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			problems = append(problems, lines.Text())
			continue
		}
		switch {
		case line.Msg == "listening":
			addr <- line.Addr
		case line.Level == "ERROR":
			problems = append(problems, lines.Text())
		}
	}
	return problems
}

// followOutput reads the standard output to its end. The line about the inbox sends its address.
func followOutput(from io.Reader, inbox chan<- string) {
	lines := bufio.NewScanner(from)
	at := regexp.MustCompile(`^inbox at http://([^/]+)/`)
	for lines.Scan() {
		if found := at.FindStringSubmatch(lines.Text()); found != nil {
			inbox <- found[1]
		}
	}
}

// reportPath is where the browser sends its reports.
const reportPath = "/csp-reports"

// proxy starts a proxy, and returns its URL.
func (s *service) proxy(target *url.URL) string {
	reverse := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.Path, r.Out.URL.RawPath = strings.TrimPrefix(r.In.URL.Path, prefix),
				strings.TrimPrefix(r.In.URL.RawPath, prefix)
			r.SetXForwarded()
		},
		FlushInterval: -1,
		ModifyResponse: func(res *http.Response) error {
			if policy := res.Header.Get("Content-Security-Policy"); policy != "" {
				res.Header.Set("Content-Security-Policy", policy+"; report-uri "+reportPath)
			}
			return nil
		},
		// the service stops
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == reportPath {
			text, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10))
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reports = append(s.reports, string(text))
			return
		}
		reverse.ServeHTTP(w, r)
	}))
	s.t.Cleanup(server.Close)
	s.t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Empty(s.t, s.reports, "the content security policy was violated")
	})
	return server.URL
}
