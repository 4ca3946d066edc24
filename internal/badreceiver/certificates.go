package badreceiver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// day is the validity of certificates, and the time since the expired one ended.
const day = 24 * time.Hour

// chain is the certificates of the receivers. Each has at most one fault.
type chain struct {
	ca                                []byte // in PEM
	roots                             *x509.CertPool
	good, wrongHost, expired, unknown tls.Certificate
}

// certificates are shared by all receivers of the process.
var certificates = sync.OnceValues(func() (*chain, error) {
	trusted, err := newAuthority("receivers under test")
	if err != nil {
		return nil, err
	}
	stranger, err := newAuthority("a stranger")
	if err != nil {
		return nil, err
	}
	c := &chain{
		ca:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.cert.Raw}),
		roots: x509.NewCertPool(),
	}
	c.roots.AddCert(trusted.cert)
	now := time.Now()
	for _, want := range []struct {
		to   *tls.Certificate
		from *authority
		host string
		end  time.Time
	}{
		{&c.good, trusted, "127.0.0.1", now.Add(day)},
		{&c.wrongHost, trusted, "other.example", now.Add(day)},
		{&c.expired, trusted, "127.0.0.1", now.Add(-day)},
		{&c.unknown, stranger, "127.0.0.1", now.Add(day)},
	} {
		if *want.to, err = want.from.issue(want.host, want.end); err != nil {
			return nil, err
		}
	}
	return c, nil
})

// FullChain is the number of certificates of FullChainStalls.
const FullChain = 10

// filler is at least 200 KiB of extra certificates.
var filler = sync.OnceValue(func() [][]byte {
	stranger, err := newAuthority("filler")
	if err != nil {
		return nil
	}
	return slices.Repeat([][]byte{stranger.cert.Raw}, 1+(216<<10)/len(stranger.cert.Raw))
})

// serialAt is where the serial number of such a certificate lies: behind two sequences of up to 64 KiB, the version and
// the head of an integer.
const serialAt = 4 + 4 + 5 + 2

// unlike gives certificates other serial numbers. Clients do not check their signatures before they build a chain.
func unlike(certs [][]byte) [][]byte {
	others := make([][]byte, len(certs))
	for i, cert := range certs {
		others[i] = slices.Clone(cert)
		serial := others[i][serialAt : serialAt+8]
		_, _ = rand.Read(serial) // it never fails
		serial[0] &= 0x7f        // it stays positive
		serial[0] |= 0x40
	}
	return others
}

// makeBigChain creates filler before the receiver starts.
func makeBigChain() error {
	if filler() == nil {
		return errors.New("no certificate could be made")
	}
	return makeCertificates()
}

// Roots returns the authority of all kinds over TLS but UnknownAuthority.
func Roots(tb testing.TB) *x509.CertPool {
	tb.Helper()
	return made(tb).roots
}

// CAFile returns the path of a file with that authority's certificate in PEM. It is removed after the test.
func CAFile(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "receivers.crt")
	if err := os.WriteFile(path, made(tb).ca, 0o600); err != nil {
		tb.Fatalf("keep a certificate: %v", err)
	}
	return path
}

// makeCertificates creates certificates before the receiver starts.
func makeCertificates() error {
	_, err := certificates()
	return err
}

// made returns the certificates, or fails the test.
func made(tb testing.TB) *chain {
	tb.Helper()
	c, err := certificates()
	if err != nil {
		tb.Fatalf("make certificates: %v", err)
	}
	return c
}

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// newAuthority returns a self-signed authority.
func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("draw a key: %w", err)
	}
	blank, err := template(name, time.Now().Add(day))
	if err != nil {
		return nil, err
	}
	blank.IsCA, blank.BasicConstraintsValid, blank.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, blank, blank, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign an authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read an authority: %w", err)
	}
	return &authority{key: key, cert: cert}, nil
}

// issue returns a server certificate for a host name or address.
func (a *authority) issue(host string, end time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("draw a key: %w", err)
	}
	blank, err := template(host, end)
	if err != nil {
		return tls.Certificate{}, err
	}
	blank.KeyUsage, blank.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if ip := net.ParseIP(host); ip != nil {
		blank.IPAddresses = []net.IP{ip}
	} else {
		blank.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, blank, a.cert, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// template returns the common fields of certificates. They are valid from the past, because clocks differ.
func template(name string, end time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    end.Add(-3 * day),
		NotAfter:     end,
	}, nil
}
