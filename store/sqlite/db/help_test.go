package db

import (
	"context"
	"database/sql/driver"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testSchema has a table of items.
var testSchema = Schema{
	Version: 2,
	SQL:     "CREATE TABLE items (n INTEGER PRIMARY KEY, body TEXT NOT NULL);", Counted: "items",
}

var (
	insertItem = NewStatement(`INSERT INTO items (body) VALUES (?)`)
	updateItem = NewStatement(`UPDATE items SET body = ? WHERE n <= ?`)
	countItems = NewStatement(`SELECT count(*) FROM items`)
)

// testTx is a unit of work without changes in memory.
type testTx struct{ *Tx }

func (testTx) Flush() error { return nil }
func (testTx) Apply()       {}
func (testTx) Undo()        {}

type (
	database = Writer[testTx]
	testCall = Call[testTx]
)

// A clock is a monotonic clock that a test moves.
type clock struct{ ns atomic.Int64 }

func (c *clock) pass(d time.Duration) { c.ns.Add(int64(d)) }

func options(t testing.TB) Options {
	start := time.Now()
	return Options{
		Path: filepath.Join(t.TempDir(), "jobs.db"), Schema: testSchema, Logger: slog.New(slog.DiscardHandler),
		Now: func() int64 { return int64(time.Since(start)) },
	}
}

// captureLog returns the log of databases that are opened with the options.
func captureLog(o *Options) *testkit.Log {
	l := &testkit.Log{}
	o.Logger = slog.New(slog.NewTextHandler(l, nil))
	return l
}

// openUnstarted opens a database without starting its writer.
func openUnstarted(ctx context.Context, o Options) (*database, error) {
	return Open(ctx, o, func(tx *Tx) testTx { return testTx{tx} })
}

// openDatabase opens a database that is closed when the test ends.
func openDatabase(t *testing.T, o Options) *database {
	t.Helper()
	d, err := openUnstarted(t.Context(), o)
	require.NoError(t, err)
	d.Start()
	t.Cleanup(func() {
		if !d.isClosing() {
			require.NoError(t, d.Close())
		}
	})
	return d
}

// insertCall returns a durable call that inserts n items of a size.
func insertCall(n, size int) *testCall {
	return &testCall{Verb: "add items", Durable: true, Weight: n, Run: func(tx testTx) error {
		for range n {
			if err := tx.Exec(insertItem, strings.Repeat("x", size)); err != nil {
				return err
			}
		}
		return nil
	}}
}

func add(t testing.TB, d *database, n int) {
	t.Helper()
	require.NoError(t, d.Submit(t.Context(), insertCall(n, 100)))
}

// updateCall returns a call that is not durable.
func updateCall() *testCall {
	return &testCall{
		Verb: "update items", Weight: 1,
		Run: func(tx testTx) error { return tx.Exec(updateItem, "updated", int64(1)) },
	}
}

// items counts the items of the last commit.
func items(ctx context.Context, d *database) (n int64, err error) {
	err = d.Read(ctx, "count items", func(ctx context.Context, c *Conn) error {
		return c.Query(ctx, countItems, func(v []driver.Value) error {
			n = Int(v[0])
			return nil
		})
	})
	return n, err
}

func requireItems(t testing.TB, d *database, want int) {
	t.Helper()
	n, err := items(t.Context(), d)
	require.NoError(t, err)
	require.EqualValues(t, want, n)
}

// inWriter runs a task in the writer, between two transactions, and waits until it is done.
func inWriter(t testing.TB, d *database, task func()) {
	t.Helper()
	done := make(chan struct{})
	d.later(func() {
		defer close(done)
		task()
	})
	<-done
}

// blockWriter keeps the writer from its next transaction until release is called.
func blockWriter(t *testing.T, d *database) (release func()) {
	t.Helper()
	gate := make(chan struct{})
	d.later(func() { <-gate })
	return sync.OnceFunc(func() { close(gate) })
}

// submitAll makes calls that wait for the writer together, and returns their errors.
func submitAll(t *testing.T, d *database, calls ...*testCall) []error {
	t.Helper()
	release := blockWriter(t, d)
	errs := make([]error, len(calls))
	var group sync.WaitGroup
	for i, c := range calls {
		group.Go(func() { errs[i] = d.Submit(t.Context(), c) })
	}
	waitForCalls(t, d, len(calls))
	release()
	group.Wait()
	return errs
}

// waitForCalls waits until n calls wait for the writer.
func waitForCalls(t *testing.T, d *database, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return d.Waiting() == n }, time.Minute, time.Millisecond)
}

// dial opens another connection.
func dial(t *testing.T, path string, reader bool) *Conn {
	t.Helper()
	c, err := connectWith(sqliteDriver, path, "mode=rw")
	require.NoError(t, err)
	if reader {
		require.NoError(t, c.execText("PRAGMA query_only=1"))
	}
	return c
}

// openReader opens a connection with a snapshot of the last commit.
func openReader(t *testing.T, path string) *Conn {
	t.Helper()
	c := dial(t, path, true)
	_, err := c.Exec(beginRead)
	require.NoError(t, err)
	require.NoError(t, c.Query(t.Context(), countItems, func([]driver.Value) error { return nil }))
	return c
}

// shell runs SQL on a file without opening it as a database.
func shell(t *testing.T, path, sql string) {
	t.Helper()
	require.NoError(t, Create(path))
	c := dial(t, path, false)
	require.NoError(t, c.execText(sql))
	require.NoError(t, c.close())
}

// hooked is a statement that calls hook before each use, with the number of uses, and fails with the error that hook
// returns.
type hooked struct {
	driverStmt
	used int
	hook func(used int) error
}

func (h *hooked) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	h.used++
	if err := h.hook(h.used); err != nil {
		return nil, err
	}
	return h.driverStmt.ExecContext(ctx, args)
}

// hookInto calls hook before each use of a statement of the writer, until unhook is called.
func hookInto(t *testing.T, d *database, id Statement, hook func(used int) error) (unhook func()) {
	t.Helper()
	h := &hooked{hook: hook}
	inWriter(t, d, func() {
		var err error
		h.driverStmt, err = d.conn.stmt(id)
		require.NoError(t, err)
		d.conn.stmts[id] = h
	})
	return func() { inWriter(t, d, func() { d.conn.stmts[id] = h.driverStmt }) }
}

// A codeError is an error with a result code of SQLite.
type codeError int

func (e codeError) Error() string { return "injected fault" }
func (e codeError) Code() int     { return int(e) }
