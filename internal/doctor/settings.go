package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/internal/fileread"
)

const (
	// certificateWarn is how long before its end a certificate is reported.
	certificateWarn = 30 * 24 * time.Hour
	dialTimeout     = 2 * time.Second
	lookupTimeout   = 5 * time.Second
)

// missingHost is a name that no resolver may know (RFC 6761): one that works says so.
const missingHost = "ringback-doctor.invalid."

// A Resolver looks up host names, as a net.Resolver does.
type Resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// Settings are what the checks of settings look at.
type Settings struct {
	// Err is why the service refuses the settings, joined; nil: it accepts them.
	Err error
	// Addr is the address of the API. ServesAPI says whether it serves more than its health, Loopback whether other
	// machines can reach it, and NeedsToken whether it asks for a token.
	Addr                            string
	ServesAPI, Loopback, NeedsToken bool
	// Delivers says whether the process makes requests.
	Delivers bool
	// SecretFiles are files with tokens and keys.
	SecretFiles []string
	// EncryptsSecrets says whether there is a secret key.
	EncryptsSecrets bool
	// Certificates are PEM files that are trusted or shown to others.
	Certificates []string
	// Proxy is the host:port of the forward proxy, if ProxyFrom is not empty; ProxyFrom says where it is set.
	Proxy, ProxyFrom string
	// AllowPrivate lets jobs call private networks; AllowTargets are exceptions.
	AllowPrivate bool
	AllowTargets []string
	// Resolver is the one of deliveries; nil: net.DefaultResolver.
	Resolver Resolver
	Now      time.Time
}

// Check returns the checks of the settings: two, as names are looked up beside.
func (s Settings) Check() []Check {
	return []Check{{
		Subject: "settings",
		Names:   []Name{SettingsValid, SettingsListen, SettingsSecrets, SettingsTLS, SettingsProxy, SettingsGuard},
		Run: func(ctx context.Context) ([]Finding, error) {
			return slices.Concat(SettingsValid.of(s.checkValid()...), SettingsListen.of(s.checkListen()),
				SettingsSecrets.of(s.checkSecrets()...), SettingsTLS.of(s.checkCertificates()...),
				SettingsProxy.of(s.checkProxy(ctx)), SettingsGuard.of(s.checkGuard())), nil
		},
	}, {
		Subject: "settings", Names: []Name{SettingsDNS},
		Run: func(ctx context.Context) ([]Finding, error) { return SettingsDNS.of(s.checkDNS(ctx)), nil },
	}}
}

// checkValid returns a finding for each fault of the settings.
func (s Settings) checkValid() (found []Finding) {
	if s.Err == nil {
		return []Finding{good("the settings are valid")}
	}
	for line := range strings.Lines(s.Err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			found = append(found,
				fault("Correct the setting: ringback serve refuses to start with it.", "%s", line))
		}
	}
	return found
}

func (s Settings) checkListen() Finding {
	switch {
	case s.Loopback:
		return good("%s, for this machine only", s.Addr)
	case !s.ServesAPI:
		return good("%s, for health and metrics only", s.Addr)
	case !s.NeedsToken:
		return warn("Set RINGBACK_TOKEN or --token-file, unless a proxy in front of every client asks for credentials.",
			"%s is reachable from other machines without TLS, and needs no token", s.Addr)
	}
	return warn("Let only a proxy with TLS reach the port, or only networks that you trust.",
		"%s is reachable from other machines without TLS: tokens and bodies can be read on the way", s.Addr)
}

// checkSecrets looks at who can read the files with secrets, and whether stored secrets are encrypted.
func (s Settings) checkSecrets() (found []Finding) {
	for _, name := range s.SecretFiles {
		_, mode, err := fileread.ReadSecret(name)
		switch {
		case err != nil:
			found = append(found, fault("Let the user of the service read the file, and nobody else write it.", "%v",
				err))
		case fileread.IsPublic(mode):
			found = append(found, warn("chmod o-r the file.", "%s can be read by all users (mode %04o)", name, mode))
		}
	}
	if !s.EncryptsSecrets {
		found = append(found, warn("Set RINGBACK_SECRET_KEY or --secret-key-file (docs/secret-key.md).",
			"there is no secret key: signing secrets and secret headers are stored as plain text"))
	}
	if len(found) == 0 {
		found = append(found, good("stored secrets are encrypted, %d files with secrets are private",
			len(s.SecretFiles)))
	}
	return found
}

// checkCertificates looks at the validity of the certificates in files.
func (s Settings) checkCertificates() (found []Finding) {
	var first time.Time
	count := 0
	for _, name := range s.Certificates {
		certificates, err := readCertificates(name)
		if err != nil {
			found = append(found, fault("Correct the file, or the setting that names it.", "%v", err))
		}
		for _, c := range certificates {
			count++
			if first.IsZero() || c.NotAfter.Before(first) {
				first = c.NotAfter
			}
			if f, ok := judgeCertificate(name, c, s.Now); !ok {
				found = append(found, f)
			}
		}
	}
	switch {
	case len(found) > 0:
		return found
	case count == 0:
		return []Finding{good("no setting names a certificate")}
	}
	return []Finding{good("%d certificates, valid until %s or longer", count, first.UTC().Format(time.DateOnly))}
}

// judgeCertificate returns a finding if a certificate is not valid, or not for long.
func judgeCertificate(where string, c *x509.Certificate, now time.Time) (f Finding, ok bool) {
	subject := c.Subject.String()
	switch until := c.NotAfter.UTC().Format(time.DateTime); {
	case now.After(c.NotAfter):
		return fault("Renew it.", "%s: the certificate of %q expired at %s", where, subject, until), false
	case now.Before(c.NotBefore):
		return fault("Set the clock, or get another certificate.", "%s: the certificate of %q is not valid yet", where,
			subject), false
	case c.NotAfter.Sub(now) < certificateWarn:
		return warn("Renew it.", "%s: the certificate of %q expires at %s", where, subject, until), false
	}
	return Finding{}, true
}

// readCertificates reads the certificates of a PEM file.
func readCertificates(name string) (all []*x509.Certificate, err error) {
	text, err := fileread.ReadPEM(name)
	if err != nil {
		return nil, err // it names the file
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no certificate", name)
	}
	return all, nil
}

// checkProxy connects to the proxy.
func (s Settings) checkProxy(ctx context.Context) Finding {
	if s.ProxyFrom == "" || !s.Delivers {
		return good("deliveries use no proxy")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Proxy)
	if err != nil {
		return fault("Start the proxy, correct its address, or use --proxy none: no delivery passes.",
			"the proxy %s (%s) cannot be reached: %v", s.Proxy, s.ProxyFrom, err)
	}
	_ = conn.Close() // nothing was sent
	return good("%s (%s) accepts connections", s.Proxy, s.ProxyFrom)
}

func (s Settings) checkGuard() Finding {
	switch {
	case !s.Delivers:
		return good("this process makes no requests")
	case s.AllowPrivate && !s.Loopback:
		return warn("Use --allow-targets with the networks and names that jobs need, instead of --allow-private.",
			"jobs may call every private network and this machine: clients of the API can reach internal services "+
				"with them")
	case s.AllowPrivate:
		return good("jobs may call private networks and this machine; only this machine can register jobs")
	case len(s.AllowTargets) > 0:
		return good("jobs may call public addresses, and %s", strings.Join(s.AllowTargets, ", "))
	}
	return good("jobs may call public addresses only")
}

// checkDNS looks up a name that does not exist.
func (s Settings) checkDNS(ctx context.Context) Finding {
	if !s.Delivers {
		return good("this process calls no receivers")
	}
	resolver := s.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	began := time.Now()
	addresses, err := resolver.LookupHost(ctx, missingHost)
	missing, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case err == nil:
		return warn("Use another resolver: with this one jobs with a misspelt host are sent to an address that is "+
			"not theirs.", "the resolver answers %s for a name that does not exist", strings.Join(addresses, ", "))
	case isDNS && missing.IsNotFound:
		return good("the resolver answers in %s", time.Since(began).Round(time.Millisecond))
	}
	return fault("Correct /etc/resolv.conf or the container's DNS: jobs whose URL has a host name cannot be delivered.",
		"the resolver does not answer: %v", err)
}
