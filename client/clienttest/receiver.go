package clienttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// receiver serves the requests of jobs by a handler, over http and https.
type receiver struct {
	roots   *x509.CertPool
	plain   *listener
	secure  *listener
	servers []*http.Server
	serving sync.WaitGroup
	order   order

	mu    sync.Mutex
	conns map[*startedConn]struct{} // open
}

// order makes a call of step happen before the later ones, as the race detector sees it. So the variables of a test
// need no lock between the test, which moves the clock, and its handler, unless requests come at the same time.
type order struct {
	mu    sync.Mutex
	steps int
}

func (o *order) step() {
	o.mu.Lock()
	o.steps++
	o.mu.Unlock()
}

func newReceiver(handler http.Handler) (*receiver, error) {
	authority, err := newAuthority()
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	r := &receiver{
		roots: x509.NewCertPool(), plain: newListener(), secure: newListener(),
		conns: make(map[*startedConn]struct{}),
	}
	r.roots.AddCert(authority.cert)
	r.serve(handler, r.plain)
	r.serve(handler, tls.NewListener(r.secure,
		&tls.Config{GetCertificate: authority.issue, MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true}))
	return r, nil
}

func (r *receiver) serve(handler http.Handler, l net.Listener) {
	ordered := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.order.step()
		defer r.order.step()
		handler.ServeHTTP(w, req)
	})
	s := &http.Server{Handler: ordered, ReadHeaderTimeout: time.Minute}
	r.servers = append(r.servers, s)
	r.serving.Go(func() { _ = s.Serve(l) })
}

// close ends all connections first: those over TLS send a closing alert to the other side for up to 5 s, which does not
// read it if it sends one as well.
func (r *receiver) close() {
	for _, c := range r.open() {
		_ = c.Conn.Close()
	}
	for _, s := range r.servers {
		_ = s.Close()
	}
	r.serving.Wait()
}

// dial connects to the handler, whatever the address: over TLS if the first byte says so.
func (r *receiver) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	r.serving.Go(func() { r.route(far) })
	return near, nil
}

// tlsHandshake is the first byte of a connection over TLS.
const tlsHandshake = 0x16

// route passes a connection to the server of its protocol.
func (r *receiver) route(c net.Conn) {
	first := make([]byte, 1)
	if _, err := c.Read(first); err != nil {
		_ = c.Close()
		return
	}
	to := r.plain
	if first[0] == tlsHandshake {
		to = r.secure
	}
	started := &startedConn{Conn: c, of: r, first: first}
	r.mu.Lock()
	r.conns[started] = struct{}{}
	r.mu.Unlock()
	select {
	case to.conns <- started:
	case <-to.done:
		_ = started.Close()
	}
}

// open returns the connections that are open.
func (r *receiver) open() []*startedConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.conns))
}

// startedConn is a connection whose first byte was read.
type startedConn struct {
	net.Conn

	of *receiver

	mu    sync.Mutex
	first []byte
}

// Read reads the first byte again, then the connection.
func (c *startedConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	n := copy(p, c.first)
	c.first = c.first[n:]
	c.mu.Unlock()
	if n > 0 {
		return n, nil
	}
	return c.Conn.Read(p) // it is the connection's
}

// Close closes the connection.
func (c *startedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close() // it is the connection's
}

// authority issues certificates for every name.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// validity is the time before and after now for which certificates are valid: tests advance the clock by years.
const validity = 100 * 366 * 24 * time.Hour

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err // the caller says it
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-validity), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err // the caller says it
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert, key}, err // the caller says it
}

// issue returns a certificate for the name that a client asks for.
func (a *authority) issue(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter}
	if hello.ServerName == "" {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	} else {
		template.DNSNames = []string{hello.ServerName}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}, err // the handshake fails with it
}
