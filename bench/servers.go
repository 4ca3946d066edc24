package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// serverTime bounds the wait for a server's first answer.
const serverTime = 20 * time.Second

// errMissing: a program is not installed. Figures that need it are left out, with a note.
var errMissing = errors.New("is not installed")

// A redisServer is a server with its folder and port. Its append-only file is flushed every second.
type redisServer struct {
	*process
	dir    string
	addr   string
	client *redis.Client
}

// startRedis tries again when another program takes the port first.
func (b *bench) startRedis(ctx context.Context) (*redisServer, error) {
	for range 2 {
		if s, err := b.tryRedis(ctx); err == nil || errors.Is(err, errMissing) || ctx.Err() != nil {
			return s, err
		}
	}
	return b.tryRedis(ctx)
}

func (b *bench) tryRedis(ctx context.Context) (*redisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server %w", errMissing)
	}
	dir, err := b.folder("redis")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path,
		"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "everysec", "--daemonize", "no", "--loglevel", "warning")
	p, err := b.start("redis", cmd, syscall.SIGKILL) // its last save is not needed
	if err != nil {
		return nil, err
	}
	s := &redisServer{process: p, dir: dir, addr: "127.0.0.1:" + port}
	s.client = redis.NewClient(&redis.Options{
		Addr: s.addr, Protocol: 2, DisableIdentity: true,
		ReadTimeout: time.Minute,
	})
	err = b.answers(ctx, p, func(ctx context.Context) error {
		if err := tcp(ctx, s.addr); err != nil {
			return err
		}
		pid, err := s.info(ctx, "server", "process_id")
		if err == nil && int(pid) != p.pid() {
			err = errors.New("another server has the port")
		}
		return err
	})
	return s, err
}

// end also removes what the server kept.
func (s *redisServer) end() {
	_ = s.client.Close()
	s.process.end()
	remove(s.dir)
}

// info reads a number from INFO.
func (s *redisServer) info(ctx context.Context, section, field string) (float64, error) {
	text, err := s.client.Info(ctx, section).Result()
	if err != nil {
		return 0, fmt.Errorf("ask redis: %w", err)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return 0, fmt.Errorf("read %s: %w", field, err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("INFO of redis lacks %s", field)
}

// A postgres is a server with its folder and port.
type postgres struct {
	*process
	url string // without the name of a database
	n   int
}

// postgresServer starts PostgreSQL at its first call, if it is installed. PostgreSQL refuses to run as root: then it
// runs as the user postgres.
func (b *bench) postgresServer(ctx context.Context) (*postgres, error) {
	if b.postgres != nil {
		return b.postgres, nil
	}
	bin, err := postgresFolder()
	if err != nil {
		return nil, err
	}
	dir, err := b.folder("postgres")
	if err != nil {
		return nil, err
	}
	as, err := notRoot(dir)
	if err != nil {
		return nil, err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), //nolint:gosec // found above
		"-D", dir, "-U", "bench", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
	initdb.SysProcAttr = as()
	initdb.Dir = dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(bin, "postgres"), //nolint:gosec // found above
		"-D", dir, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "shared_buffers=512MB", "-c", "max_wal_size=4GB", "-c", "wal_compression=on")
	cmd.SysProcAttr, cmd.Dir = as(), dir
	p, err := b.start("postgres", cmd, syscall.SIGINT)
	if err != nil {
		return nil, err
	}
	s := &postgres{process: p, url: "postgres://bench@127.0.0.1:" + port + "/"}
	b.atEnd(p.end)
	if err := b.answers(ctx, p, func(ctx context.Context) error { return s.run(ctx, "SELECT 1") }); err != nil {
		return nil, err
	}
	b.postgres = s
	return s, nil
}

// database makes an empty database and returns a function that drops it.
func (s *postgres) database(ctx context.Context) (url string, drop func(), err error) {
	s.n++
	name := fmt.Sprintf("bench%d", s.n)
	drop = func() {
		_ = s.run(ctx, "DROP DATABASE "+name+" WITH (FORCE)") // if it fails, the server's folder is removed later
	}
	return s.url + name, drop, s.run(ctx, "CREATE DATABASE "+name)
}

func (s *postgres) run(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.url+"postgres")
	if err != nil {
		return fmt.Errorf("connect to postgres: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("ask postgres: %w", err)
	}
	return nil
}

// postgresFolder finds initdb and postgres: on the path, or where Debian puts the newest.
func postgresFolder() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is valid
	if len(found) == 0 {
		return "", fmt.Errorf("PostgreSQL %w", errMissing)
	}
	return filepath.Dir(slices.Max(found)), nil
}

// notRoot gives a folder to the user postgres if this program runs as root, and returns the attributes of processes of
// that user.
func notRoot(dir string) (func() *syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return func() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("find a user for postgres: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, fmt.Errorf("find a user for postgres: %w", err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, fmt.Errorf("find a user for postgres: %w", err)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return nil, fmt.Errorf("give a folder to postgres: %w", err)
	}
	return func() *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}, nil
}

// answers waits until a server answers. If it does not, it ends the server.
func (b *bench) answers(ctx context.Context, p *process, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
			continue
		case <-p.gone:
		case <-ctx.Done():
		}
		p.end()
		return p.failed(fmt.Errorf("does not answer: %w", err))
	}
}

// freePort returns a port that is free now.
func freePort(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }() // nothing was accepted
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}

// tcp returns an error unless a server listens. go-redis would log each failed attempt to connect.
func tcp(ctx context.Context, addr string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	_ = conn.Close() // nothing was written
	return nil
}
