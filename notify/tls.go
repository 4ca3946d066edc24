package notify

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

// newTLS is what every connection to a receiver is made with. Sessions are kept by whoever holds the result: one that a
// client certificate opened must not be resumed without it.
func newTLS(roots *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2", "http/1.1"},
		RootCAs:            roots,
		ClientSessionCache: tls.NewLRUClientSessionCache(1024),
	}
}

// noCertificate answers a receiver that asks for one when there is none.
var noCertificate = new(tls.Certificate)

// shakeHands makes a connection one over TLS. Our certificate is shown whatever authorities the receiver names: it was
// given for this topic, and a refusal says more than a certificate that was kept back.
func (d *dialer) shakeHands(ctx context.Context, conn net.Conn, host string) (*tls.Conn, error) {
	patient := newPatientConn(conn)
	config := d.tls.Clone()
	config.ServerName = host
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		patient.asked.Store(true)
		return cmp.Or(d.certificate, noCertificate), nil
	}
	secured := tls.Client(patient, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, &handshakeError{err: err, asked: patient.asked.Load()}
	}
	return secured, nil
}

// A handshakeError is what ended a TLS handshake with a receiver.
type handshakeError struct {
	err   error
	asked bool // it had asked for a certificate
}

func (e *handshakeError) Error() string { return e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

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
