package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// A Token is what a client must show. Whatever prints it gets [redacted].
type Token string

// String hides the token.
func (t Token) String() string {
	if t == "" {
		return ""
	}
	return response.Redacted
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

// fromAttempt reports whether a request carries attemptHeader, also as something in between may have spelled it.
func fromAttempt(header http.Header) bool {
	for name := range header {
		if job.SameHeader(name, attemptHeader) {
			return true
		}
	}
	return false
}

// guard decides who is served at all. It refuses, in this order: requests that a job makes, requests to a foreign host
// name (where no token keeps web pages out, see Options), requests that a web page of another origin
// makes, requests under /v1 without the token. What it refuses is logged, a line a second at most.
//
// A job that could call an API could register jobs, whoever may reach that API. The sender does not dial its own
// process's listener; the header is how a request is known that came by another way: from another process, or through
// a published port, an address translation or a load balancer.
type guard struct {
	next       http.Handler
	loopback   bool
	checkHost  bool
	hosts      []string // in small letters
	origin     http.CrossOriginProtection
	needsToken bool
	token      [sha256.Size]byte

	unauthorized, refused limitedLog
}

// ServeHTTP serves or refuses.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case fromAttempt(r.Header):
		g.forbid(w, r, "a job cannot call the API")
	case g.loopback && !toLoopback(r.Host) && !g.isAllowedHost(r.Host):
		g.forbid(w, r, "this server listens on loopback and serves requests to localhost, 127.0.0.1, [::1] and the names in --allowed-hosts only")
	case g.checkHost && !g.loopback && !toAddress(r.Host) && !g.isAllowedHost(r.Host):
		g.forbid(w, r, "this server needs no token and serves requests to addresses, localhost and the names in --allowed-hosts only")
	case g.origin.Check(r) != nil:
		g.forbid(w, r, "cross-origin requests are refused")
	case g.needsToken && strings.HasPrefix(r.URL.Path, "/v1/") && !g.hasToken(r):
		reason := "missing token"
		if len(r.Header.Values("Authorization")) > 0 {
			reason = "wrong token"
		}
		g.unauthorized.warn("authentication failed", requestAttrs(r, "reason", reason)...)
		closeUnread(w, r)
		w.Header().Set("WWW-Authenticate", `Bearer realm="ringback"`)
		response.NewProblem(http.StatusUnauthorized, "send the header Authorization: Bearer <token>").Write(w)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// forbid refuses a request for a reason.
func (g *guard) forbid(w http.ResponseWriter, r *http.Request, reason string) {
	g.refused.warn("request refused", requestAttrs(r, "host", cut(r.Host), "reason", reason)...)
	closeUnread(w, r)
	response.NewProblem(http.StatusForbidden, reason).Write(w)
}

// closeUnread has net/http close the connection rather than read the content of a request that is refused: a client
// without access must not keep the server reading.
func closeUnread(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		w.Header()["Connection"] = closeIt
	}
}

// requestAttrs is what a log line tells of a request: nothing that may hold a secret.
func requestAttrs(r *http.Request, more ...any) []any {
	return append([]any{"remote", r.RemoteAddr, "method", cut(r.Method), "path", cut(r.URL.Path)}, more...)
}

// cut bounds what of a client's text gets into the log.
func cut(text string) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// isAllowedHost reports whether a Host is one of the names that are allowed.
func (g *guard) isAllowedHost(host string) bool {
	return slices.Contains(g.hosts, strings.ToLower(strings.TrimSuffix(hostOf(host), ".")))
}

// hasToken reports whether the request carries the token.
func (g *guard) hasToken(r *http.Request) bool {
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
	name := hostOf(host)
	ip, ok := addressOf(name)
	return ok && ip.Unmap().IsLoopback() || isLocalhost(name)
}

// toAddress reports whether a Host is localhost or any address, which no foreign name server decides over.
func toAddress(host string) bool {
	name := hostOf(host)
	_, ok := addressOf(name)
	return ok || isLocalhost(name)
}

func isLocalhost(name string) bool {
	return strings.EqualFold(strings.TrimSuffix(name, "."), "localhost")
}

// addressOf reads a name that is an address.
func addressOf(name string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	return ip, err == nil
}

// hostOf is a Host without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
