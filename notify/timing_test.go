package notify

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestPhases_OfNewAndReusedConnections(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"HTTP/1.1": (*httptest.Server).Start,
		"TLS":      (*httptest.Server).StartTLS,
		"HTTP/2":   func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				time.Sleep(20 * time.Millisecond) // the receiver's own time
			}))
			server.Config.ErrorLog = discardLog
			start(server)
			t.Cleanup(server.Close)
			o := Options{Resolver: fixedResolver("127.0.0.1")}
			secure := server.TLS != nil
			target := strings.Replace(server.URL, "127.0.0.1", "example.com", 1)
			if secure {
				o.Roots = roots(server.Certificate())
			}
			s := newSender(t, o)
			first := s.Deliver(t.Context(), newRequest(target))
			require.Equal(t, 200, first.Status, first.Error)
			require.Positive(t, first.Phases.DNS)
			require.Positive(t, first.Phases.Connect)
			require.Equal(t, secure, first.Phases.TLS > 0)
			require.GreaterOrEqual(t, first.Phases.FirstByte, 20*time.Millisecond)
			require.LessOrEqual(t,
				first.Phases.DNS+first.Phases.Connect+first.Phases.TLS+first.Phases.FirstByte, first.Duration)
			require.Equal(t, server.Listener.Addr().String(), first.RemoteAddr)

			again := s.Deliver(t.Context(), newRequest(target))
			require.Equal(t, policy.Phases{FirstByte: again.Phases.FirstByte}, again.Phases)
			require.GreaterOrEqual(t, again.Phases.FirstByte, 20*time.Millisecond)
			require.Equal(t, first.RemoteAddr, again.RemoteAddr)

			byAddress := s.Deliver(t.Context(), newRequest(server.URL))
			require.Equal(t, 200, byAddress.Status, byAddress.Error)
			require.Zero(t, byAddress.Phases.DNS)
			require.Positive(t, byAddress.Phases.Connect)
		})
	}
}

func TestPhases_OfFailedAttempts(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refusing := closed.Addr().String()
	require.NoError(t, closed.Close())
	silent := receiver(t, holdOpen)
	for name, c := range map[string]struct {
		url, remote string
		class       policy.ErrorClass
		phase       func(policy.Phases) time.Duration
	}{
		"refused": {"http://" +
			refusing, refusing, policy.ClassRefused, func(p policy.Phases) time.Duration { return p.Connect }},
		"refused over TLS": {"https://" +
			refusing, refusing, policy.ClassRefused, func(p policy.Phases) time.Duration { return p.Connect }},
		"handshake": {"https://" +
			silent, silent, policy.ClassTimeoutTLS, func(p policy.Phases) time.Duration { return p.TLS }},
		"answer": {"http://" +
			silent, silent, policy.ClassTimeoutHeaders, func(p policy.Phases) time.Duration { return p.FirstByte }},
	} {
		t.Run(name, func(t *testing.T) {
			result := deliverUntil(t, newSender(t, Options{}), newRequest(c.url), c.class)
			require.Equal(t, c.remote, result.RemoteAddr)
			require.Positive(t, c.phase(result.Phases))
			require.Zero(t, result.Phases.DNS)
		})
	}
	unknown := newSender(t, Options{Resolver: fixedResolver()}).Deliver(t.Context(), newRequest("http://example.com/"))
	require.Equal(t, policy.ClassDNS, unknown.Class, unknown.Error)
	require.Equal(t, policy.Phases{DNS: unknown.Phases.DNS}, unknown.Phases)
	require.Positive(t, unknown.Phases.DNS)
	require.Empty(t, unknown.RemoteAddr)
}

func TestPhases_TakeTheWholeLimit(t *testing.T) {
	for scheme, phase := range map[string]func(policy.Phases) time.Duration{
		"https": func(p policy.Phases) time.Duration { return p.TLS },
		"http":  func(p policy.Phases) time.Duration { return p.FirstByte },
	} {
		t.Run(scheme, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := senderOverPipe(t, 0, holdOpen)
				phases := s.Deliver(t.Context(), requestTo(scheme, 0)).Phases
				require.InDelta(t, 10*time.Second, phase(phases), float64(time.Microsecond))
			})
		})
	}
}
