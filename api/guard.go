// This part of the package decides which requests the API serves and whose they are: requests with a token, to a name
// of this server, and from no page of another origin. Requests that Ringback makes for a job are never served. What a
// token may do is decided by the package access of the module.

package api

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
)

// attemptHeader is in every request that Ringback sends for a job. Jobs cannot set or remove it.
const attemptHeader = "Ringback-Attempt"

// fromAttempt reports whether a request carries attemptHeader, in any spelling.
func fromAttempt(header http.Header) bool {
	for name := range header {
		if job.SameHeader(name, attemptHeader) {
			return true
		}
	}
	return false
}

// AccessOptions configure a Guard and an Authenticator.
type AccessOptions struct {
	// Tokens are root tokens. Empty: requests without a token are the root's.
	Tokens []logs.Secret
	// MetricsTokens are tokens that only read /metrics, and require it or a root token there. Empty: it needs none.
	MetricsTokens []logs.Secret
	// WatchTokens and WatchMetricsTokens register a function that replaces these tokens with others while requests are
	// served, never by none. Nil: they stay.
	WatchTokens, WatchMetricsTokens func(replace func([]logs.Secret))
	// Loopback serves only requests to localhost, a loopback address or one of Hosts, which prevents DNS rebinding. For
	// listeners on loopback.
	Loopback bool
	// CheckHost does the same for other listeners, and allows any address. For listeners without a token.
	CheckHost bool
	// Hosts are more names, without a port, that Loopback and CheckHost allow.
	Hosts []string
}

// guard refuses, in this order: requests of jobs, requests to a foreign host name (see Options) and cross-origin
// requests. Refusals are logged, at most one a second.
//
// A job that could call an API could register jobs. The sender does not dial its own process's listener. attemptHeader
// identifies requests that come another way: from another process, a published port, address translation or a load
// balancer.
type guard struct {
	AccessOptions
	next   http.Handler
	origin http.CrossOriginProtection

	refused logs.Limited
}

// Guard returns a handler that passes on to next what it does not refuse.
func Guard(next http.Handler, o AccessOptions, log *slog.Logger) http.Handler {
	hosts := make([]string, len(o.Hosts))
	for i, host := range o.Hosts {
		hosts[i] = normalize(host)
	}
	o.Hosts = hosts
	return &guard{AccessOptions: o, next: next, refused: logs.Limited{Logger: log}}
}

// ServeHTTP serves or refuses a request.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case fromAttempt(r.Header):
		g.forbid(w, r, "a job cannot call the API")
	case g.Loopback && !toLoopback(r.Host) && !g.isAllowedHost(r.Host):
		g.forbid(w, r, "this server listens on loopback and serves requests to localhost, 127.0.0.1, [::1] and the "+
			"names in --allowed-hosts only")
	case g.CheckHost && !g.Loopback && !toAddress(r.Host) && !g.isAllowedHost(r.Host):
		g.forbid(w, r, "this server needs no token and serves requests to addresses, localhost and the names in "+
			"--allowed-hosts only")
	case g.origin.Check(r) != nil:
		g.forbid(w, r, "cross-origin requests are refused: a proxy must forward the header Host")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// forbid answers 403: people at the console with a sentence.
func (g *guard) forbid(w http.ResponseWriter, r *http.Request, reason string) {
	g.refused.Warn("request refused", requestAttrs(r, "host", cut(r.Host), "reason", reason)...)
	closeUnread(w, r)
	if strings.HasPrefix(r.URL.Path, "/console/") {
		http.Error(w, strings.ToUpper(reason[:1])+reason[1:]+".", http.StatusForbidden)
		return
	}
	response.NewProblem(response.Forbidden, reason).Write(w)
}

// closeUnread makes net/http close the connection instead of reading the rest of a refused request.
func closeUnread(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
	}
}

// requestAttrs are the log attributes of a request. They contain no secrets.
func requestAttrs(r *http.Request, more ...any) []any {
	return append([]any{"remote", r.RemoteAddr, "method", cut(r.Method), "path", cut(r.URL.Path)}, more...)
}

// cut bounds a client's text in logs.
func cut(text string) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// isAllowedHost reports whether a Host is in Options.Hosts.
func (g *guard) isAllowedHost(host string) bool {
	return slices.Contains(g.Hosts, normalize(hostOf(host)))
}

// toLoopback reports whether a Host is localhost or a loopback address, with any port. No foreign DNS server can serve
// a page under these.
func toLoopback(host string) bool {
	name := hostOf(host)
	ip, ok := addressOf(name)
	return ok && ip.Unmap().IsLoopback() || isLocalhost(name)
}

// toAddress reports whether a Host is localhost or an address.
func toAddress(host string) bool {
	name := hostOf(host)
	_, ok := addressOf(name)
	return ok || isLocalhost(name)
}

func isLocalhost(name string) bool { return normalize(name) == "localhost" }

// normalize returns a host name in lower case, without the dot at its end.
func normalize(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// addressOf parses a host that is an address.
func addressOf(name string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	return ip, err == nil
}

// hostOf returns a Host without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
