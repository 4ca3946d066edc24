package sqlite

import (
	"context"
	"database/sql/driver"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	engine "modernc.org/sqlite"

	"github.com/ringback/ringback/store/sqlite/db"
)

const commitSQL, beginSQL = "COMMIT", "BEGIN IMMEDIATE"

// A faultDriver is SQLite's driver, with errors injected into prepared statements.
type faultDriver struct{}

// faults are the hooks into the statements of a database file.
type faults struct {
	mu      sync.Mutex
	hooks   map[string]*hook // by SQL
	commits atomic.Int64
	fsync   atomic.Bool // PRAGMA synchronous=FULL
}

// A hook is called before each use of a statement, with how often it was used, and makes it fail with what it returns.
type hook struct {
	used int
	do   func(used int, args []driver.NamedValue) error
	read func() // called with each row
}

var allFaults sync.Map // path → *faults

func faultsOf(path string) *faults {
	f, _ := allFaults.LoadOrStore(path, &faults{hooks: make(map[string]*hook)})
	return f.(*faults)
}

func (f *faults) hook(sql string) *hook {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hooks[sql]
}

type driverConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	engine.DBStatus
}

type faultConn struct {
	driverConn
	faults *faults
}

func (faultDriver) Open(dsn string) (driver.Conn, error) {
	c, err := (&engine.Driver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	name, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	return &faultConn{c.(driverConn), faultsOf(name.Path)}, nil
}

func (c *faultConn) ExecContext(ctx context.Context, sql string, args []driver.NamedValue) (driver.Result, error) {
	switch sql {
	case "PRAGMA synchronous=FULL":
		c.faults.fsync.Store(true)
	case "PRAGMA synchronous=NORMAL":
		c.faults.fsync.Store(false)
	}
	return c.driverConn.ExecContext(ctx, sql, args)
}

func (c *faultConn) Prepare(sql string) (driver.Stmt, error) {
	s, err := c.driverConn.Prepare(sql)
	if err != nil {
		return nil, err
	}
	return &faultStmt{s.(driverStmt), sql, c.faults}, nil
}

type driverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type faultStmt struct {
	driverStmt
	sql    string
	faults *faults
}

func (s *faultStmt) use(args []driver.NamedValue) (*hook, error) {
	if s.sql == commitSQL {
		s.faults.commits.Add(1)
	}
	h := s.faults.hook(s.sql)
	if h == nil {
		return nil, nil
	}
	h.used++
	return h, h.do(h.used, args)
}

func (s *faultStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if _, err := s.use(args); err != nil {
		return nil, err
	}
	return s.driverStmt.ExecContext(ctx, args)
}

func (s *faultStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	h, err := s.use(args)
	if err != nil {
		return nil, err
	}
	rows, err := s.driverStmt.QueryContext(ctx, args)
	if err == nil && h != nil && h.read != nil {
		rows = countedRows{rows, h.read}
	}
	return rows, err
}

type countedRows struct {
	driver.Rows
	read func()
}

func (c countedRows) Next(into []driver.Value) error {
	c.read()
	return c.Rows.Next(into)
}

// hookInto calls do before each use of a statement of the store, until unhook is called.
func hookInto(t *testing.T, s *Store, id db.Statement, do func(int, []driver.NamedValue) error) (unhook func()) {
	t.Helper()
	return hookSQL(s, id.Text(), &hook{do: do})
}

func hookSQL(s *Store, sql string, h *hook) (unhook func()) {
	f := faultsOf(s.db.Path())
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hooks[sql] = h
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.hooks, sql)
	}
}

// dial opens a connection without hooks.
func dial(t testing.TB, path string) driverConn {
	t.Helper()
	c, err := (&engine.Driver{}).Open((&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}).String())
	require.NoError(t, err)
	return c.(driverConn)
}

// shell runs SQL on a file without a store.
func shell(t testing.TB, path, sql string) {
	t.Helper()
	require.NoError(t, db.Create(path))
	c := dial(t, path)
	_, err := c.ExecContext(t.Context(), sql, nil)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}
