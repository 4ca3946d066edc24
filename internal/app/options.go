package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/console/settingspages"
	"github.com/ringback/ringback/console/trypage"
	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/dispatcher/tracing"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/notify/guard"
	"github.com/ringback/ringback/store/redis/connect"
)

// Options configures an App. A field's zero value means its default.
type Options struct {
	// Addr is the API's host:port; port 0 takes a free one. Default: 127.0.0.1:8080.
	Addr string
	// Store is sqlite:FILE, or a Redis URL as connect.ParseAddress parses it. Or it is several, each NAME=URL,
	// separated by white space; one of them is named main, or has no name. Default: sqlite:ringback.db.
	Store string
	// Shards is the number of shards of Redis stores, 1 to 256, fixed at the first use of each. Zero: the store's
	// number; for a new store 1, on a cluster 16.
	Shards Shards
	// RedisPrefix is the prefix of every Redis key on all stores, so that installations can share a Redis; 1 to 64 of
	// A-Z a-z 0-9 . _ -. Default: rb.
	RedisPrefix string
	// RedisWait is the durability that an API write waits for, beyond execution by the primary. Default: none.
	RedisWait RedisWait
	// Roles are the roles of this process, in any order. Default: RoleAPI and RoleWorker. A SQLite store needs both.
	Roles Roles
	// AllowPrivate lets jobs call loopback and private networks, never link-local ones, metadata services or the API.
	AllowPrivate bool
	// AllowTargets are networks, addresses and host names that jobs may call although they are not public. DenyTargets
	// are never called and take precedence over every other setting. See guard.ParseTargets.
	AllowTargets []string
	DenyTargets  []string
	// Proxy is the forward proxy for deliveries, http:// or https://; ProxyNone disables it. Default: from HTTPS_PROXY,
	// HTTP_PROXY and NO_PROXY.
	Proxy ProxyURL
	// CAFile is a PEM file of certificate authorities that are trusted for receivers, in addition to the system's. It
	// is read again when it changes, as are the files that Store names for TLS.
	CAFile string
	// AllowedHosts are Host names, without a port, that requests may carry on loopback or with NoAuth, in addition to
	// localhost and the name in Addr. On loopback its addresses are allowed, with NoAuth all addresses.
	AllowedHosts []string
	// SecretKey encrypts stored signing secrets and secret headers: one key or several, see seal.ParseKeys.
	// Default: they are stored as plain text.
	SecretKey Secret
	// SecretKeyFrom names the source of SecretKey in errors. Default: RINGBACK_SECRET_KEY.
	SecretKeyFrom string
	// DeclaredTopics rejects jobs of topics that have no stored policy.
	DeclaredTopics bool
	// MaxBody is the largest body of a job in bytes, 1 B to 10 MiB. Default: 256 KiB.
	MaxBody int64
	// Grace bounds the shutdown, 1 s to 1 h. Attempts in flight end within it, less 5 s. Default: 30 s.
	Grace time.Duration
	// Drain is how long the API still serves after Run's context has ended, while /readyz already fails, so that load
	// balancers notice. At most the time that attempts in flight get: the grace less 5 s (half of a grace under 10 s).
	// A process without RoleAPI does not drain. Default: zero, the API's port closes at once.
	Drain time.Duration
	// Token is the root token, or several for rotation, one a line. Empty: requests without a token are served, allowed
	// only on loopback, without RoleAPI, or with NoAuth.
	Token Secret
	// TokenFile is the file that Token was read from, which is read again when it changes. Default: Token stays.
	TokenFile string
	// MetricsToken is the token that /metrics requires, or several, one a line. Empty: it needs none.
	MetricsToken Secret
	// MetricsTokenFile is to MetricsToken what TokenFile is to Token.
	MetricsTokenFile string
	// NoAuth accepts requests without a token beyond loopback. It cannot be combined with Token.
	NoAuth bool
	// NoConsole leaves out the web console, which a process with RoleAPI serves at /console/.
	NoConsole bool
	// InForce are the settings in force, which the console shows to the root. Secrets are not their values. Default:
	// they are not known.
	InForce []Setting
	// Inbox is a receiver in the same process, which the console shows to the root. Default: none.
	Inbox Inbox `json:"-"`
	// SecretFiles are the files that tokens and keys were read from. The doctor checks who can read them.
	SecretFiles []string
	// Logger receives the log. Default: none.
	Logger *slog.Logger
	// LogDropped returns the number of dropped log lines, for the metrics; nil: always zero.
	LogDropped func() uint64 `json:"-"`
	// TracerProvider makes the spans of registrations and attempts, whose traces jobs carry. It is not shut down.
	// Default: none are made.
	TracerProvider tracing.Provider `json:"-"`
	// Version is reported by the API and in the User-Agent of deliveries. Default: dev.
	Version string
}

// RedisWait is the durability that an API write waits for. Its text is replicas=N, fsync and timeout=D, separated by
// commas.
type RedisWait = connect.Wait

// Setting is a setting in force, and where it comes from.
type Setting = settingspages.Setting

// Inbox is a receiver to try things out with.
type Inbox = trypage.Inbox

// Secret is a root token of the API, or the keys that encrypt stored secrets. It prints as [redacted].
type Secret = logs.Secret

// Defaults and bounds of the options.
const (
	DefaultAddr    = "127.0.0.1:8080"
	DefaultStore   = "sqlite:ringback.db"
	DefaultMaxBody = 256 << 10
	DefaultGrace   = 30 * time.Second

	MaxMaxBody = 10 << 20
	// MinToken is the smallest length of a root token in characters, and MaxTokens the largest number of them.
	MinToken  = 16
	MaxTokens = 16

	MinGrace = time.Second
	MaxGrace = time.Hour
)

// withDefaults returns the options with defaults filled in.
func (o Options) withDefaults() Options {
	o.Addr = cmp.Or(o.Addr, DefaultAddr)
	o.Store = cmp.Or(o.Store, DefaultStore)
	o.MaxBody = cmp.Or(o.MaxBody, DefaultMaxBody)
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.Version = cmp.Or(o.Version, "dev")
	if len(o.Roles) == 0 {
		o.Roles = []Role{RoleAPI, RoleWorker}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate returns all problems of the options, joined. Each starts with the name of the setting.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if host, err := splitAddr(o.Addr); err != nil {
		problem("addr: %w", err)
	} else if !loopback(host) && o.Token == "" && !o.NoAuth && o.has(RoleAPI) {
		problem("addr: %s is reachable from other machines: set RINGBACK_TOKEN or --token-file, or pass --no-auth",
			o.Addr)
	}
	if o.Token != "" && o.NoAuth {
		problem("no-auth: cannot be combined with a token")
	}
	errs = append(errs, checkTokens("token", o.Token), checkTokens("metrics token", o.MetricsToken))
	for _, name := range o.AllowedHosts {
		if _, hosts, err := guard.ParseTargets([]string{name}); err != nil || len(hosts) == 0 ||
			strings.HasPrefix(hosts[0], "*") {
			problem("allowed-hosts: %q is not a host name such as ringback.internal", name)
		}
	}
	errs = append(errs, o.checkStores()...)
	if err := o.checkRoles(); err != nil {
		errs = append(errs, err)
	}
	if _, _, err := guard.ParseTargets(o.AllowTargets); err != nil {
		problem("allow-targets: %w", err)
	}
	if _, _, err := guard.ParseTargets(o.DenyTargets); err != nil {
		problem("deny-targets: %w", err)
	}
	if _, err := o.Proxy.parse(); err != nil {
		problem("proxy: %w", err)
	}
	if _, err := seal.ParseKeys(string(o.SecretKey)); err != nil {
		problem("%s: %w", cmp.Or(o.SecretKeyFrom, seal.Setting), err)
	}
	if o.MaxBody < 1 || o.MaxBody > MaxMaxBody {
		problem("max-body: %d B is not between 1 B and %d B", o.MaxBody, MaxMaxBody)
	}
	if o.Grace < MinGrace || o.Grace > MaxGrace {
		problem("grace: %s is not between %s and %s", o.Grace, MinGrace, MaxGrace)
	} else if o.Drain < 0 || o.Drain > o.workTime() {
		problem("drain: %s is not between 0s and %s, the grace of %s less the time for settling",
			o.Drain, o.workTime(), o.Grace)
	}
	return errors.Join(errs...)
}

// checkTokens validates tokens, one a line.
func checkTokens(what string, text Secret) error {
	tokens := linesOf(text)
	switch {
	case len(tokens) > MaxTokens:
		return fmt.Errorf("%s: must have at most %d lines", what, MaxTokens)
	case text != "" && len(tokens) == 0:
		return fmt.Errorf("%s: is blank", what)
	}
	for _, token := range tokens {
		if strings.ContainsFunc(string(token), func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%s: must be visible ASCII without spaces, one token a line", what)
		} else if len(token) < MinToken {
			return fmt.Errorf("%s: must have at least %d characters: generate one with openssl rand -hex 32", what,
				MinToken)
		}
	}
	return nil
}

// RootTokens returns the lines of Token.
func (o Options) RootTokens() []Secret { return linesOf(o.Token) }

func linesOf(text Secret) []Secret {
	var all []Secret
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, Secret(line))
		}
	}
	return all
}

// workTime is the part of the grace in which attempts and requests in flight may end. The rest is for settling.
func (o Options) workTime() time.Duration { return max(o.Grace-settleTime, o.Grace/2) }

// splitAddr validates a host:port to listen on and returns its host.
func splitAddr(addr string) (host string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("%q is not host:port", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q is not a port", port)
	}
	return host, nil
}

// loopback reports whether host is localhost or a loopback address. Other names are not resolved.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
