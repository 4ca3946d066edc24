package conn

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
)

// Bounds of a TLS handshake. Certificates are kept for as long as a connection lives, and longer where a session is kept to
// resume it: parsed, they take up to ten times as much memory as what was sent.
const (
	maxHandshake    = 32 << 10 // bytes that a receiver may send
	maxCertificates = 10       // that it may show
	maxChain        = 16 << 10 // bytes of them
	maxTicket       = 4 << 10  // bytes of a ticket that resumes a session; a longer one is not kept
)

// Errors of receivers that go beyond them.
var (
	errHandshakeTooLarge = fmt.Errorf("the receiver sent more than the %d KiB that are read of a handshake", maxHandshake>>10)
	errChainTooLarge     = fmt.Errorf("the receiver shows more than %d certificates, or %d KiB of them", maxCertificates, maxChain>>10)
)

// newTLS makes the configuration of connections to receivers. It holds their sessions: one that a
// client certificate opened must not be resumed without it.
func newTLS(roots *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2", "http/1.1"},
		RootCAs:            roots,
		ClientSessionCache: sessions{tls.NewLRUClientSessionCache(1024)},
		VerifyConnection:   checkChain,
	}
}

// checkChain bounds the certificates that a receiver shows.
func checkChain(state tls.ConnectionState) error {
	size := 0
	for _, cert := range state.PeerCertificates {
		size += len(cert.Raw)
	}
	if len(state.PeerCertificates) > maxCertificates || size > maxChain {
		return errChainTooLarge
	}
	return nil
}

// sessions are those that can be resumed, without those whose ticket is longer than maxTicket.
type sessions struct{ tls.ClientSessionCache }

func (s sessions) Put(key string, session *tls.ClientSessionState) {
	if session != nil {
		if ticket, _, err := session.ResumptionState(); err != nil || len(ticket) > maxTicket {
			return
		}
	}
	s.ClientSessionCache.Put(key, session)
}

// noCertificate answers a receiver that asks for one when there is none.
var noCertificate = new(tls.Certificate)

// handshake makes a connection one over TLS. Our certificate is shown whatever authorities the receiver names: it was
// given for this topic, and a refusal says more than a certificate that was kept back.
func (d *dialer) handshake(ctx context.Context, conn net.Conn, host string) (*tls.Conn, error) {
	bounded, asked := &handshakeConn{Conn: conn, room: maxHandshake}, false
	config := d.tls.Clone()
	config.ServerName = host
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = true
		return cmp.Or(d.certificate, noCertificate), nil
	}
	secured := tls.Client(bounded, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, &HandshakeError{Err: err, Asked: asked}
	}
	bounded.room = -1
	return secured, nil
}

// A HandshakeError is what ended a TLS handshake with a receiver.
type HandshakeError struct {
	Err   error
	Asked bool // it had asked for a certificate
}

func (e *HandshakeError) Error() string { return e.Err.Error() }
func (e *HandshakeError) Unwrap() error { return e.Err }

// RootsWith gives the system's authorities and those of a file in PEM.
func RootsWith(file string) (*x509.CertPool, error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's authorities: %w", err)
	}
	for count := 0; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if count == 0 {
				return nil, fmt.Errorf("read authorities: %s holds no certificate in PEM", file)
			}
			return pool, nil
		}
		cert, err := certificateIn(block)
		if err != nil {
			return nil, fmt.Errorf("read authorities: %s, block %d: %w", file, count+1, err)
		}
		pool.AddCert(cert)
	}
}

// certificateIn reads a block of PEM.
func certificateIn(block *pem.Block) (*x509.Certificate, error) {
	if block.Type != "CERTIFICATE" {
		return nil, errors.New("it is no CERTIFICATE but a " + block.Type)
	}
	return x509.ParseCertificate(block.Bytes)
}
