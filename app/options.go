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

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/guard"
	"github.com/ringback/ringback/seal"
	"github.com/ringback/ringback/store/redis"
)

// Options say how Ringback runs. The zero value of a field takes its default.
type Options struct {
	// Addr is the API's host:port; port 0 takes a free one. Default: 127.0.0.1:8080.
	Addr string
	// Store says where jobs are kept: sqlite:FILE, or a Redis as redis.ParseAddress reads it. Default: sqlite:ringback.db.
	Store string
	// Shards is the number of parts of a Redis store, 1 to 256, fixed at its first use; zero: what the store has, else 1,
	// on a cluster 16.
	Shards int
	// RedisPrefix begins every key in Redis, so that installations can share one; 1 to 64 of A-Z a-z 0-9 . _ -.
	// Default: rb.
	RedisPrefix string
	// RedisWait is for what answers to changes wait, beyond Redis having taken them. Default: nothing.
	RedisWait RedisWait
	// Roles are what this process does, RoleAPI and RoleWorker in any order. Default: both. A SQLite store needs both.
	Roles []Role
	// AllowPrivate lets jobs call loopback and private networks, never link-local ones, metadata services or the API.
	AllowPrivate bool
	// AllowTargets are networks, addresses and names of hosts that jobs may call although they are not public; DenyTargets
	// those that they may not call whatever else admits them. See guard.ParseTargets.
	AllowTargets []string
	DenyTargets  []string
	// Proxy is the forward proxy through which targets are called, http:// or https://; ProxyNone: none. Default: what
	// HTTPS_PROXY, HTTP_PROXY and NO_PROXY say.
	Proxy ProxyURL
	// CAFile holds authorities, in PEM, that receivers' certificates may come from beside the system's.
	CAFile string
	// AllowedHosts are names, without a port, under which the API is reached on loopback or with NoAuth, beside localhost and
	// the name in Addr. On loopback its addresses pass, with NoAuth all addresses.
	AllowedHosts []string
	// SecretKey seals the secrets that sign attempts, and those in headers, where they are stored: one key or several, see
	// seal.ParseKeys.
	// Default: they are stored in the open.
	SecretKey SecretKey
	// SecretKeyFrom is where SecretKey comes from, for errors. Default: RINGBACK_SECRET_KEY.
	SecretKeyFrom string
	// DeclaredTopics refuses jobs of topics that were not put.
	DeclaredTopics bool
	// MaxBody bounds a job's body in bytes, 1 B to 10 MiB. Default: 256 KiB.
	MaxBody int64
	// Grace bounds a stop, 1 s to 1 h. Attempts in flight end within it, less 5 s. Default: 30 s.
	Grace time.Duration
	// Drain is how long the API goes on taking requests after Run's context has ended, while readiness says no already:
	// the time that load balancers need to notice. At most what attempts in flight get, the grace less 5 s (half of a
	// grace under 10 s). A process without RoleAPI does not drain. Default: zero, the API's port closes at once.
	Drain time.Duration
	// Token is what clients must show; empty: none, which is only taken on loopback, without RoleAPI, or with
	// NoAuth.
	Token Token
	// NoAuth takes requests without a token beyond loopback too. It contradicts a Token.
	NoAuth bool
	// Logger is written to; nil: nothing is logged.
	Logger *slog.Logger
	// LogDropped counts the log lines that were dropped because their reader was too slow, for the metrics; nil: none are.
	LogDropped func() uint64 `json:"-"`
	// Version is what the API and the sender say of themselves. Default: dev.
	Version string
}

// A RedisWait says for what answers to changes wait.
type RedisWait = redis.Wait

// ParseRedisWait reads replicas=N, fsync and timeout=D, separated by commas.
func ParseRedisWait(text string) (RedisWait, error) {
	return redis.ParseWait(text) //nolint:wrapcheck // it is the whole of it
}

// A Token is what clients must show. It prints as [redacted].
type Token = api.Token

// Defaults and bounds of the options.
const (
	DefaultAddr    = "127.0.0.1:8080"
	DefaultStore   = "sqlite:ringback.db"
	DefaultMaxBody = 256 << 10
	DefaultGrace   = 30 * time.Second

	MaxMaxBody = 10 << 20
	// MinToken is how many characters a token has at least.
	MinToken = 16

	MinGrace = time.Second
	MaxGrace = time.Hour
)

// withDefaults fills what is left out.
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

// Validate names everything that is wrong with the options, joined.
func (o Options) Validate() error {
	o = o.withDefaults()
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if host, err := splitAddr(o.Addr); err != nil {
		fault("addr: %w", err)
	} else if !loopback(host) && o.Token == "" && !o.NoAuth && o.has(RoleAPI) {
		fault("addr: %s can be reached from other machines: set RINGBACK_TOKEN or --token-file, or say --no-auth", o.Addr)
	}
	if o.Token != "" && o.NoAuth {
		fault("no-auth: contradicts the token that is given")
	}
	if strings.ContainsFunc(string(o.Token), func(r rune) bool { return r <= ' ' || r > '~' }) {
		fault("token: holds a character that no header can carry: visible ASCII only, no spaces")
	} else if o.Token != "" && len(o.Token) < MinToken {
		fault("token: is shorter than %d characters: take one from openssl rand -hex 32", MinToken)
	}
	for _, name := range o.AllowedHosts {
		if _, hosts, err := guard.ParseTargets([]string{name}); err != nil || len(hosts) == 0 || strings.HasPrefix(hosts[0], "*") {
			fault("allowed-hosts: %q is not the name of a host such as ringback.internal", name)
		}
	}
	if _, err := parseStore(o.Store); err != nil {
		fault("store: %w", err)
	}
	if o.Shards < 0 || o.Shards > job.MaxShards {
		fault("shards: %d is not in 1 to %d", o.Shards, job.MaxShards)
	} else if kind, _, _ := strings.Cut(o.Store, ":"); kind == "sqlite" && o.Shards > 1 {
		fault("shards: a sqlite store has one, not %d", o.Shards)
	}
	if strings.HasPrefix(o.Store, "sqlite:") && (o.RedisPrefix != "" || o.RedisWait != RedisWait{}) {
		fault("redis-prefix, redis-wait: a sqlite store has neither")
	} else if err := redis.CheckPrefix(o.RedisPrefix); err != nil {
		fault("redis-prefix: %w", err)
	}
	if err := o.checkRoles(); err != nil {
		errs = append(errs, err)
	}
	if _, _, err := guard.ParseTargets(o.AllowTargets); err != nil {
		fault("allow-targets: %w", err)
	}
	if _, _, err := guard.ParseTargets(o.DenyTargets); err != nil {
		fault("deny-targets: %w", err)
	}
	if _, err := o.Proxy.parse(); err != nil {
		fault("proxy: %w", err)
	}
	if _, err := seal.ParseKeys(string(o.SecretKey)); err != nil {
		fault("%s: %w", cmp.Or(o.SecretKeyFrom, seal.Setting), err)
	}
	if o.MaxBody < 1 || o.MaxBody > MaxMaxBody {
		fault("max-body: %d B is not in 1 B to %d B", o.MaxBody, MaxMaxBody)
	}
	if o.Grace < MinGrace || o.Grace > MaxGrace {
		fault("grace: %s is not in %s to %s", o.Grace, MinGrace, MaxGrace)
	} else if o.Drain < 0 || o.Drain > o.working() {
		fault("drain: %s is not in 0s to %s, what a grace of %s leaves for work", o.Drain, o.working(), o.Grace)
	}
	return errors.Join(errs...)
}

// working is the part of the grace in which attempts and requests under way may end. The rest is for settling.
func (o Options) working() time.Duration { return max(o.Grace-settleTime, o.Grace/2) }

// splitAddr checks a host:port to listen on, and gives its host.
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

// loopback reports whether only this machine reaches the host. A name other than localhost may be anything.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
