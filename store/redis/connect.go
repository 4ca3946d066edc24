package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The client's own limits. The server may take its time for a batch, but a call must end.
const (
	dialTimeout = 5 * time.Second
	readTimeout = 5 * time.Second
	poolTimeout = 5 * time.Second
	// poolSize is the most connections of a client to a server. They are opened as needed: a shard's desk, carrier and
	// insertions make one call at a time each.
	poolSize = 64
	// resends is how often go-redis itself sends a command again whose reply was lost: the token makes that harmless.
	resends = 1
	// redirects is how often a cluster's client sends a command again: to a server that is gone once more, then to the one
	// that has its place, and where that sends it.
	redirects = 3
)

// A connector opens clients: one for calls, and one for each blocking connection.
type connector struct{ Address }

// newConnector completes the address's options. patience is added to how long an answer may take.
func newConnector(a Address, patience time.Duration) *connector {
	o := &a.options
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.DisableIdentity = true // CLIENT SETINFO would need a right of its own
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	set := func(d *time.Duration, standard time.Duration) {
		if *d == 0 {
			*d = standard
		}
	}
	set(&o.DialTimeout, dialTimeout)
	set(&o.ReadTimeout, readTimeout)
	set(&o.PoolTimeout, poolTimeout)
	o.ReadTimeout += patience
	if o.MaxRetries == 0 {
		o.MaxRetries = resends
	}
	if o.PoolSize == 0 {
		o.PoolSize = poolSize
	}
	return &connector{a}
}

// limit is how long a connection may take.
func (c *connector) limit() time.Duration { return c.options.DialTimeout }

// calls opens the client for calls.
func (c *connector) calls() redis.UniversalClient {
	o := c.options
	o.Dialer = newDialer(o.DialTimeout, o.ReadTimeout, o.TLSConfig).dial
	return c.client(&o)
}

// client opens a client in the address's form.
func (c *connector) client(o *redis.Options) redis.UniversalClient {
	switch c.form {
	case sentinel:
		return redis.NewFailoverClient(c.failover(o))
	case cluster:
		client := redis.NewClusterClient(c.clustered(o))
		client.AddHook(reload{client: client})
		return client
	default:
		return redis.NewClient(o)
	}
}

// blocking opens a client with one connection to the server that has a key, which never sends a command again by
// itself: a second BLPOP would take a second token. A server of a cluster that loses the key's slot ends what waits for it.
func (c *connector) blocking(ctx context.Context, calls redis.UniversalClient, key string, read time.Duration) (*blocking, error) {
	o := c.options
	dialer := newDialer(o.DialTimeout, read, o.TLSConfig)
	o.Dialer = dialer.dial
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 1, 0, 1, 1
	o.MaxRetries = -1
	o.PipelinePoolSize = -1
	o.ReadTimeout = read
	if c.form != cluster {
		return &blocking{c.client(&o), dialer}, nil
	}
	server, err := node(ctx, calls, key)
	if err != nil {
		return nil, err
	}
	o.Addr = server.Options().Addr
	return &blocking{redis.NewClient(&o), dialer}, nil
}

// A blocking client has one connection, and ends at once.
type blocking struct {
	redis.UniversalClient
	dialer *dialer
}

// end closes the connection, also one that is just being opened.
func (b *blocking) end() {
	b.dialer.end()
	_ = b.Close() // it is closed because it is of no use
}

// node is a client of the one server that has a key.
func node(ctx context.Context, calls redis.UniversalClient, key string) (*redis.Client, error) {
	switch client := calls.(type) {
	case *redis.ClusterClient:
		return client.MasterForKey(ctx, key) //nolint:wrapcheck // callers turn it into a fault
	case *redis.Client:
		return client, nil
	default:
		panic("redis: a client of an unexpected kind")
	}
}

// servers calls do for every primary: the one that there is, or all of the cluster's at once.
func servers(ctx context.Context, calls redis.UniversalClient, do func(context.Context, *redis.Client) error) error {
	switch client := calls.(type) {
	case *redis.ClusterClient:
		return client.ForEachMaster(ctx, do) //nolint:wrapcheck // it is do's error
	case *redis.Client:
		return do(ctx, client)
	default:
		panic("redis: a client of an unexpected kind")
	}
}

// failover are the options of a client that asks sentinels.
func (c *connector) failover(o *redis.Options) *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: c.master, SentinelAddrs: c.hosts, SentinelUsername: c.user, SentinelPassword: c.password,
		ClientName: o.ClientName, Dialer: o.Dialer, Protocol: o.Protocol, Username: o.Username, Password: o.Password, DB: o.DB,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		ContextTimeoutEnabled: o.ContextTimeoutEnabled, PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize,
		MaxConcurrentDials: o.MaxConcurrentDials, PoolTimeout: o.PoolTimeout, MinIdleConns: o.MinIdleConns,
		MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns, ConnMaxIdleTime: o.ConnMaxIdleTime,
		ConnMaxLifetime: o.ConnMaxLifetime, ConnMaxLifetimeJitter: o.ConnMaxLifetimeJitter,
		PipelinePoolSize: o.PipelinePoolSize, PipelineReadBufferSize: o.PipelineReadBufferSize,
		PipelineWriteBufferSize: o.PipelineWriteBufferSize, TLSConfig: o.TLSConfig, DisableIdentity: o.DisableIdentity,
	}
}

// clustered are the options of a client of a cluster. It sends a command again by itself, to where it is redirected.
func (c *connector) clustered(o *redis.Options) *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Addrs: c.hosts, DisableRoutingPolicies: true, // our commands name their keys
		ClientName: o.ClientName, Dialer: o.Dialer, Protocol: o.Protocol, Username: o.Username, Password: o.Password,
		MaxRetries: -1, MaxRedirects: redirects, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		ContextTimeoutEnabled: o.ContextTimeoutEnabled, PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize,
		MaxConcurrentDials: o.MaxConcurrentDials, PoolTimeout: o.PoolTimeout, MinIdleConns: o.MinIdleConns,
		MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns, ConnMaxIdleTime: o.ConnMaxIdleTime,
		ConnMaxLifetime: o.ConnMaxLifetime, ConnMaxLifetimeJitter: o.ConnMaxLifetimeJitter,
		PipelinePoolSize: o.PipelinePoolSize, PipelineReadBufferSize: o.PipelineReadBufferSize,
		PipelineWriteBufferSize: o.PipelineWriteBufferSize, TLSConfig: o.TLSConfig,
		DisableIdentity: o.DisableIdentity, MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
}

// reload has a cluster's client ask anew who has which slot when a server could not be reached: by itself it does that
// every ten seconds only, and when a server redirects it.
type reload struct{ client *redis.ClusterClient }

func (r reload) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r reload) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		r.look(ctx, err)
		return err
	}
}

func (r reload) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		r.look(ctx, err)
		return err
	}
}

// look asks anew after faults that are no answers of a server.
func (r reload) look(ctx context.Context, err error) {
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, redis.ErrClosed) {
		return
	}
	if _, answer := errors.AsType[redis.Error](err); !answer || isClientSide(err) {
		r.client.ReloadState(ctx)
	}
}
