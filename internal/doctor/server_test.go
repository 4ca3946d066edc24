package doctor

import (
	"io"
	"log" //nolint:depguard // the type that net/http has
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sent is what a service was asked: path and token.
type sent []string

// serve starts a service whose clock is ahead, and returns its checks' findings. It tells the version with a token
// only.
func serve(t *testing.T, ready, version string, status int, ahead time.Duration) []Finding {
	t.Helper()
	server, sent := start(t, ready, version, status, ahead, httptest.NewServer)
	found := Run(t.Context(), Server{URL: server.URL, Token: "secret", Version: "v2"}.Check())
	server.Close() // waits for its requests
	for _, one := range *sent {
		require.NotContains(t, one, "secret", "a token was sent without TLS")
	}
	return found
}

func start(
	t *testing.T, ready, version string, status int, ahead time.Duration, listen func(http.Handler) *httptest.Server,
) (*httptest.Server, *sent) {
	t.Helper()
	asked := new(sent)
	server := listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path+r.Header.Get("Authorization"))
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		text, code := ready, status
		if r.URL.Path == "/v1/version" {
			if text = version; version == "" {
				code = http.StatusUnauthorized
			}
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server, asked
}

func TestServer_IsChecked(t *testing.T) {
	const ready, version = `{"status":"ready"}`, `{"version":"v2"}`
	good := serve(t, ready, version, 200, 0)
	require.Len(t, good, 3)
	requireFinding(t, good, ServerReady, OK, "accepts and delivers jobs")
	requireFinding(t, good, ServerVersion, OK, "v2, like this program")
	requireFinding(t, good, ServerClock, OK, "within")

	requireFinding(t, serve(t, `{"status":503,"code":"not_ready","detail":"redis cannot be reached"}`, version, 503, 0),
		ServerReady, Fault, "redis cannot be reached (503)")
	requireFinding(t, serve(t, "oops", version, 502, 0), ServerReady, Fault, "status 502")
	requireFinding(t, serve(t, "<html>", version, 200, 0), ServerReady, Fault, "is not Ringback")
	requireFinding(t, serve(t, `{"status":"ready","stores":[{"name":"eu","ready":false,"detail":"gone"}]}`, version,
		200, 0), ServerReady, Warn, "not the store eu: gone")
	requireFinding(t, serve(t, ready, `{"version":"v1"}`, 200, 0), ServerVersion, Warn,
		"the service is version v1, this program is v2")
	requireFinding(t, serve(t, ready, "oops", 200, 0), ServerVersion, Unknown, "does not tell its version")
	requireFinding(t, serve(t, ready, version, 200, 10*time.Second), ServerClock, Warn, "ahead of this machine")
	requireFinding(t, serve(t, ready, version, 200, -time.Hour), ServerClock, Fault, "behind this machine")
}

func TestServer_TellsItsVersionWithoutAToken(t *testing.T) {
	requireFinding(t, serve(t, `{"status":"ready","version":"v2"}`, "", 200, 0), ServerVersion,
		OK, "v2, like this program")
	requireFinding(t, serve(t, `{"status":"ready","version":"v1"}`, "", 200, 0), ServerVersion, Warn,
		"the service is version v1")
	requireFinding(t, serve(t, `{"status":"ready"}`, "", 200, 0), ServerVersion, Unknown,
		"doctor sends the token over https only")
}

func TestServer_GetsTheTokenIfItIsRingbackAndNamedWithTLS(t *testing.T) {
	for _, c := range []struct {
		ready  string
		status int
		named  bool
		asked  sent
	}{
		{`{"status":"ready"}`, 200, true, sent{"/readyz", "/v1/versionBearer secret"}},
		{`{"status":503,"code":"not_ready","detail":"gone"}`, 503, true, sent{"/readyz", "/v1/versionBearer secret"}},
		{`{"status":"ready"}`, 200, false, sent{"/readyz", "/v1/version"}},
		{`{"status":"ready","version":"v2"}`, 200, true, sent{"/readyz"}},
		{`<html>`, 200, true, sent{"/readyz"}},
		{`{"status":"ok"}`, 200, true, sent{"/readyz"}},
		{`{"detail":"not found"}`, 404, true, sent{"/readyz"}},
		{`oops`, 502, true, sent{"/readyz"}},
	} {
		server, asked := start(t, c.ready, `{"version":"v2"}`, c.status, 0, httptest.NewTLSServer)
		s := Server{URL: server.URL, Named: c.named, Token: "secret", Version: "v2"}
		found, _ := s.look(t.Context(), server.Client())
		server.Close() // waits for its requests
		require.Equal(t, c.asked, *asked, "%s %v", c.ready, found)
	}
}

func TestServer_SaysThatNoneRuns(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	requireFinding(t, Run(t.Context(), Server{URL: server.URL}.Check()), ServerReady, Unknown,
		"no service runs at the address")
	found := Run(t.Context(), Server{URL: server.URL, Named: true}.Check())
	requireFinding(t, found, ServerReady, Fault, "connection refused")
	requireFinding(t, found, ServerClock, Unknown, "could not be checked")
}

func TestServer_RefusesAWrongTokenAndCertificate(t *testing.T) {
	server, _ := start(t, `{"status":"ready"}`, "", 200, 0, httptest.NewTLSServer)
	found, err := Server{URL: server.URL, Named: true, Token: "other"}.look(t.Context(), server.Client())
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(found, func(f Finding) bool {
		return f.Check == ServerVersion && f.Level == Unknown && strings.Contains(f.Seen, "refuses the token")
	}), found)

	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	found = Run(t.Context(), Server{URL: secure.URL, Named: true}.Check())
	require.Len(t, found, 4)
	requireFinding(t, found, ServerReady, Fault, "certificate")
	requireFinding(t, found, ServerTLS, Unknown, "could not be checked")
}

func TestServer_ShowsNoPassword(t *testing.T) {
	require.Equal(t, "server https://ringback.internal/x",
		Server{URL: "https://user:pass@ringback.internal/x?token=1"}.Check().Subject)
	require.Equal(t, "server (the URL cannot be read)", Server{URL: "://secret"}.Check().Subject)
}
