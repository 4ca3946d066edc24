package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ringback/ringback/job"
)

// A Token is what a client must show. Whatever prints it gets [redacted].
type Token string

// String hides the token.
func (t Token) String() string {
	if t == "" {
		return ""
	}
	return redacted
}

// GoString hides the token from %#v.
func (t Token) GoString() string { return `"` + t.String() + `"` }

// LogValue hides the token from logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText hides the token from encodings.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// sum makes tokens of any length comparable in constant time.
func (t Token) sum() [sha256.Size]byte { return sha256.Sum256([]byte(t)) }

// attemptHeader is on every request that a Ringback sends for a job. Jobs can neither set nor drop it.
const attemptHeader = "Ringback-Attempt"

// ofAnAttempt reports whether a request carries attemptHeader, also as something in between may have spelled it.
func ofAnAttempt(header http.Header) bool {
	for name := range header {
		if job.SameHeader(name, attemptHeader) {
			return true
		}
	}
	return false
}

// guard decides who is served at all. It refuses, in this order: requests that a job makes, requests to a foreign host
// name (on loopback), requests that a web page of another origin makes, requests under /v1 without the token.
//
// A job that could call an API could register jobs, whoever may reach that API. The sender does not dial its own
// process's listener; the header is how a request is known that came by another way: from another process, or through
// a published port, an address translation or a load balancer.
type guard struct {
	next     http.Handler
	loopback bool
	origin   http.CrossOriginProtection
	guarded  bool
	token    [sha256.Size]byte
}

// ServeHTTP serves or refuses.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case ofAnAttempt(r.Header):
		refuse(http.StatusForbidden, "a job cannot call the API").write(w)
	case g.loopback && !toLoopback(r.Host):
		refuse(http.StatusForbidden,
			"this server listens on loopback and serves requests to localhost, 127.0.0.1 or [::1] only").write(w)
	case g.origin.Check(r) != nil:
		refuse(http.StatusForbidden, "web pages of other origins are not served").write(w)
	case g.guarded && strings.HasPrefix(r.URL.Path, "/v1/") && !g.shown(r):
		w.Header().Set("WWW-Authenticate", `Bearer realm="ringback"`)
		refuse(http.StatusUnauthorized, "send the header Authorization: Bearer <token>").write(w)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// shown reports whether the request carries the token.
func (g *guard) shown(r *http.Request) bool {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	sum := Token(strings.TrimSpace(token)).sum()
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// toLoopback reports whether a Host names this machine: localhost or a loopback address, which no web page can be
// served under by a foreign name server. The port does not matter.
func toLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap().IsLoopback()
}
