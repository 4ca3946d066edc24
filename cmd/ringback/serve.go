package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/ringback/ringback/app"
)

// serverFlags are what serve and dev have in common.
type serverFlags struct {
	Addr         string        `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address of the API. Beyond loopback a token is needed."`
	Store        string        `default:"sqlite:ringback.db" placeholder:"URL" help:"Where jobs are kept: sqlite:FILE, redis://…, rediss://…, unix://…, redis+sentinel://… or redis+cluster://…"`
	Shards       int           `default:"0" placeholder:"N" help:"Parts of a Redis store, 1 to 256, fixed at its first use. 0: what the store has, else 1, on a cluster 16."`
	RedisPrefix  string        `placeholder:"TEXT" help:"What every key in Redis begins with, rb unless said, so that installations can share a Redis."`
	RedisWait    redisWait     `placeholder:"replicas=N,fsync,timeout=D" help:"For what the answer to a change waits, beyond Redis having taken it: N replicas, the disk (Redis 7.2). What was reached is in the answer."`
	AllowTargets []network     `placeholder:"CIDR" help:"Networks that jobs may call although they are not public."`
	Topics       string        `default:"auto" enum:"auto,declared" placeholder:"auto|declared" help:"Whether a job makes its topic (auto), or is refused until the topic was PUT (declared)."`
	MaxBody      byteSize      `default:"256KiB" placeholder:"SIZE" help:"Largest body of a job, 1B to 16MiB."`
	Grace        time.Duration `default:"30s" placeholder:"DURATION" help:"How long a stop may take, 1s to 1h: attempts in flight end within it, less 5s."`
	Drain        time.Duration `default:"0s" placeholder:"DURATION" help:"How long the API goes on taking requests after SIGTERM, so that load balancers notice; at most the grace less 5s."`
	Log          string        `default:"text" enum:"text,json" placeholder:"text|json" help:"Form of the log on stderr."`
	NoAuth       bool          `help:"Take requests without a token, also beyond loopback."`
	TokenFile    string        `placeholder:"FILE" help:"File that holds the API's bearer token. Or set RINGBACK_TOKEN to the token itself."`
}

// options turns the flags, and a command's own ones, into the application's.
func (f *serverFlags) options(p *process, allowPrivate bool, does roles) (app.Options, error) {
	if err := f.zeros(); err != nil {
		return app.Options{}, &usageError{err}
	}
	token, err := f.token(p)
	if err != nil {
		return app.Options{}, err
	}
	options := app.Options{
		Addr:           f.Addr,
		Store:          f.Store,
		Shards:         f.Shards,
		RedisPrefix:    f.RedisPrefix,
		RedisWait:      f.RedisWait.RedisWait,
		Roles:          does,
		AllowPrivate:   allowPrivate,
		AllowTargets:   prefixes(f.AllowTargets),
		DeclaredTopics: f.Topics == "declared",
		MaxBody:        int64(f.MaxBody),
		Grace:          f.Grace,
		Drain:          f.Drain,
		Token:          token,
		NoAuth:         f.NoAuth,
		Logger:         newLogger(p.stderr, f.Log),
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

// token is the API's, from the one place that names it.
func (f *serverFlags) token(p *process) (app.Token, error) {
	if f.TokenFile == "" {
		return app.Token(p.token), nil
	}
	if p.token != "" {
		return "", &usageError{errors.New("both " + tokenVariable + " and --token-file are given; one is enough")}
	}
	text, err := os.ReadFile(f.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("read the token: %s is empty", f.TokenFile)
	}
	return app.Token(token), nil
}

// newLogger writes to stderr as --log says.
func newLogger(stderr io.Writer, form string) *slog.Logger {
	if form == "json" {
		return slog.New(slog.NewJSONHandler(stderr, nil))
	}
	return slog.New(slog.NewTextHandler(stderr, nil))
}

// serveCommand is ringback serve.
type serveCommand struct {
	serverFlags  `embed:""`
	Roles        roles `default:"api,worker" placeholder:"ROLES" help:"What this process does: take jobs (api), deliver them (worker), or both. A SQLite store needs both."`
	AllowPrivate bool  `help:"Let jobs call loopback and private networks too."`
}

// Run serves until ctx ends.
func (c *serveCommand) Run(ctx context.Context, p *process) error {
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
