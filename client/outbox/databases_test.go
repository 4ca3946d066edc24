package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/outbox"
	"github.com/ringback/ringback/internal/testkit"
)

// database is an empty database with the table.
type database struct {
	dialect outbox.Dialect
	db      *sql.DB
}

// onDatabases runs a test on a real database of each kind.
func onDatabases(t *testing.T, test func(t *testing.T, d database)) {
	t.Run("SQLite", func(t *testing.T) {
		test(t, database{outbox.SQLite, openSQLite(t)})
	})
	t.Run("PostgreSQL", func(t *testing.T) { test(t, openServer(t, outbox.PostgreSQL, "postgres", postgres)) })
	t.Run("MySQL", func(t *testing.T) { test(t, openServer(t, outbox.MySQL, "mysql", mariadb)) })
}

// openServer opens a database on a server with a new table.
func openServer(t *testing.T, d outbox.Dialect, driver string, server func() (source string, err error)) database {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server")
	}
	source, err := server()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.ExecContext(t.Context(), "DROP TABLE IF EXISTS ringback_outbox")
	require.NoError(t, err)
	for range 2 { // the second time it exists
		_, err = db.ExecContext(t.Context(), d.Schema())
		require.NoError(t, err)
	}
	return database{d, db}
}

func TestDatabases_RegisterWhatIsCommitted(t *testing.T) {
	onDatabases(t, func(t *testing.T, d database) {
		srv := newServer()
		relay, _ := runRelay(t, d.db, d.dialect, srv.client(t), outbox.Options{Poll: time.Hour})
		add(t, d.db, d.dialect, numbered("a", 150)...)
		tx, err := d.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, d.dialect.Add(t.Context(), tx, numbered("rolled-back", 3)...))
		require.NoError(t, tx.Rollback())
		srv.set(func() {
			srv.problems["b"] = &client.Problem{Status: 422, Code: "invalid_field", Detail: "a text \x00 with ü"}
		})
		add(t, d.db, d.dialect, client.Job{ID: "b"}, client.Job{ID: "c", Body: "grüße 🚀"})
		began := time.Now()
		relay.Wake()
		srv.awaitRegistered(t, 151)
		require.Equal(t, append(idsOf(numbered("a", 150)), "c"), srv.registered())
		require.Contains(t, srv.jobs["c"], `"body":"grüße 🚀"`)
		var left []entry
		require.Eventually(t, func() bool {
			left = entries(t, d.db)
			return len(left) == 1 && left[0].tries == 1
		}, 5*time.Minute, time.Millisecond)
		require.Equal(t, "b", left[0].id)
		require.Equal(t, "422 invalid_field: a text  with ü", left[0].problem)
		require.LessOrEqual(t, left[0].next, 18*time.Second)
		require.GreaterOrEqual(t, left[0].next, 2*time.Second-time.Since(began))
		stats, err := relay.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(1), stats.Jobs)
		require.Equal(t, int64(1), stats.Refused)
	})
}

func TestDatabases_ShareWorkAmongRelays(t *testing.T) {
	onDatabases(t, func(t *testing.T, d database) {
		srv := newServer()
		relays, jobs := 4, testkit.Of(400, 1000)
		var adding sync.WaitGroup
		for n := range relays {
			relay, _ := runRelay(t, d.db, d.dialect, srv.client(t), outbox.Options{Poll: 10 * time.Millisecond})
			adding.Go(func() {
				for part := range slices.Chunk(numbered(fmt.Sprintf("r%d", n), jobs/relays), 5) {
					add(t, d.db, d.dialect, part...)
					relay.Wake()
				}
			})
		}
		adding.Wait()
		srv.awaitRegistered(t, jobs)
		require.Eventually(t, func() bool { return len(entries(t, d.db)) == 0 }, 5*time.Minute, time.Millisecond)
		ids := srv.registered()
		slices.Sort(ids)
		require.Len(t, slices.Compact(ids), jobs)
		require.Len(t, srv.registered(), jobs, "no job is registered by two relays")
	})
}

// After a clock was set back, rows wait for longer than any relay lets them.
func TestDatabases_ClaimRowsThatAreAheadOfTheClock(t *testing.T) {
	onDatabases(t, func(t *testing.T, d database) {
		srv := newServer()
		rows := []struct {
			id      string
			ahead   time.Duration
			problem string
			claimed bool
		}{
			{"reserved", time.Hour + time.Minute, "", true},
			{"reserved-by-a-fast-clock", 90 * time.Second, "", false},
			{"reserved-for-half-an-hour", 30 * time.Minute, "", true},
			{"refused", 59 * time.Minute, "422 invalid_field", false},
			{"refused-ahead", 2 * time.Hour, "422 invalid_field", true},
		}
		var want []string
		for _, r := range rows {
			add(t, d.db, d.dialect, client.Job{ID: r.id})
			_, err := d.db.ExecContext(t.Context(), fmt.Sprintf(
				"UPDATE ringback_outbox SET next_try_at = %d, problem = NULLIF('%s', '') WHERE id = '%s'",
				time.Now().Add(r.ahead).UnixMilli(), r.problem, r.id))
			require.NoError(t, err)
			if r.claimed {
				want = append(want, r.id)
			}
		}
		var logs testkit.Log
		relay, stop := runRelay(t, d.db, d.dialect, srv.client(t),
			outbox.Options{Logger: slog.New(slog.NewTextHandler(&logs, nil))})
		srv.awaitRegistered(t, len(want))
		stop()
		require.Equal(t, want, srv.registered())
		require.Equal(t, 1, strings.Count(logs.String(), "was the clock set back?"), logs.String())
		stats, err := relay.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, int64(len(want)), stats.ClaimedAhead)
		require.Equal(t, int64(2), stats.Jobs)
	})
}

func TestDatabases_NobodyWaitsForARelayThatWaits(t *testing.T) {
	onDatabases(t, func(t *testing.T, d database) {
		slow, srv := newServer(), newServer()
		asked, hang := make(chan struct{}), make(chan struct{})
		slow.before = func([]string) (*http.Response, error) {
			close(asked)
			<-hang
			return nil, nil
		}
		add(t, d.db, d.dialect, numbered("slow", 100)...)
		_, stop := runRelay(t, d.db, d.dialect, slow.client(t), outbox.Options{Poll: time.Hour})
		<-asked
		add(t, d.db, d.dialect, numbered("a", 100)...)
		_, stopOther := runRelay(t, d.db, d.dialect, srv.client(t), outbox.Options{Poll: time.Hour})
		srv.awaitRegistered(t, 100)
		require.Equal(t, idsOf(numbered("a", 100)), srv.registered())
		close(hang)
		slow.awaitRegistered(t, 100)
		stop()
		stopOther()
		require.Empty(t, entries(t, d.db))
	})
}

func TestDatabases_SkipRowsThatAreLocked(t *testing.T) {
	onDatabases(t, func(t *testing.T, d database) {
		if d.dialect == outbox.SQLite {
			return // it has one writer at a time
		}
		srv := newServer()
		add(t, d.db, d.dialect, numbered("a", 10)...)
		// else MySQL locks all rows that it reads
		tx, err := d.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		require.NoError(t, err)
		// by an operator, say
		_, err = tx.ExecContext(t.Context(), "UPDATE ringback_outbox SET tries = 0 WHERE id = 'a-3'")
		require.NoError(t, err)
		relay, _ := runRelay(t, d.db, d.dialect, srv.client(t), outbox.Options{Poll: time.Hour})
		srv.awaitRegistered(t, 9)
		require.NoError(t, tx.Commit())
		relay.Wake()
		srv.awaitRegistered(t, 10)
		require.Equal(t, "a-3", srv.registered()[9])
	})
}

// A stricter isolation would lock gaps between rows, into which Add inserts.
func TestRelay_ReadsOnlyWhatIsCommittedOnMySQL(t *testing.T) {
	d := openServer(t, outbox.MySQL, "mysql", mariadb)
	d.db.SetMaxOpenConns(1) // so that the log is of one session
	var log string
	require.NoError(t, d.db.QueryRowContext(t.Context(), "SELECT @@general_log_file").Scan(&log))
	before, err := os.ReadFile(log)
	require.NoError(t, err)
	srv := newServer()
	srv.problems["b"] = &client.Problem{Status: 422, Code: "invalid_field"}
	add(t, d.db, d.dialect, client.Job{ID: "a"}, client.Job{ID: "b"})
	_, stop := runRelay(t, d.db, d.dialect, srv.client(t), outbox.Options{Poll: time.Hour})
	require.Eventually(t, func() bool {
		left := entries(t, d.db)
		return len(left) == 1 && left[0].tries == 1
	}, 5*time.Minute, time.Millisecond)
	stop()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	changes, isolated := 0, false
	for line := range strings.Lines(string(text[len(before):])) {
		switch {
		case strings.Contains(line, "Query\tSET TRANSACTION ISOLATION LEVEL READ COMMITTED"):
			isolated = true
		case strings.Contains(line, "Execute\tDELETE"), strings.Contains(line, "Execute\tUPDATE"):
			require.True(t, isolated, line)
			changes++
		case strings.Contains(line, "Query\tCOMMIT"), strings.Contains(line, "Query\tROLLBACK"):
			isolated = false
		}
	}
	require.GreaterOrEqual(t, changes, 3, "reserve, delete, refuse")
}

// servers are the servers that were started, which are ended after the tests.
var servers []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range servers {
		end()
	}
	os.Exit(code)
}

// postgres starts PostgreSQL at the first call, and returns the source of its database. It refuses to run as root: then
// it runs as the user postgres.
var postgres = sync.OnceValues(func() (string, error) {
	initdb, err := find("initdb", "/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	dir, as, err := serverFolder("postgres")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(initdb, "-D", dir, "-U", "test", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
	cmd.SysProcAttr, cmd.Dir = as, dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	cmd = exec.Command(filepath.Join(filepath.Dir(initdb), "postgres"), "-D", dir, "-c", "listen_addresses=", "-c",
		"unix_socket_directories="+dir, "-c", "fsync=off", "-c", "shared_buffers=16MB")
	cmd.SysProcAttr, cmd.Dir = as, dir
	source := "host=" + dir + " user=test dbname=postgres sslmode=disable"
	return source, startServer(cmd, syscall.SIGQUIT, "postgres", source)
})

// mariadb starts MariaDB at the first call, and returns the source of its database.
var mariadb = sync.OnceValues(func() (string, error) {
	mariadbd, err := find("mariadbd", "/usr/sbin")
	if err != nil {
		return "", err
	}
	dir, _, err := serverFolder("")
	if err != nil {
		return "", err
	}
	socket := filepath.Join(dir, "socket")
	cmd := exec.Command(mariadbd, "--no-defaults", "--user="+strconv.Itoa(os.Getuid()), "--datadir="+dir,
		"--socket="+socket, "--skip-networking", "--skip-grant-tables",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M",
		"--general-log", "--general-log-file="+filepath.Join(dir, "general.log"))
	root := "root@unix(" + socket + ")/"
	if err := startServer(cmd, syscall.SIGKILL, "mysql", root); err != nil {
		return "", err
	}
	db, err := sql.Open("mysql", root)
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	_, err = db.Exec("CREATE DATABASE test")
	return root + "test", err
})

// find returns the path of a program, on the path or in folders that match a pattern.
func find(name, pattern string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	found, _ := filepath.Glob(filepath.Join(pattern, name)) // the pattern is valid
	if len(found) == 0 {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return slices.Max(found), nil
}

// serverFolder makes a folder for a server, and if this process is root's, attributes of a process of another user.
func serverFolder(name string) (string, *syscall.SysProcAttr, error) {
	dir, err := os.MkdirTemp("", "outbox-")
	if err != nil {
		return "", nil, err
	}
	servers = append(servers, func() { _ = os.RemoveAll(dir) })
	if os.Getuid() != 0 || name == "" {
		return dir, nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return "", nil, err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, os.Chown(dir,
		uid, gid)
}

// startServer starts a server and waits until it answers.
func startServer(cmd *exec.Cmd, stop syscall.Signal, driver, source string) error {
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return err
	}
	servers = slices.Insert(servers, 0, func() {
		_ = cmd.Process.Signal(stop)
		_ = cmd.Wait()
	})
	db, err := sql.Open(driver, source)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.MustCome)
	defer cancel()
	for {
		err := db.PingContext(ctx)
		if err == nil || ctx.Err() != nil || cmd.Process.Signal(syscall.Signal(0)) != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
