package notify

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// secretHeader has secrets in each form of headers, and one header without a secret.
var secretHeader = map[string][]string{
	"Authorization": {"Bearer topsecret-token"},
	"X-Api-Key":     {"topsecret-key"},
	"Cookie":        {"topsecret-cookie"},
	"X_Auth_Token":  {"topsecret-auth"},
	"X-Auth-Key":    {"topsecret-authkey"},
	"X-Tenant":      {"tenant-4711"},
	"X-Otp":         {"topsecret-otp"},
	"X-Token-Kind":  {"short"},
}

func TestRedact_RemovesSecretsThatAReceiverRepeats(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization")+", "+r.Header.Get("X-Tenant"))
		_ = json.NewEncoder(w).Encode(r.Header)
	}))
	t.Cleanup(server.Close)
	req := newRequest(server.URL)
	req.Header, req.Sealed = secretHeader, []string{"X-Otp"}
	result := newSender(t, Options{}).Deliver(t.Context(), req)
	require.Equal(t, 200, result.Status, result.Error)
	require.NotContains(t, string(result.Body), "topsecret")
	require.Contains(t, string(result.Received), "topsecret", "success is judged by the answer as it came")
	require.Contains(t, string(result.Body), `"X-Api-Key":["[redacted]"]`)
	require.Contains(t, string(result.Body), "tenant-4711")
	require.Contains(t, string(result.Body), "short", "what is in ordinary words is left")
	require.Equal(t, []string{"[redacted], tenant-4711"}, result.Header["X-Echo"])
	require.Equal(t, []string{"Bearer topsecret-token"}, req.Header["Authorization"], "the job's header is not changed")
}

func TestRedact_RemovesTheStartOfATruncatedSecret(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", job.MaxAttemptBody-10)+r.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(server.Close)
	req := newRequest(server.URL)
	req.Header = secretHeader
	result := newSender(t, Options{}).Deliver(t.Context(), req)
	require.Equal(t, 200, result.Status, result.Error)
	require.True(t, strings.HasSuffix(string(result.Body), "xxx[redacted]"), string(result.Body))
}

func TestRedact_RemovesSecretsFromErrors(t *testing.T) {
	addr := receiver(t, func(conn net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err == nil {
			_, _ = io.WriteString(conn, r.Header.Get("Authorization")+"\r\n\r\n")
		}
	})
	req := newRequest("http://" + addr)
	req.Header = secretHeader
	result := newSender(t, Options{}).Deliver(t.Context(), req)
	require.Equal(t, policy.ClassHTTP, result.Class, result.Error)
	require.Contains(t, result.Error, "[redacted]")
	require.NotContains(t, result.Error, "topsecret")
}
