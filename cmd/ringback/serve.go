package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/ringback/ringback/app"
)

// serverFlags are what serve and dev have in common.
type serverFlags struct {
	Addr          string        `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address of the API. Beyond loopback a token is needed."`
	Store         string        `default:"sqlite:ringback.db" placeholder:"URL" help:"Where jobs are kept: sqlite:FILE, redis://…, rediss://…, unix://…, redis+sentinel://… or redis+cluster://…"`
	Shards        int           `default:"0" placeholder:"N" help:"Parts of a Redis store, 1 to 256, fixed at its first use. 0: what the store has, else 1, on a cluster 16."`
	RedisPrefix   string        `placeholder:"TEXT" help:"What every key in Redis begins with, rb unless said, so that installations can share a Redis."`
	RedisWait     redisWait     `placeholder:"replicas=N,fsync,timeout=D" help:"For what the answer to a change waits, beyond Redis having taken it: N replicas, the disk (Redis 7.2). What was reached is in the answer."`
	AllowTargets  []string      `placeholder:"TARGETS" help:"Networks, addresses and hosts (shop.internal, *.shop.internal) that jobs may call although they are not public."`
	DenyTargets   []string      `placeholder:"TARGETS" help:"Networks, addresses and hosts that jobs may not call, whatever else admits them."`
	Proxy         string        `placeholder:"URL" help:"Forward proxy to receivers, http:// or https://; none: none. Unless said: what HTTPS_PROXY, HTTP_PROXY and NO_PROXY say."`
	CAFile        string        `name:"ca-file" placeholder:"FILE" help:"Authorities, in PEM, for receivers' certificates beside the system's."`
	Topics        string        `default:"auto" enum:"auto,declared" placeholder:"auto|declared" help:"Whether a job makes its topic (auto), or is refused until the topic was PUT (declared)."`
	MaxBody       byteSize      `default:"256KiB" placeholder:"SIZE" help:"Largest body of a job, 1B to 10MiB."`
	Grace         time.Duration `default:"30s" placeholder:"DURATION" help:"How long a stop may take, 1s to 1h: attempts in flight end within it, less 5s."`
	Drain         time.Duration `default:"0s" placeholder:"DURATION" help:"How long the API goes on taking requests after SIGTERM, so that load balancers notice; at most the grace less 5s."`
	Log           string        `default:"text" enum:"text,json" placeholder:"text|json" help:"Form of the log on stderr."`
	NoAuth        bool          `help:"Take requests without a token, also beyond loopback."`
	AllowedHosts  []string      `placeholder:"NAMES" help:"Names under which the API is reached on loopback or with --no-auth, beside localhost, addresses and the name in --addr."`
	SecretKeyFile string        `placeholder:"FILE" help:"File that holds the keys which seal secrets in the store (those that sign, and those in headers), the current one first: 32 bytes each, in base64 or hexadecimal, divided by commas. Or set RINGBACK_SECRET_KEY to the keys themselves."`
	TokenFile     string        `placeholder:"FILE" help:"File that holds the API's bearer token. Or set RINGBACK_TOKEN to the token itself."`
}

// options turns the flags, and a command's own ones, into the application's.
func (f *serverFlags) options(p *process, allowPrivate bool, does roles) (app.Options, error) {
	if err := f.zeros(); err != nil {
		return app.Options{}, &usageError{err}
	}
	logger := newLogger(p.stderr, f.Log)
	token, err := secret("token", tokenVariable, "--token-file", p.token, f.TokenFile, logger)
	if err != nil {
		return app.Options{}, err
	}
	keys, err := secret("secret key", secretKeyVariable, "--secret-key-file", p.secretKey, f.SecretKeyFile, logger)
	if err != nil {
		return app.Options{}, err
	}
	keysFrom := secretKeyVariable
	if f.SecretKeyFile != "" {
		keysFrom = "--secret-key-file " + f.SecretKeyFile
	}
	options := app.Options{
		Addr:           f.Addr,
		Store:          f.Store,
		Shards:         f.Shards,
		RedisPrefix:    f.RedisPrefix,
		RedisWait:      f.RedisWait.RedisWait,
		Roles:          does,
		AllowPrivate:   allowPrivate,
		AllowTargets:   f.AllowTargets,
		DenyTargets:    f.DenyTargets,
		Proxy:          app.ProxyURL(f.Proxy),
		CAFile:         f.CAFile,
		SecretKey:      app.SecretKey(keys),
		SecretKeyFrom:  keysFrom,
		AllowedHosts:   f.AllowedHosts,
		DeclaredTopics: f.Topics == "declared",
		MaxBody:        int64(f.MaxBody),
		Grace:          f.Grace,
		Drain:          f.Drain,
		Token:          app.Token(token),
		NoAuth:         f.NoAuth,
		Logger:         logger,
		LogDropped:     droppedLines(p.stderr),
		Version:        versionName(),
	}
	if err := options.Validate(); err != nil {
		return app.Options{}, &usageError{err}
	}
	return options, nil
}

// zeros refuses zeros that were said: in the application's options they mean the default.
func (f *serverFlags) zeros() error {
	var errs []error
	if f.MaxBody == 0 {
		errs = append(errs, fmt.Errorf("max-body: 0 B is not in 1 B to %d B", app.MaxMaxBody))
	}
	if f.Grace == 0 {
		errs = append(errs, fmt.Errorf("grace: 0s is not in %s to %s", app.MinGrace, app.MaxGrace))
	}
	return errors.Join(errs...)
}

// secret is one from the one place that names it: a variable that holds it, or a file.
func secret(what, variable, flag, value, file string, log *slog.Logger) (string, error) {
	if file == "" {
		return value, nil
	}
	if value != "" {
		return "", &usageError{fmt.Errorf("both %s and %s are given; one is enough", variable, flag)}
	}
	text, mode, err := readWithMode(file)
	if err != nil {
		return "", fmt.Errorf("read the %s: %w", what, err)
	}
	switch {
	case mode.Perm()&0o022 != 0:
		return "", &usageError{fmt.Errorf("%s: others than its owner can write %s (mode %04o): chmod go-w it", flag, file, mode.Perm())}
	case mode.Perm()&0o004 != 0:
		log.Warn("everybody on this machine can read a secret's file: chmod o-r it", "file", file, "mode", fmt.Sprintf("%04o", mode.Perm()))
	}
	read := strings.TrimSpace(string(text))
	if read == "" {
		return "", fmt.Errorf("read the %s: %s is empty", what, file)
	}
	return read, nil
}

// readWithMode reads a file, and gives its mode where that says who can read and write it: of a regular file on Unix.
func readWithMode(name string) ([]byte, os.FileMode, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(file)
	if !info.Mode().IsRegular() || runtime.GOOS == "windows" {
		return text, 0, err
	}
	return text, info.Mode(), err
}

// serveCommand is ringback serve.
type serveCommand struct {
	serverFlags  `embed:""`
	Roles        roles `default:"api,worker" placeholder:"ROLES" help:"What this process does: take jobs (api), deliver them (worker), or both. A SQLite store needs both."`
	AllowPrivate bool  `help:"Let jobs call loopback and private networks too."`
}

// Run serves until ctx ends.
func (c *serveCommand) Run(ctx context.Context, p *process) error {
	ignoreBrokenPipes()
	options, err := c.options(p, c.AllowPrivate, c.Roles)
	if err != nil {
		return err
	}
	a, err := app.New(ctx, options)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
