package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// answers is a resolver with one answer.
type answers struct {
	addresses []string
	err       error
}

func (a answers) LookupHost(ctx context.Context, _ string) ([]string, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		panic("an unbounded lookup")
	}
	return a.addresses, a.err
}

// noSuchHost is what a resolver that works answers.
var noSuchHost = answers{err: &net.DNSError{Err: "no such host", IsNotFound: true}}

// writeFile writes a file and returns its name.
func writeFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	require.NoError(t, os.Chmod(name, mode))
	return name
}

// certificate returns a PEM file with a certificate.
func certificate(t *testing.T, from, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"},
		NotBefore: from, NotAfter: until,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	return writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o600)
}

func TestSettings_AreChecked(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	open, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = open.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	day := 24 * time.Hour
	far := certificate(t, now.Add(-day), now.Add(90*day))
	for _, c := range []struct {
		check Name
		level Level
		seen  string
		s     Settings
	}{
		{SettingsValid, OK, "are valid", Settings{}},
		{SettingsValid, Fault, "grace: 0s is not between", Settings{Err: errors.Join(errors.New("grace: 0s is not "+
			"between 1s and 1h"), errors.New("addr: no port"))}},
		{SettingsValid, Fault, "addr: no port", Settings{Err: errors.Join(errors.New("grace: 0s is not between 1s "+
			"and 1h"), errors.New("addr: no port"))}},

		{SettingsListen, OK, "for this machine " +
			"only", Settings{Addr: "127.0.0.1:8080", ServesAPI: true, Loopback: true}},
		{SettingsListen, OK, "for health and metrics only", Settings{Addr: "0.0.0.0:8080"}},
		{SettingsListen, Warn, "without TLS: tokens and bodies can be " +
			"read", Settings{Addr: "0.0.0.0:8080", ServesAPI: true, NeedsToken: true}},
		{SettingsListen, Warn, "and needs no token", Settings{Addr: "0.0.0.0:8080", ServesAPI: true}},

		{SettingsSecrets, OK, "1 files with secrets are " +
			"private", Settings{EncryptsSecrets: true, SecretFiles: []string{writeFile(t, "secret", 0o400)}}},
		{SettingsSecrets, Warn, "stored as plain text", Settings{}},
		{SettingsSecrets, Warn, "can be read by all users (mode " +
			"0644)", Settings{EncryptsSecrets: true, SecretFiles: []string{writeFile(t, "secret", 0o644)}}},
		{SettingsSecrets, Fault, "is writable by group or " +
			"others", Settings{EncryptsSecrets: true, SecretFiles: []string{writeFile(t, "secret", 0o666)}}},
		{SettingsSecrets, Fault, "is empty", Settings{
			EncryptsSecrets: true, SecretFiles: []string{writeFile(t, "", 0o600)},
		}},
		{SettingsSecrets, Fault, "is in UTF-16", Settings{SecretFiles: []string{writeFile(t, "a\x00b\x00", 0o600)}}},
		{SettingsSecrets, Fault, "no such file", Settings{
			EncryptsSecrets: true, SecretFiles: []string{"/nowhere/token"},
		}},

		{SettingsTLS, OK, "no setting names a certificate", Settings{}},
		{SettingsTLS, OK, "1 certificates, valid until 2030-04-01", Settings{Certificates: []string{far}}},
		{SettingsTLS, Warn, `of "CN=redis" expires at ` +
			`2030-01-30`, Settings{Certificates: []string{far, certificate(t, now.Add(-day), now.Add(29*day))}}},
		{SettingsTLS, Fault, "expired at 2029-12-31", Settings{
			Certificates: []string{certificate(t, now.Add(-2*day), now.Add(-day))},
		}},
		{SettingsTLS, Fault, "is not valid yet", Settings{
			Certificates: []string{certificate(t, now.Add(day), now.Add(90*day))},
		}},
		{SettingsTLS, Fault, "holds no certificate", Settings{Certificates: []string{writeFile(t, "x", 0o600)}}},
		{SettingsTLS, Fault, "is in UTF-16", Settings{Certificates: []string{writeFile(t, "-\x00-\x00", 0o600)}}},
		{SettingsTLS, Fault, "no such file", Settings{Certificates: []string{"/nowhere/ca.pem"}}},

		{SettingsProxy, OK, "use no proxy", Settings{Delivers: true}},
		{SettingsProxy, OK, "use no proxy", Settings{Proxy: closed.Addr().String(), ProxyFrom: "--proxy"}},
		{SettingsProxy, OK, "(--proxy) accepts " +
			"connections", Settings{Delivers: true, Proxy: open.Addr().String(), ProxyFrom: "--proxy"}},
		{SettingsProxy, Fault, "(from the environment) cannot be " +
			"reached", Settings{Delivers: true, Proxy: closed.Addr().String(), ProxyFrom: "from the environment"}},

		{SettingsGuard, OK, "public addresses only", Settings{Delivers: true}},
		{SettingsGuard, OK, "and 10.0.0.0/8", Settings{Delivers: true, AllowTargets: []string{"10.0.0.0/8"}}},
		{SettingsGuard, OK, "makes no requests", Settings{AllowPrivate: true}},
		{SettingsGuard, OK, "only this machine can " +
			"register", Settings{Delivers: true, AllowPrivate: true, Loopback: true}},
		{SettingsGuard, Warn, "clients of the API can reach internal " +
			"services", Settings{Delivers: true, AllowPrivate: true}},

		{SettingsDNS, OK, "calls no receivers", Settings{Resolver: answers{err: errors.New("unused")}}},
		{SettingsDNS, OK, "the resolver answers in", Settings{Delivers: true}},
		{SettingsDNS, Warn, "answers 192.0.2.1 for a name that does not " +
			"exist", Settings{Delivers: true, Resolver: answers{addresses: []string{"192.0.2.1"}}}},
		{SettingsDNS, Fault, "the resolver does not " +
			"answer", Settings{Delivers: true, Resolver: answers{err: &net.DNSError{Err: "timeout", IsTimeout: true}}}},
	} {
		if c.s.Resolver == nil {
			c.s.Resolver = noSuchHost
		}
		c.s.Now = now
		requireFinding(t, Run(t.Context(), c.s.Check()...), c.check, c.level, c.seen)
	}
}
