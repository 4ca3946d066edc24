package doctor

import (
	"io"
	"log" //nolint:depguard // the type that net/http has
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serve starts a service whose clock is ahead, and returns its checks' findings.
func serve(t *testing.T, ready, version string, status int, ahead time.Duration) []Finding {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		text := ready
		if r.URL.Path == "/v1/version" {
			if text = version; r.Header.Get("Authorization") != "Bearer secret" {
				status, text = http.StatusUnauthorized, ""
			}
		} else if r.Header.Get("Authorization") != "" {
			t.Error("the token was sent where none is needed")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return Run(t.Context(), Server{URL: server.URL, Token: "secret", Version: "v2"}.Check())
}

func TestServer_IsChecked(t *testing.T) {
	const ready, version = `{"status":"ready"}`, `{"version":"v2"}`
	good := serve(t, ready, version, 200, 0)
	require.Len(t, good, 3)
	requireFinding(t, good, ServerReady, OK, "accepts and delivers jobs")
	requireFinding(t, good, ServerVersion, OK, "v2, like this program")
	requireFinding(t, good, ServerClock, OK, "within")

	requireFinding(t, serve(t, `{"detail":"redis cannot be reached"}`, version, 503, 0), ServerReady, Fault, "redis cannot be reached (503)")
	requireFinding(t, serve(t, "oops", version, 502, 0), ServerReady, Fault, "status 502")
	requireFinding(t, serve(t, "<html>", version, 200, 0), ServerReady, Fault, "is not Ringback")
	requireFinding(t, serve(t, `{"status":"ready","stores":[{"name":"eu","ready":false,"detail":"gone"}]}`, version, 200, 0), ServerReady, Warn, "not the store eu: gone")
	requireFinding(t, serve(t, ready, `{"version":"v1"}`, 200, 0), ServerVersion, Warn, "the service is version v1, this program is v2")
	requireFinding(t, serve(t, ready, "oops", 200, 0), ServerVersion, Unknown, "does not tell its version")
	requireFinding(t, serve(t, ready, version, 200, 10*time.Second), ServerClock, Warn, "ahead of this machine")
	requireFinding(t, serve(t, ready, version, 200, -time.Hour), ServerClock, Fault, "behind this machine")
}

func TestServer_SaysThatNoneRuns(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	requireFinding(t, Run(t.Context(), Server{URL: server.URL}.Check()), ServerReady, Unknown, "no service runs at the address")
	found := Run(t.Context(), Server{URL: server.URL, Named: true}.Check())
	requireFinding(t, found, ServerReady, Fault, "connection refused")
	requireFinding(t, found, ServerClock, Unknown, "could not be checked")
}

func TestServer_RefusesAWrongTokenAndCertificate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(`{"status":"ready"}`))
	}))
	t.Cleanup(server.Close)
	requireFinding(t, Run(t.Context(), Server{URL: server.URL, Token: "other"}.Check()), ServerVersion, Unknown, "refuses the token")

	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	found := Run(t.Context(), Server{URL: secure.URL, Named: true}.Check())
	require.Len(t, found, 4)
	requireFinding(t, found, ServerReady, Fault, "certificate")
	requireFinding(t, found, ServerTLS, Unknown, "could not be checked")
}

func TestServer_ShowsNoPassword(t *testing.T) {
	require.Equal(t, "server https://ringback.internal/x", Server{URL: "https://user:pass@ringback.internal/x?token=1"}.Check().Subject)
	require.Equal(t, "server (the URL cannot be read)", Server{URL: "://secret"}.Check().Subject)
}
