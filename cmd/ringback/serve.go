package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/internal/app"
	"github.com/ringback/ringback/internal/fileread"
)

// storeFlags are the flags of commands that open the stores.
type storeFlags struct {
	// Where jobs are stored: sqlite:FILE, redis://…, rediss://…, unix://…, redis+sentinel://… or redis+cluster://… For
	// several stores repeat the flag with names, main=URL and eu=URL; in the variable separate them by spaces.
	// Namespaces choose one.
	Store []string `sep:"none" default:"sqlite:ringback.db" placeholder:"URL"`
	// Number of shards of a Redis store, 1 to 256, or NAME=N,… for several stores. It is fixed when a store is first
	// used. 0: the number that the store has; a new store gets 1, on a cluster 16.
	Shards app.Shards `placeholder:"N"`
	// Prefix of every Redis key, so that installations can share a Redis: 1 to 64 of A-Z a-z 0-9 . _ and -. Default:
	// rb.
	RedisPrefix string `placeholder:"TEXT"`
	// Durability that API writes wait for, in addition to the Redis primary: up to 64 replicas, fsync to disk (Redis
	// 7.2), for at most D (1ms to 5s, 100ms if left out). Responses report what was reached. Default: the primary only.
	RedisWait app.RedisWait `placeholder:"replicas=N,fsync,timeout=D"`
}

// join returns the stores as app.Options takes them.
func (f *storeFlags) join() string { return strings.Join(f.Store, "\n") }

// serverFlags are the flags that serve and dev share.
type serverFlags struct {
	configFlag `embed:""`

	// Address of the API. Beyond loopback a token is required, or --no-auth.
	Addr string `default:"127.0.0.1:8080" placeholder:"HOST:PORT"`

	storeFlags `embed:""`

	// Networks, addresses and host names that jobs may call although they are not public: 10.1.0.0/16, shop.internal,
	// *.lan.example.
	AllowTargets []string `placeholder:"TARGETS"`
	// Networks, addresses and host names that jobs may never call. Takes precedence over every other flag.
	DenyTargets []string `placeholder:"TARGETS"`
	// Forward proxy for deliveries: a URL with http:// or https://, or none. Default: from HTTPS_PROXY, HTTP_PROXY and
	// NO_PROXY.
	Proxy string `placeholder:"URL"`
	// PEM file of certificate authorities trusted for receivers, in addition to the system's.
	CAFile string `name:"ca-file" placeholder:"FILE"`
	// auto: a job creates its topic. declared: jobs are rejected until their topic has been created with PUT.
	Topics string `default:"auto" enum:"auto,declared" placeholder:"auto|declared"`
	// Largest body of a job, 1B to 10MiB.
	MaxBody byteSize `default:"256KiB" placeholder:"SIZE"`
	// Maximum duration of a stop, 1s to 1h. Attempts in flight may use all but the last 5s of it (half of a grace below
	// 10s).
	Grace time.Duration `default:"30s" placeholder:"DURATION"`
	// How long the API still serves after SIGTERM while /readyz fails, so that load balancers notice: 0s to the grace
	// less 5s (half of a grace below 10s).
	Drain time.Duration `default:"0s" placeholder:"DURATION"`
	// Format of the log on stderr.
	Log string `default:"text" enum:"text,json" placeholder:"text|json"`
	// Accept requests without a token, also beyond loopback. Cannot be combined with a token.
	NoAuth bool
	// Serve the API without the web console at /console/.
	NoConsole bool
	// Host names, without a port, that requests may carry on loopback or with --no-auth, in addition to localhost,
	// addresses and the name in --addr.
	AllowedHosts []string `placeholder:"NAMES"`
	// File with the keys that encrypt secrets in the store, 1 to 16 separated by commas, the current one first. A key
	// is 32 bytes in base64 or hexadecimal. Or set RINGBACK_SECRET_KEY to the keys.
	SecretKeyFile string `placeholder:"FILE"`
	// File with the API's root token, at least 16 visible ASCII characters, or with several for rotation, one a line.
	// Or set RINGBACK_TOKEN.
	TokenFile string `placeholder:"FILE"`

	// File with the token that /metrics requires then, or with several for rotation, one a line. Root tokens are
	// accepted, too. Without it /metrics needs no token.
	MetricsTokenFile string `placeholder:"FILE"`
}

// options converts the flags, with those of one command, to valid app.Options.
func (f *serverFlags) options(p *process, allowPrivate bool, roles app.Roles) (app.Options, error) {
	options, err := f.read(p, allowPrivate, roles)
	if err != nil {
		return app.Options{}, err
	}
	if err := options.Validate(); err != nil {
		return app.Options{}, &usageError{err}
	}
	return options, nil
}

// read converts the flags as far as it can, also if it returns an error.
func (f *serverFlags) read(p *process, allowPrivate bool, roles app.Roles) (app.Options, error) {
	var errs []error
	if err := f.checkZeros(); err != nil {
		errs = append(errs, &usageError{err})
	}
	logger := newLogger(p.stderr, f.Log)
	read := func(what, variable, flag, value, file string) app.Secret {
		text, err := secret(what, variable, flag, value, file, logger)
		errs = append(errs, p.settings.locateFlag(strings.TrimPrefix(flag, "--"), err))
		return app.Secret(text)
	}
	token := read("token", tokenVariable, "--token-file", p.settings.env[tokenVariable], f.TokenFile)
	metricsToken := read("metrics token", "", "--metrics-token-file", "", f.MetricsTokenFile)
	keys := read("secret key", secretKeyVariable, "--secret-key-file",
		p.settings.env[secretKeyVariable], f.SecretKeyFile)
	keysFrom := secretKeyVariable
	if f.SecretKeyFile != "" {
		keysFrom = "--secret-key-file " + f.SecretKeyFile
	}
	return app.Options{
		Addr:           f.Addr,
		Store:          f.join(),
		Shards:         f.Shards,
		RedisPrefix:    f.RedisPrefix,
		RedisWait:      f.RedisWait,
		Roles:          roles,
		AllowPrivate:   allowPrivate,
		AllowTargets:   f.AllowTargets,
		DenyTargets:    f.DenyTargets,
		Proxy:          app.ProxyURL(f.Proxy),
		CAFile:         f.CAFile,
		SecretKey:      keys,
		SecretKeyFrom:  keysFrom,
		AllowedHosts:   f.AllowedHosts,
		DeclaredTopics: f.Topics == "declared",
		MaxBody:        int64(f.MaxBody),
		Grace:          f.Grace,
		Drain:          f.Drain,
		Token:          token,
		MetricsToken:   metricsToken,
		NoAuth:         f.NoAuth,
		NoConsole:      f.NoConsole,
		SecretFiles:    f.secretFiles(),
		Logger:         logger,
		LogDropped:     droppedCounter(p.stderr),
		Version:        versionName(),

		TokenFile: f.TokenFile, MetricsTokenFile: f.MetricsTokenFile,
	}, errors.Join(errs...)
}

// secretFiles returns the files with tokens and keys.
func (f *serverFlags) secretFiles() []string {
	return slices.DeleteFunc([]string{f.TokenFile, f.MetricsTokenFile, f.SecretKeyFile},
		func(file string) bool { return file == "" })
}

// checkZeros rejects explicit zeros, which would mean the default in app.Options.
func (f *serverFlags) checkZeros() error {
	var errs []error
	if f.MaxBody == 0 {
		errs = append(errs, fmt.Errorf("max-body: 0 B is not between 1 B and %d B", app.MaxMaxBody))
	}
	if f.Grace == 0 {
		errs = append(errs, fmt.Errorf("grace: 0s is not between %s and %s", app.MinGrace, app.MaxGrace))
	}
	return errors.Join(errs...)
}

// secret returns a secret from its variable or its file, which cannot be combined. The file must not be writable by
// others.
func secret(what, variable, flag, value, file string, log *slog.Logger) (string, error) {
	if file == "" {
		return value, nil
	}
	if value != "" {
		return "", &usageError{fmt.Errorf("%s cannot be combined with %s", variable, flag)}
	}
	text, mode, err := fileread.ReadSecret(file)
	if errors.Is(err, fileread.ErrWritable) {
		return "", &usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	if err != nil {
		return "", fmt.Errorf("read the %s: %w", what, err)
	}
	if fileread.IsPublic(mode) {
		log.Warn("secret file is readable by all users: chmod o-r it", "file", file, "mode", fmt.Sprintf("%04o", mode))
	}
	return text, nil
}

// serveFlags are the flags of serve that a configuration file can set.
type serveFlags struct {
	serverFlags `embed:""`

	// Roles of this process: api (serve the API), worker (deliver jobs), or both. A SQLite store needs both.
	Roles app.Roles `default:"api,worker" placeholder:"ROLES"`
	// Let jobs call loopback and private networks, but never link-local addresses, metadata services or the API.
	AllowPrivate bool
}

// serveCommand is ringback serve.
type serveCommand struct {
	serveFlags `embed:""`

	// Check the settings and the files that they name, and exit: 0 if they are valid, else 2. The store is not opened.
	Check bool `variable:"-"`
}

// Help is what --help adds to the flags.
func (*serveCommand) Help() string {
	return "Traces are exported by OTLP if OTEL_EXPORTER_OTLP_ENDPOINT is set, as the other variables of " +
		"OpenTelemetry say."
}

// RunCommand serves until ctx ends.
func (c *serveCommand) RunCommand(ctx context.Context, line *kong.Context, p *process) error {
	ignoreBrokenPipes()
	options, err := c.options(p, c.AllowPrivate, c.Roles)
	if c.Check {
		return c.check(p, options, err)
	}
	if err != nil {
		return err
	}
	return p.runApp(ctx, line, options, func(*app.App) {})
}

// check checks what app.New would refuse, except for what needs the store or the port. err is why there are no options.
func (c *serveCommand) check(p *process, options app.Options, err error) error {
	if err == nil {
		err = options.CheckFiles()
	}
	if err != nil {
		return &usageError{err}
	}
	exporter, err := traces()
	if err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "the settings are valid")
	if exporter != nil {
		fmt.Fprintln(p.stdout, "traces are exported", describeTraces(exporter))
	}
	return nil
}
