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

	"github.com/ringback/ringback/internal/fileread"
)

// Bounds of a TLS handshake. Certificates stay in memory as long as their connection or its session. Parsed, they take
// up to ten times their size.
const (
	maxHandshake    = 32 << 10 // bytes from the receiver
	maxCertificates = 10       // of the receiver
	maxChain        = 16 << 10 // bytes of its certificates
	maxTicket       = 4 << 10  // bytes of a session ticket; longer ones are not kept
)

// Errors of handshakes beyond these bounds.
var (
	errHandshakeTooLarge = fmt.Errorf("the receiver sent more than the %d KiB that are read of a handshake",
		maxHandshake>>10)
	errChainTooLarge = fmt.Errorf("the receiver shows more than %d certificates, or %d KiB of them",
		maxCertificates, maxChain>>10)
)

// newTLS returns the configuration of connections to receivers, but for the authorities, with its session cache: a
// session that a client certificate opened must not be resumed without it.
func newTLS() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2", "http/1.1"},
		ClientSessionCache: sessions{tls.NewLRUClientSessionCache(1024)},
		VerifyConnection:   checkChain,
	}
}

// checkChain bounds a receiver's certificates.
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

// sessions caches TLS sessions whose ticket has at most maxTicket bytes.
type sessions struct{ tls.ClientSessionCache }

func (s sessions) Put(key string, session *tls.ClientSessionState) {
	if session != nil {
		if ticket, _, err := session.ResumptionState(); err != nil || len(ticket) > maxTicket {
			return
		}
	}
	s.ClientSessionCache.Put(key, session)
}

// noCertificate is the response to a certificate request without a certificate.
var noCertificate = new(tls.Certificate)

// handshake makes a TLS handshake. It presents our certificate whatever authorities the receiver names: it was
// configured for this topic, and a refusal is clearer than a missing certificate.
func (d *dialer) handshake(ctx context.Context, dial *dialRecord, conn net.Conn, host string) (*tls.Conn, error) {
	bounded, asked := &handshakeConn{Conn: conn, room: maxHandshake, dialled: dial}, false
	config := d.tls.Clone()
	// A session is not resumed if its authority is not among the roots any more.
	config.ServerName, config.RootCAs = host, d.roots.Load()
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

// A HandshakeError is the error of a TLS handshake with a receiver.
type HandshakeError struct {
	Err   error
	Asked bool // it had requested a certificate
}

func (e *HandshakeError) Error() string { return e.Err.Error() }
func (e *HandshakeError) Unwrap() error { return e.Err }

// RootsWith returns the system's authorities and those of a PEM file.
func RootsWith(file string) (*x509.CertPool, error) {
	rest, err := fileread.ReadPEM(file)
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

// certificateIn parses a PEM block.
func certificateIn(block *pem.Block) (*x509.Certificate, error) {
	if block.Type != "CERTIFICATE" {
		return nil, errors.New("it is no CERTIFICATE but a " + block.Type)
	}
	return x509.ParseCertificate(block.Bytes)
}
