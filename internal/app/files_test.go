package app

import (
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/console"
	"github.com/ringback/ringback/internal/badreceiver"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/internal/testkit"
)

// deriveKeys derives the keys of the console's sessions: signing in must not take as long as that does under the race
// detector.
func deriveKeys(root ...logs.Secret) { console.NewSealer(root, 0).IDs() }

// lookTwice loads files that have changed.
func (r runningApp) lookTwice() {
	r.files.Look()
	r.files.Look()
}

func TestFiles_OfTokensAreReadAgain(t *testing.T) {
	const first, second, metrics = "first-0123456789abc", "second-0123456789abc", "metrics-0123456789abc"
	var log testkit.Log
	o := testOptions(t)
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.TokenFile, o.MetricsTokenFile = filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "metrics")
	o.Token, o.MetricsToken = first, first
	r := run(t, o)
	look := func(token, metricsToken string) {
		require.NoError(t, os.WriteFile(o.TokenFile, []byte(token), 0o600))
		require.NoError(t, os.WriteFile(o.MetricsTokenFile, []byte(metricsToken), 0o600))
		r.lookTwice()
	}
	// accepted returns which tokens the API, and which /metrics accepts.
	accepted := func() (accepted string) {
		for _, token := range []string{first, second, metrics} {
			for _, path := range []string{"/v1/whoami", "/metrics"} {
				status, _ := r.ask(t, http.MethodGet, path, "", "Authorization", "Bearer "+token)
				if status == http.StatusOK {
					name, _, _ := strings.Cut(token, "-")
					accepted += name + " " + path + "\n"
				}
			}
		}
		return accepted
	}
	deriveKeys(first, second)
	signIn := func() (cookie string) {
		form, to := strings.NewReader("token="+second), "http://"+r.Addr()+"/console/sign-in"
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, form)
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.NotEmpty(t, resp.Cookies(), resp.Status)
		return resp.Cookies()[0].Name
	}
	require.Equal(t, "first /v1/whoami\nfirst /metrics\n", accepted())
	look(first+"\n"+second, metrics)
	const both = "second /v1/whoami\nsecond /metrics\nmetrics /metrics\n"
	require.Equal(t, "first /v1/whoami\nfirst /metrics\n"+both, accepted())
	before := signIn()
	look(second, metrics)
	require.Equal(t, both, accepted())
	require.NotEqual(t, before, signIn(), "the cookie's name is that of its key")
	require.NotContains(t, log.String(), "level=WARN msg=\"changed file")
	look("short", "")
	require.Equal(t, both, accepted())
	require.Equal(t, 2, strings.Count(log.String(), "level=WARN msg=\"changed file"), log.String())
	require.Contains(t, log.String(), "must have at least 16 characters")
	require.NotContains(t, log.String(), second)
}

func TestFiles_OfAuthoritiesAreReadAgain(t *testing.T) {
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	receiver.Config.SetKeepAlivesEnabled(false) // each attempt has a handshake
	receiver.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	o := testOptions(t)
	o.CAFile = badreceiver.CAFile(t)
	r := run(t, o)
	ends := func(id string) (answer string) {
		registration := `{"id": "` + id + `", "url": "` + receiver.URL + `", "retries": 0}`
		status, answer := r.ask(t, http.MethodPost, "/v1/jobs", registration)
		require.Equal(t, http.StatusCreated, status, answer)
		require.Eventually(t, func() bool {
			_, answer = r.ask(t, http.MethodGet, "/v1/jobs/"+id, "")
			return strings.Contains(answer, `"state":"d`)
		}, testkit.MustCome, 5*time.Millisecond)
		return answer
	}
	require.Contains(t, ends("before"), "tls_authority")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: receiver.Certificate().Raw})
	require.NoError(t, os.WriteFile(o.CAFile, ca, 0o600))
	r.lookTwice()
	require.Contains(t, ends("after"), `"state":"delivered"`)
	require.NoError(t, os.WriteFile(o.CAFile, []byte("broken"), 0o600))
	r.lookTwice()
	require.Contains(t, ends("broken"), `"state":"delivered"`)
}
