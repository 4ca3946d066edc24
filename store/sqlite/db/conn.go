package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	engine "modernc.org/sqlite"
)

// A Conn is a connection with its prepared statements, for one goroutine at a time. It calls the driver directly: at
// tens of thousands of statements a second the layers of database/sql cost as much as SQLite.
type Conn struct {
	raw   driverConn
	stmts []driverStmt // by Statement; nil: not prepared yet
	args  []driver.NamedValue
}

// sqliteDriver is the driver of connections unless Options name another.
var sqliteDriver driver.Driver = &engine.Driver{}

// driverConn and driverStmt are the interfaces of the driver that a Conn needs.
type driverConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	engine.DBStatus
}

type driverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// shared is the context of a transaction: it serves many callers, and none of them can end it.
var shared = context.Background()

// busyTimeout is how long a statement waits for another process's lock, such as a shell's, in milliseconds.
const busyTimeout = 1000

// cacheSize is the page cache of a connection, in KiB. The system caches the rest of the file. SQLite walks over the
// whole cache at each commit that has split a page of an index.
const cacheSize = 8 << 10

// Removed rows are overwritten in the file, since they may hold secrets.
const (
	zeroed    = "PRAGMA secure_delete=ON;"
	notZeroed = "PRAGMA secure_delete=FAST;"
)

// connect opens a connection. A reader's refuses to write.
func connect(d driver.Driver, path string, reader bool) (*Conn, error) {
	c, err := connectWith(d, path, "mode=rw") // a file that is gone is not created again
	if err != nil {
		return nil, err
	}
	pragmas := fmt.Sprintf("PRAGMA busy_timeout=%d; PRAGMA cache_size=-%d; PRAGMA wal_autocheckpoint=0;",
		busyTimeout, cacheSize) + zeroed
	if reader {
		pragmas += " PRAGMA query_only=1;"
	}
	if err := c.execText(pragmas); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// connectImmutable opens a file that nobody writes, and reads it without its log, locks, or a file beside it.
func connectImmutable(path string) (*Conn, error) {
	return connectWith(sqliteDriver, path, "mode=ro&immutable=1")
}

func connectWith(d driver.Driver, path, parameters string) (*Conn, error) {
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: parameters}
	opened, err := d.Open(dsn.String())
	if err != nil {
		return nil, &Error{err}
	}
	raw := opened.(driverConn) //nolint:forcetypeassert // SQLite's driver has these methods
	return &Conn{raw: raw, stmts: make([]driverStmt, len(texts))}, nil
}

func (c *Conn) close() error {
	var faults []error
	for i, stmt := range c.stmts {
		if stmt != nil {
			faults = append(faults, stmt.Close())
			c.stmts[i] = nil
		}
	}
	return errors.Join(append(faults, c.raw.Close())...)
}

// Exec runs a statement that returns no rows, and returns how many rows it has changed.
func (c *Conn) Exec(id Statement, args ...driver.Value) (int64, error) {
	stmt, err := c.stmt(id)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(shared, c.named(args))
	if err != nil {
		return 0, &Error{err}
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return 0, &Error{err}
	}
	return changed, nil
}

// ErrStop, returned by the function that is called with each row of a query, ends the query without an error.
var ErrStop = errors.New("no more rows are wanted")

// Query runs a statement and calls each with every row. The slice is overwritten by the next row; each may keep its
// values.
func (c *Conn) Query(ctx context.Context, id Statement, each func([]driver.Value) error, args ...driver.Value) error {
	stmt, err := c.stmt(id)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, c.named(args))
	return readRows(rows, err, each)
}

// QueryText is Query for SQL that is used rarely.
func (c *Conn) QueryText(ctx context.Context, sql string, each func([]driver.Value) error) error {
	rows, err := c.raw.QueryContext(ctx, sql, nil)
	return readRows(rows, err, each)
}

// ints is QueryText for a row of integers.
func (c *Conn) ints(ctx context.Context, sql string, into ...*int64) error {
	return c.QueryText(ctx, sql, func(v []driver.Value) error {
		for i, n := range into {
			*n = Int(v[i])
		}
		return nil
	})
}

// readRows calls each with every row, as Conn.Query. The rows are closed even if each panics.
func readRows(rows driver.Rows, err error, each func([]driver.Value) error) (failed error) {
	if err != nil {
		return &Error{err}
	}
	defer func() {
		if err := rows.Close(); err != nil {
			failed = errors.Join(failed, &Error{err})
		}
	}()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return &Error{err}
		}
		if err := each(row); errors.Is(err, ErrStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// execText runs SQL that is used rarely, of one or several statements.
func (c *Conn) execText(sql string) error {
	if _, err := c.raw.ExecContext(shared, sql, nil); err != nil {
		return &Error{err}
	}
	return nil
}

// written returns how many pages the connection has written since the last call.
func (c *Conn) written() int {
	pages, _, _ := c.raw.Status(engine.DBStatusCacheWrite, true) // it fails for an unknown counter only
	return pages
}

func (c *Conn) stmt(id Statement) (driverStmt, error) {
	if c.stmts[id] != nil {
		return c.stmts[id], nil
	}
	prepared, err := c.raw.Prepare(texts[id])
	if err != nil {
		return nil, &Error{fmt.Errorf("prepare %q: %w", texts[id], err)}
	}
	c.stmts[id] = prepared.(driverStmt) //nolint:forcetypeassert // as above
	return c.stmts[id], nil
}

// named numbers the arguments, in a buffer that the next call overwrites.
func (c *Conn) named(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}
