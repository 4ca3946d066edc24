package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A TLSServer is a server with TLS on its only port that requires client certificates. The files are PEM.
type TLSServer struct {
	*Server
	// file of the authority that signed the server's certificate ("127.0.0.1", "localhost") and the client's
	CA   string
	Cert string // file of a client's certificate
	Key  string // file of its key
}

// StartTLS is Start for a server with TLS. The authority and the certificates are new and valid for a day.
func StartTLS(tb testing.TB, args ...string) *TLSServer {
	tb.Helper()
	s := newServer(tb, args)
	a := newAuthority(tb, s.dir)
	ca := a.write("ca.crt", "CERTIFICATE", a.cert.Raw)
	serverCert, serverKey := a.issue("server", x509.ExtKeyUsageServerAuth)
	clientCert, clientKey := a.issue("client", x509.ExtKeyUsageClientAuth)
	pair, err := tls.LoadX509KeyPair(clientCert, clientKey)
	if err != nil {
		tb.Fatalf("read a certificate: %v", err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(a.cert)

	s.url = func() string { return "rediss://" + s.Addr() }
	s.options = func() *redis.Options {
		config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted, Certificates: []tls.Certificate{pair}}
		return &redis.Options{Addr: s.Addr(), Password: password(args), TLSConfig: config}
	}
	s.command = func() []string {
		command := append(s.settings(), "--tls-port", s.settings()[1], "--port", "0", "--tls-auth-clients", "yes")
		command = append(command, "--tls-ca-cert-file", ca, "--tls-cert-file", serverCert, "--tls-key-file", serverKey)
		return append(command, args...)
	}
	s.launch()
	return &TLSServer{Server: s, CA: ca, Cert: clientCert, Key: clientKey}
}

// authority signs certificates and writes them to a folder.
type authority struct {
	tb   testing.TB
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// newAuthority returns a self-signed authority.
func newAuthority(tb testing.TB, dir string) *authority {
	tb.Helper()
	a := &authority{tb: tb, dir: dir, key: newKey(tb)}
	template := a.template("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert = a.sign(template, template, a.key)
	return a
}

// issue writes a certificate for a usage, and its key.
func (a *authority) issue(name string, use x509.ExtKeyUsage) (certFile, keyFile string) {
	a.tb.Helper()
	key := newKey(a.tb)
	template := a.template(name)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{use}
	if use == x509.ExtKeyUsageServerAuth {
		template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	cert := a.sign(template, a.cert, key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatalf("encode a key: %v", err)
	}
	return a.write(name+".crt", "CERTIFICATE", cert.Raw), a.write(name+".key", "PRIVATE KEY", der)
}

// template returns the common fields of certificates. They are valid from the past, because clocks differ.
func (a *authority) template(name string) *x509.Certificate {
	a.tb.Helper()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		a.tb.Fatalf("draw a serial number: %v", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

// sign signs a template for a key.
func (a *authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		a.tb.Fatalf("sign a certificate: %v", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.tb.Fatalf("read a certificate: %v", err)
	}
	return cert
}

// write writes a PEM file.
func (a *authority) write(name, kind string, der []byte) string {
	a.tb.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.tb.Fatalf("keep a certificate or key: %v", err)
	}
	return path
}

// newKey generates a key.
func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatalf("draw a key: %v", err)
	}
	return key
}
