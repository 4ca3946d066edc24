package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ringback/ringback/store"
)

// Defaults of options that an address can set.
const (
	dialTimeout = 5 * time.Second
	readTimeout = 5 * time.Second
	poolTimeout = 5 * time.Second
	// poolSize is the maximum number of connections to a server. They are opened as needed.
	poolSize = 64
	// maxRetries is how often go-redis repeats a command whose reply was lost. Tokens make the repetition harmless.
	maxRetries = 1
)

const (
	// maxRedirects bounds how often a command is sent again on a cluster: once more to a server that is gone, then to
	// its successor, then to where that redirects it.
	maxRedirects = 3
	reloadPause  = 100 * time.Millisecond
)

// A Client sends commands to one Redis. It is a go-redis client that also knows how the servers are set up.
type Client struct {
	redis.UniversalClient
	address  Address
	wait     Wait
	log      *slog.Logger
	warnWait sync.Once
	conns    *connections
	server   *identity // nil: sentinels or a cluster name the servers
}

// go-redis must not write to standard error: what it writes there it also returns. Its logger is a global variable that
// clients read unguarded, so it is set before there are any.
func init() { redis.SetLogger(silentLogger{}) }

type silentLogger struct{}

func (silentLogger) Printf(context.Context, string, ...any) {}

// New opens a client without connecting yet. Replies may take longer by the Wait's timeout.
func New(a Address, wait Wait, log *slog.Logger) *Client {
	a.setDefaults()
	a.options.ReadTimeout += wait.Timeout
	c := &Client{wait: wait, log: log, conns: newConnections()}
	if a.form == single {
		c.server = newIdentity(c.conns, log)
		a.options.OnConnect = c.server.onConnect
	}
	o := a.options
	o.Dialer = newDialer(o.DialTimeout, o.ReadTimeout, a.secured, c.conns).dial
	c.UniversalClient, c.address = a.client(&o), a
	return c
}

// setDefaults completes the options.
func (a *Address) setDefaults() {
	o := &a.options
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.DisableIdentity = true // CLIENT SETINFO would require another ACL right
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.DialTimeout = cmp.Or(o.DialTimeout, dialTimeout)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, readTimeout)
	o.PoolTimeout = cmp.Or(o.PoolTimeout, poolTimeout)
	o.MaxRetries = cmp.Or(o.MaxRetries, maxRetries)
	o.PoolSize = cmp.Or(o.PoolSize, poolSize)
}

// client opens a go-redis client of the address's kind.
func (a *Address) client(o *redis.Options) redis.UniversalClient {
	switch a.form {
	case sentinel:
		return redis.NewFailoverClient(a.universal(o).Failover())
	case cluster:
		clustered := a.universal(o).Cluster() // it follows redirects by itself
		clustered.MaxRetries, clustered.MaxRedirects = -1, maxRedirects
		clustered.DisableRoutingPolicies = true // our commands name their keys
		client := redis.NewClusterClient(clustered)
		client.AddHook(reloadHook{client: client})
		return client
	default:
		return redis.NewClient(o)
	}
}

// LoadFiles reads the files of the address again, for new connections. After an error what was read before stays in
// force.
func (c *Client) LoadFiles() error { return c.address.loadFiles() }

// IsCluster reports whether the servers form a cluster.
func (c *Client) IsCluster() bool { return c.address.IsCluster() }

// MaxConns is the largest number of connections to a server for calls.
func (c *Client) MaxConns() int { return c.address.options.PoolSize }

// Node returns a client of the one server that serves a key.
func (c *Client) Node(ctx context.Context, key string) (*redis.Client, error) {
	if cluster, ok := c.UniversalClient.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key) // callers map it
	}
	return c.single(), nil
}

// EachPrimary calls do for every primary, concurrently on a cluster. Errors are not mapped.
func (c *Client) EachPrimary(ctx context.Context, do func(context.Context, *redis.Client) error) error {
	if cluster, ok := c.UniversalClient.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, do)
	}
	return do(ctx, c.single())
}

// single returns the client of a single server, or of one that sentinels name.
func (c *Client) single() *redis.Client {
	return c.UniversalClient.(*redis.Client) //nolint:forcetypeassert // as Address.client makes it
}

// Check pings Redis for at most the dial timeout. A server that does not speak the expected TLS is silent, or sends
// something else.
func (c *Client) Check(ctx context.Context) error {
	limit := c.address.options.DialTimeout
	ctx, cancel := WithTimeout(ctx, limit)
	defer cancel()
	err := c.Ping(ctx).Err()
	if err == nil {
		return nil
	}
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	late := errors.Is(context.Cause(ctx), ErrTimeout) || isTimeout(err)
	secure := c.address.options.TLSConfig != nil
	text := err.Error()
	switch {
	case secure && plain:
		return &store.UnavailableError{Reason: "redis: the server does not speak TLS: use redis:// or another port"}
	case secure && late && !errors.Is(context.Cause(ctx), context.Canceled):
		return &store.UnavailableError{Reason: fmt.Sprintf("redis: no answer within %s: does it speak TLS?", limit)}
	case c.address.form == cluster && strings.Contains(text, "cluster support disabled"):
		return errors.New("redis: the server is not a node of a cluster: use redis://")
	case c.address.form == sentinel && strings.Contains(strings.ToLower(text), "unknown command"):
		return errors.New("redis: the server is not a sentinel: name sentinels, or use redis://")
	case c.address.form == sentinel && strings.Contains(text, "redis: nil"):
		return fmt.Errorf("redis: the sentinels know no primary by the name %q: see master_name", c.address.master)
	}
	return MapError(ctx, err)
}

// blockingClient has one connection, which abort closes at once.
type blockingClient struct {
	redis.UniversalClient
	dialer *dialer
}

// blocking opens a client with one connection to the server that serves a key. It never repeats a command: a second
// BLPOP would take a second element. On a cluster, a server that loses the key's slot ends the commands that block on
// it.
func (c *Client) blocking(
	ctx context.Context, o redis.Options, key string, readTimeout time.Duration,
) (*blockingClient, error) {
	d := newDialer(o.DialTimeout, readTimeout, c.address.secured, c.conns)
	o.Dialer = d.dial
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 1, 0, 1, 1
	o.MaxRetries = -1
	o.PipelinePoolSize = -1
	o.ReadTimeout = readTimeout
	if c.address.form != cluster {
		return &blockingClient{c.address.client(&o), d}, nil
	}
	server, err := c.Node(ctx, key)
	if err != nil {
		return nil, err
	}
	o.Addr = server.Options().Addr
	return &blockingClient{redis.NewClient(&o), d}, nil
}

// abort closes the connection, also while it is being opened.
func (b *blockingClient) abort() {
	b.dialer.end()
	_ = b.Close() // nothing is left to flush
}

// universal returns the options of a client that asks sentinels, or nodes of a cluster.
func (a *Address) universal(o *redis.Options) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs: a.hosts, MasterName: a.master, SentinelUsername: a.user, SentinelPassword: a.password,
		ClientName: o.ClientName, Dialer: o.Dialer, Protocol: o.Protocol, Username: o.Username, Password: o.Password,
		DB: o.DB, MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries, ReadTimeout: o.ReadTimeout,
		WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled, PoolFIFO: o.PoolFIFO,
		PoolSize: o.PoolSize, MaxConcurrentDials: o.MaxConcurrentDials, PoolTimeout: o.PoolTimeout,
		MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
		ConnMaxLifetimeJitter: o.ConnMaxLifetimeJitter, PipelinePoolSize: o.PipelinePoolSize,
		PipelineReadBufferSize: o.PipelineReadBufferSize, PipelineWriteBufferSize: o.PipelineWriteBufferSize,
		TLSConfig: o.TLSConfig, DisableIdentity: o.DisableIdentity,
		MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
}
