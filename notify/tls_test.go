package notify

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/policy"
)

func TestClassify_FailedTLS(t *testing.T) {
	later, earlier := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	good, goodRoot := certificate(t, "127.0.0.1", later)
	expired, expiredRoot := certificate(t, "127.0.0.1", earlier)
	early, earlyRoot := certificate(t, "127.0.0.1", later.Add(48*time.Hour)) // valid for a day
	other, otherRoot := certificate(t, "other.example", later)
	trusted := roots(goodRoot, expiredRoot, earlyRoot, otherRoot)
	tests := map[string]struct {
		config *tls.Config
		roots  *x509.CertPool
		class  policy.ErrorClass
		text   string
	}{
		"unknown authority": {
			&tls.Config{Certificates: []tls.Certificate{good}}, roots(), policy.ClassTLSAuthority, "unknown authority",
		},
		"expired": {
			&tls.Config{Certificates: []tls.Certificate{expired}}, trusted,
			policy.ClassTLSExpired, "expired",
		},
		"not valid yet": {
			&tls.Config{Certificates: []tls.Certificate{early}}, trusted,
			policy.ClassTLSExpired, "not yet valid",
		},
		"another host": {
			&tls.Config{Certificates: []tls.Certificate{other}}, trusted,
			policy.ClassTLSName, "127.0.0.1",
		},
		"too old": {
			&tls.Config{
				Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10,
				MaxVersion: tls.VersionTLS11,
			},
			trusted, policy.ClassTLSVersion, "no version of it from 1.2 on",
		},
	}
	for name, test := range tests {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = discardLog
		server.TLS = test.config
		server.StartTLS()
		result := newSender(t, Options{Roots: test.roots}).Deliver(t.Context(), newRequest(server.URL))
		server.Close()
		require.Equal(t, test.class, result.Class, "%s: %s", name, result.Error)
		require.Contains(t, result.Error, test.text, name)
	}

	oldHello := "160301002a" + "02000026" + "0301" + strings.Repeat("ab", 32) + "00" + "c02f" + "00"
	for name, test := range map[string]struct {
		serve func(net.Conn)
		class policy.ErrorClass
		text  string
	}{
		"no TLS": {
			func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, policy.ClassTLSVersion, "",
		},
		"hangs up": {
			func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) }, policy.ClassTLS, "GODEBUG=tlsmlkem=0",
		},
		"resets": {
			func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)); reset(c) }, policy.ClassTLS, "GODEBUG=tlsmlkem=0",
		},
		"bad records": {
			func(c net.Conn) { _, _ = c.Write([]byte("\x16\x03\x03\x00\x04abcd")) }, policy.ClassTLS, "",
		},
		"an internal error": {alertServer(80), policy.ClassTLS, ""},
		"an unknown alert":  {alertServer(255), policy.ClassTLS, ""},
		// nobody asked for a certificate
		"a failure": {alertServer(40), policy.ClassTLS, "GODEBUG=tlsrsakex=1"},
		"RSA key exchange": {func(c net.Conn) {
			_ = tls.Server(c, &tls.Config{
				Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS12,
				CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256},
			}).Handshake()
		}, policy.ClassTLS, "GODEBUG=tlsrsakex=1"},
		"a fallback": {alertServer(86), policy.ClassTLSVersion, ""},
		"chooses TLS 1.0": {func(c net.Conn) {
			hello, _ := hex.DecodeString(oldHello)
			_, _ = c.Write(hello)
			holdOpen(c)
		}, policy.ClassTLSVersion, ""},
	} {
		result := newSender(t, Options{}).Deliver(t.Context(), newRequest("https://"+receiver(t, test.serve)))
		require.Equal(t, test.class, result.Class, "%s: %s", name, result.Error)
		require.Contains(t, result.Error, test.text, name)
		require.NotContains(t, result.Error, "…", name)
	}
}

// alertServer returns a receiver that ends the handshake with an alert.
func alertServer(code byte) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = conn.Write([]byte{21, 3, 3, 0, 2, 2, code})
		holdOpen(conn)
	}
}

// certificateServer is a receiver that requests client certificates and responds with the name in the certificate.
func certificateServer(t *testing.T, config *tls.Config, http2 bool, conns *atomic.Int32) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, name)
	}))
	server.Config.ErrorLog = discardLog
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			conns.Add(-1)
		default:
		}
	}
	server.TLS, server.EnableHTTP2 = config, http2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func TestSetRoots_HoldsForNewConnections(t *testing.T) {
	cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	_, other := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	var conns atomic.Int32
	url := certificateServer(t, &tls.Config{Certificates: []tls.Certificate{cert}}, false, &conns)
	s := newSender(t, Options{Roots: roots(other)})
	require.Equal(t, policy.ClassTLSAuthority, s.Deliver(t.Context(), newRequest(url)).Class)
	s.SetRoots(roots(other, root))
	require.Equal(t, http.StatusOK, s.Deliver(t.Context(), newRequest(url)).Status)
	s.SetRoots(roots(other))
	s.pool.Close() // so that the next connection is new
	result := s.Deliver(t.Context(), newRequest(url))
	require.Equal(t, policy.ClassTLSAuthority, result.Class, "its session is not resumed")
}

func TestTLS_RequestedCertificateIsSent(t *testing.T) {
	cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	right, rightRoot := certificate(t, "right.example", time.Now().Add(time.Hour))
	wrong, _ := certificate(t, "wrong.example", time.Now().Add(time.Hour))
	expired, expiredRoot := certificate(t, "expired.example", time.Now().Add(-time.Hour))
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		for _, http2 := range []bool{false, true} {
			url := certificateServer(t, &tls.Config{
				Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert,
				ClientCAs: roots(rightRoot, expiredRoot), MinVersion: version, MaxVersion: version,
			}, http2, new(atomic.Int32))
			s := newSender(t, Options{Roots: roots(root)})
			for _, test := range []struct {
				name string
				cert *tls.Certificate
				ok   bool
			}{{"none", nil, false}, {"right", &right, true}, {"wrong", &wrong, false}, {"expired", &expired, false}} {
				// Repeated, with bodies that are written in part: with TLS 1.3 the refusal arrives meanwhile.
				for _, size := range []int{0, 10, 4 << 20} {
					req := newRequest(url)
					req.Certificate = test.cert
					req.Body = []byte(strings.Repeat("x", size))
					result := s.Deliver(t.Context(), req)
					what := []any{"%s, HTTP/2 %t, %s, %d B: %s", name, http2, test.name, size, result.Error}
					if test.ok {
						require.Equal(t, policy.ClassNone, result.Class, what...)
						require.Equal(t, "right.example", string(result.Body), what...)
						continue
					}
					if version == tls.VersionTLS13 && result.Class == policy.ClassReset {
						continue // the connection broke before the alert was read
					}
					require.Equal(t, policy.ClassTLSClient, result.Class, what...)
					require.Contains(t, result.Error, "certificate")
				}
			}
		}
	}
}

// Some receivers fail the handshake without a certificate.
func TestClassify_HandshakeFailureAfterACertificateRequest(t *testing.T) {
	failed := &conn.HandshakeError{
		Err:   &net.OpError{Op: "remote error", Err: tls.AlertError(alertHandshakeFailure)},
		Asked: true,
	}
	class, text := handshakeFailure(failed)
	require.Equal(t, policy.ClassTLSClient, class)
	require.Contains(t, text, "asks for a certificate")
	failed.Asked = false
	class, _ = handshakeFailure(failed)
	require.Equal(t, policy.ClassTLS, class)
}

// crypto/tls has no server that renegotiates.
func TestClassify_RenegotiationSaysWhatToDo(t *testing.T) {
	class, text := byText(&net.OpError{Op: "local error", Err: tls.AlertError(100)})
	require.Equal(t, policy.ClassTLSClient, class)
	require.Contains(t, text, "let it ask in the handshake")
}

// net/http dials again without limit.
func TestTLS_ClosingReceiverIsNotDialledInALoop(t *testing.T) {
	cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	for _, proto := range []string{"h2", "http/1.1"} {
		config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{proto}}
		var conns atomic.Int32
		addr := receiver(t, func(raw net.Conn) {
			conns.Add(1)
			conn := tls.Server(raw, config)
			_ = conn.Handshake()
			_ = conn.Close()
		})
		s := newSender(t, Options{Roots: roots(root)})
		for range 10 {
			result := s.Deliver(t.Context(), newRequest("https://"+addr))
			require.Equal(t, policy.ClassReset, result.Class, result.Error)
			require.LessOrEqual(t, conns.Swap(0), int32(conn.MaxDials))
		}
	}
}

func TestTLS_DifferentCertificatesShareNoConnection(t *testing.T) {
	cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	a, _ := certificate(t, "a.example", time.Now().Add(time.Hour))
	b, _ := certificate(t, "b.example", time.Now().Add(time.Hour))
	for _, http2 := range []bool{false, true} {
		var conns atomic.Int32
		url := certificateServer(t,
			&tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert}, http2, &conns)
		s := newSender(t, Options{Roots: roots(root)})
		for range 3 {
			for range 3 {
				for name, c := range map[string]*tls.Certificate{"a.example": &a, "b.example": &b, "nobody": nil} {
					req := newRequest(url)
					req.Certificate = c
					result := s.Deliver(t.Context(), req)
					require.Equal(t, policy.ClassNone, result.Class, result.Error)
					require.Equal(t, name, string(result.Body))
				}
			}
			require.Equal(t, int32(3), conns.Load(), "a connection a certificate, and one for none")
			s.Close() // what follows may resume sessions, each its own
			require.Eventually(t, func() bool { return conns.Load() == 0 }, 5*time.Minute, time.Millisecond)
		}
	}
}

func TestRootsWith_AddsToTheSystemsAuthorities(t *testing.T) {
	server, _ := recordingServer(t, (*httptest.Server).StartTLS)
	_, other := certificate(t, "other.example", time.Now().Add(time.Hour))
	inPEM := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "ca.pem")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	pool, err := conn.RootsWith(write("# ours\n" + inPEM("CERTIFICATE", other.Raw) + "\nanother\n" +
		inPEM("CERTIFICATE", server.Certificate().Raw)))
	require.NoError(t, err)
	result := newSender(t, Options{Roots: pool}).Deliver(t.Context(), newRequest(server.URL))
	require.Equal(t, 200, result.Status, result.Error)
	system, err := x509.SystemCertPool()
	require.NoError(t, err)
	require.False(t, pool.Equal(system))
	system.AddCert(other)
	system.AddCert(server.Certificate())
	require.True(t, pool.Equal(system), "the system's are among them")
	ca := inPEM("CERTIFICATE", other.Raw) + inPEM("CERTIFICATE", server.Certificate().Raw)
	pool, err = conn.RootsWith(write("\xef\xbb\xbf" + ca))
	require.NoError(t, err)
	require.True(t, pool.Equal(system), "a byte order mark costs no certificate")

	for text, file := range map[string]string{
		"no such file":                filepath.Join(t.TempDir(), "none.pem"),
		"holds no certificate in PEM": write("topsecret"),
		"block 2: it is no CERTIFICATE but a KEY": write(inPEM("CERTIFICATE", other.Raw) +
			inPEM("KEY", []byte("topsecret"))),
		"has a block in PEM that cannot be read": write(ca + "\xef\xbb\xbf" + ca),
		"is in UTF-16":                           write("\xff\xfe-\x00-\x00"),
		"block 1: x509":                          write(inPEM("CERTIFICATE", []byte("topsecret"))),
	} {
		_, err := conn.RootsWith(file)
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, file)
		require.NotContains(t, err.Error(), "topsecret")
	}
}
