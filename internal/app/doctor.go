package app

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"github.com/ringback/ringback/internal/doctor"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/pool"
)

// DoctorOptions are what Doctor looks at besides Options.
type DoctorOptions struct {
	// Err is why the settings are refused, joined; nil: they are valid.
	Err error
	// NeedsToken and EncryptsSecrets say that one of Options.SecretFiles has the API's token, or the secret key, also
	// if it could not be read.
	NeedsToken, EncryptsSecrets bool
	// Server is the URL of the API of a running service. ServerNamed says that it must answer. Empty: none is asked.
	Server      string
	ServerNamed bool
}

// Doctor looks for what is wrong with the stores, the process, the settings and the running service, for at most 10 s.
// It needs no service, and changes nothing. Options need not be valid: why not is a finding.
func Doctor(ctx context.Context, o Options, more DoctorOptions) []doctor.Finding {
	o = o.withDefaults()
	now := time.Now()
	checks := o.settings(more, now).Check()
	stores, _ := parseStores(o.Store) // invalid stores are in more.Err
	checks = append(checks, doctor.Process{
		Files: descriptorLimit(), FilesNeeded: neededDescriptors(max(len(stores), 1), o.has(RoleWorker)),
		MemoryLimit: debug.SetMemoryLimit(-1), Root: os.DirFS("/"),
	}.Check())
	if more.Server != "" {
		server := doctor.Server{URL: more.Server, Named: more.ServerNamed, Version: o.Version}
		if tokens := o.RootTokens(); len(tokens) > 0 {
			server.Token = string(tokens[0])
		}
		checks = append(checks, server.Check())
	}
	for _, n := range stores {
		subject := "store " + n.name + " (" + n.String() + ")"
		if n.file != "" {
			checks = append(checks, doctor.CheckSQLite(subject, n.file)...)
			continue
		}
		checks = append(checks, doctor.CheckRedis(subject, doctor.RedisOptions{
			URL: n.url, Prefix: o.RedisPrefix, Shards: o.Shards[n.name], Wait: o.RedisWait,
		}))
	}
	return doctor.Run(ctx, checks...)
}

// check makes the doctor's checks of the running process, for the console.
func (a *App) check(ctx context.Context) []doctor.Finding {
	return Doctor(ctx, a.options, DoctorOptions{})
}

// settings returns what the checks of settings look at.
func (o Options) settings(more DoctorOptions, now time.Time) doctor.Settings {
	host, _ := splitAddr(o.Addr) // an invalid one is in more.Err
	s := doctor.Settings{
		Err: more.Err, Addr: o.Addr, ServesAPI: o.has(RoleAPI), Loopback: loopback(host),
		NeedsToken: o.Token != "" || more.NeedsToken, Delivers: o.has(RoleWorker), SecretFiles: o.SecretFiles,
		EncryptsSecrets: o.SecretKey != "" || more.EncryptsSecrets, AllowPrivate: o.AllowPrivate,
		AllowTargets: o.AllowTargets, Now: now,
	}
	if o.CAFile != "" {
		s.Certificates = append(s.Certificates, o.CAFile)
	}
	stores, _ := parseStores(o.Store) // as above
	for _, n := range stores {
		if n.file == "" {
			s.Certificates = append(s.Certificates, n.redis.Certificates()...)
		}
	}
	if s.Proxy = o.proxyAddr(); s.Proxy != "" {
		s.ProxyFrom = "--proxy"
		if o.Proxy == "" {
			s.ProxyFrom = "from the environment"
		}
	}
	return s
}

// proxyAddr returns the host:port of the proxy that a public receiver is called through; empty: none.
func (o Options) proxyAddr() string {
	proxyFor, err := o.Proxy.proxyFor()
	if err != nil || proxyFor == nil {
		return ""
	}
	proxy, err := proxyFor(&http.Request{URL: &url.URL{Scheme: "https", Host: "receiver.example"}})
	if err != nil || proxy == nil {
		return ""
	}
	return net.JoinHostPort(proxy.Hostname(), job.PortOf(proxy))
}

// neededDescriptors returns the smallest limit with which deliveries do not run out of descriptors before workers.
func neededDescriptors(stores int, delivers bool) int {
	limit := (stores + 1) * storeDescriptors
	for delivers && planDescriptors(limit, stores, true).deliveries < pool.DefaultWorkers {
		limit++
	}
	return limit
}
