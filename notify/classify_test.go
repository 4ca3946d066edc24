package notify

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/notify/guard"
	"github.com/ringback/ringback/policy"
)

func roots(certs ...*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool
}

// certificate returns a self-signed certificate.
func certificate(t *testing.T, name string, notAfter time.Time) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{name},
		NotBefore:             notAfter.Add(-24 * time.Hour),
		NotAfter:              notAfter,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(name); ip != nil {
		template.DNSNames, template.IPAddresses = nil, []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, parsed
}

// reset ends a connection with a TCP reset.
func reset(conn net.Conn) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

func TestClassify_FailuresOverPlainConnections(t *testing.T) {
	tests := map[string]struct {
		serve func(net.Conn)
		class policy.ErrorClass
		text  string
	}{
		"closed before the header": {respondOnce(""), policy.ClassReset, "before there was an answer"},
		"closed in the header":     {respondOnce("HTTP/1.1 200 OK\r\nX-Y: "), policy.ClassReset, "in the middle"},
		"closed in the body": {
			respondOnce("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
			policy.ClassReset, "in the middle",
		},
		"closed in a chunk": {
			respondOnce("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
			policy.ClassReset, "in the middle",
		},
		"closed between chunks": {
			respondOnce("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"),
			policy.ClassReset, "in the middle",
		},
		"garbage": {
			respondOnce("SSH-2.0-OpenSSH_9.9\r\n"), policy.ClassHTTP,
			"malformed HTTP response",
		},
		"garbage status": {respondOnce("HTTP/1.1 abc\r\n\r\n"), policy.ClassHTTP, "malformed HTTP status"},
		"garbage version": {
			respondOnce("HTTP/x 200 OK\r\n\r\n"), policy.ClassHTTP,
			"malformed HTTP version",
		},
		"garbage header": {
			respondOnce("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), policy.ClassHTTP,
			"malformed MIME header",
		},
		"garbage length": {
			respondOnce("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
			policy.ClassHTTP, "bad Content-Length",
		},
		"garbage chunk": {
			respondOnce("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
			policy.ClassHTTP, "chunk",
		},
		"unknown coding": {
			respondOnce("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
			policy.ClassHTTP, "unsupported transfer encoding",
		},
		"a header that is too large": {respondOnce("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) +
			"\r\n\r\n"), policy.ClassTooLarge, "16 KiB or 100 lines"},
		"headers that are too many": {respondOnce("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 20<<10) +
			"\r\n"), policy.ClassTooLarge, "16 KiB or 100 lines"},
		"reset before the header": {
			func(c net.Conn) { readRequest(bufio.NewReader(c)); reset(c) },
			policy.ClassReset, "reset",
		},
		"closed without reading":      {reset, policy.ClassReset, ""},
		"TLS where none was expected": {respondOnce("\x15\x03\x01\x00\x02\x02\x16"), policy.ClassHTTP, "malformed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSender(t, Options{})
			result := s.Deliver(t.Context(), newRequest("http://"+receiver(t, test.serve)+"/?topsecret"))
			require.Equal(t, test.class, result.Class, result.Error)
			require.Contains(t, result.Error, test.text)
			require.NotContains(t, result.Error, "topsecret")
			if strings.Contains(name, "in the body") {
				require.Equal(t, 200, result.Status)
				require.Equal(t, "abc", string(result.Body))
			}
		})
	}
}

func TestClassify_RefusedConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	result := newSender(t, Options{}).Deliver(t.Context(), newRequest("http://"+l.Addr().String()))
	require.Equal(t, policy.ClassRefused, result.Class, result.Error)
}

// Errors that loopback cannot cause are injected at the dialer.
func TestClassify_FailedDials(t *testing.T) {
	opError := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	tests := map[string]struct {
		err   error
		class policy.ErrorClass
	}{
		"no route":      {opError(syscall.EHOSTUNREACH), policy.ClassUnreachable},
		"no network":    {opError(syscall.ENETUNREACH), policy.ClassUnreachable},
		"refused":       {opError(syscall.ECONNREFUSED), policy.ClassRefused},
		"by the system": {opError(syscall.ETIMEDOUT), policy.ClassTimeoutDial},
		"no such name": {
			opError(&net.DNSError{Name: "x.invalid", Err: "no such host", IsNotFound: true}),
			policy.ClassDNS,
		},
		"no name server": {
			opError(&net.DNSError{Name: "x.invalid", Err: "i/o timeout", IsTimeout: true}),
			policy.ClassDNS,
		},
		"bad name server": {
			opError(&net.DNSError{Name: "x.invalid", Err: "server misbehaving", IsTemporary: true}),
			policy.ClassDNS,
		},
		"no more sockets": {opError(syscall.EMFILE), policy.ClassLocalResources},
		"strange address": {opError(syscall.EINVAL), policy.ClassOther},
		"partly refused": {&conn.PartlyBlockedError{Blocked: &guard.BlockedError{
			Target: "10.0.0.1",
			Rule:   "private",
		}}, policy.ClassUnreachable},
		"refused by us":     {opError(&guard.BlockedError{Target: "10.0.0.1", Rule: "private"}), policy.ClassBlocked},
		"something unknown": {errors.New("what\nis this"), policy.ClassOther},
	}
	for name, test := range tests {
		s := newSender(t,
			Options{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, test.err }})
		result := s.Deliver(t.Context(), newRequest("http://x.invalid/"))
		require.Equal(t, test.class, result.Class, "%s: %s", name, result.Error)
		require.NotContains(t, result.Error, "\n")
		require.NotEmpty(t, result.Error)
	}
}

func TestClassify_ResolverWithoutAddresses(t *testing.T) {
	refuse := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server here")
	}}
	result := newSender(t, Options{Resolver: refuse}).Deliver(t.Context(), newRequest("http://shop.invalid/"))
	require.Equal(t, policy.ClassDNS, result.Class, result.Error)
	require.Contains(t, result.Error, "shop.invalid")
}

func TestClassify_DistinguishesMissingNamesFromFailingNameServers(t *testing.T) {
	result := newSender(t, Options{Resolver: fixedResolver()}).Deliver(t.Context(), newRequest("http://shop.invalid/"))
	require.Equal(t, policy.ClassDNS, result.Class)
	require.Equal(t, "there is no such name: shop.invalid has no address", result.Error)

	for text, err := range map[string]*net.DNSError{
		"there is no such name: x has no " +
			"address": {Name: "x", Err: "no such host", IsNotFound: true},
		"the name server did not answer for x": {Name: "x", Err: "i/o timeout", IsTimeout: true},
		"the name server could not answer for x: server " +
			"misbehaving": {Name: "x", Err: "server misbehaving", IsTemporary: true},
	} {
		require.Equal(t, text, dnsText(err))
	}
}

func TestClassify_BlockedAddressesAreFinal(t *testing.T) {
	server, got := recordingServer(t, (*httptest.Server).Start)
	s := newSender(t, Options{Guard: guard.New(guard.Options{})})
	result := s.Deliver(t.Context(), newRequest(server.URL))
	require.Equal(t, policy.ClassBlocked, result.Class, result.Error)
	require.Contains(t, result.Error, "loopback")
	require.Contains(t, result.Error, "--allow-private")
	require.Empty(t, got)

	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	result = s.Deliver(t.Context(), newRequest("http://localhost:"+port))
	require.Equal(t, policy.ClassBlocked, result.Class, "the address a name resolves to: %s", result.Error)

	own := guard.New(guard.Options{AllowPrivate: true})
	s = newSender(t, Options{Guard: own})
	require.Equal(t, 200, s.Deliver(t.Context(), newRequest(server.URL)).Status)
	s.Close()
	own.Own(server.Listener.Addr().(*net.TCPAddr).AddrPort())
	result = s.Deliver(t.Context(), newRequest(server.URL))
	require.Equal(t, policy.ClassBlocked, result.Class)
	require.Contains(t, result.Error, "own API")
}

func TestClassify_FailuresOverHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			for i := range 17 {
				w.Header().Set("X-Large-"+strconv.Itoa(i), strings.Repeat("x", 1<<10))
			}
		case "/larger": // net/http takes a breach of the advertised limit by this much for one of the protocol
			w.Header().Set("X-Large", strings.Repeat("x", 70<<10))
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/cut":
			_, _ = w.Write([]byte("abc"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/hang", "/drip":
			if r.URL.Path == "/drip" {
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = discardLog
	server.StartTLS()
	t.Cleanup(server.Close)
	s := newSender(t, Options{Roots: roots(server.Certificate())})
	for path, class := range map[string]policy.ErrorClass{
		"/large":  policy.ClassTooLarge,
		"/larger": policy.ClassHTTP,
		"/abort":  policy.ClassReset,
		"/cut":    policy.ClassReset,
		"/hang":   policy.ClassTimeoutHeaders,
		"/drip":   policy.ClassTimeoutBody,
	} {
		t.Run(path, func(t *testing.T) { deliverUntil(t, s, newRequest(server.URL+path), class) })
	}
}
