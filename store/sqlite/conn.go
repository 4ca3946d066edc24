package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	engine "modernc.org/sqlite"

	"github.com/ringback/ringback/store/sqlite/file"
)

// A conn is one connection to the database with its prepared statements, for one goroutine at a time. It talks to the
// driver itself: at tens of thousands of statements a second the layers of database/sql cost as much as SQLite.
type conn struct {
	raw   driverConn
	stmts [statements]driverStmt
	args  []driver.NamedValue
}

// driverConn and driverStmt are what the driver's connections and statements can do.
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

// shared is the context of everything that a transaction does: it serves many callers, and none of them can end it.
var shared = context.Background()

// busyTimeout is how long, in milliseconds, a statement waits for another process's lock, such as a shell's.
const busyTimeout = 1000

// cacheSize is what a connection keeps of the file, in KiB. The system keeps the rest; a larger one is memory twice, and
// SQLite goes over all of it at each commit after which a page of an index was split.
const cacheSize = 8 << 10

// Removed rows are overwritten in the file, since headers may hold secrets. Large bodies are not: zeros cost as much to write as
// the body did.
const (
	zeroed    = "PRAGMA secure_delete=ON;"
	notZeroed = "PRAGMA secure_delete=FAST;"
)

// connect opens the file. A reader's connection refuses to write.
func connect(path string, reader bool) (*conn, error) {
	c, err := connectWith(path, "mode=rw") // a file that is gone is not created again
	if err != nil {
		return nil, err
	}
	pragmas := fmt.Sprintf("PRAGMA busy_timeout=%d; PRAGMA cache_size=-%d; PRAGMA wal_autocheckpoint=0;", busyTimeout, cacheSize) + zeroed
	if reader {
		pragmas += " PRAGMA query_only=1;"
	}
	if err := c.execText(pragmas); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// connectAgain opens another connection to a database in use, unless one of its files was removed or replaced.
func connectAgain(path string, files *file.Watch, reader bool) (*conn, error) {
	if err := files.Check(); err != nil {
		return nil, err
	}
	return connect(path, reader)
}

// connectImmutable opens a file without writers, to read it without its log, locks, or a file beside it.
func connectImmutable(path string) (*conn, error) {
	return connectWith(path, "mode=ro&immutable=1")
}

func connectWith(path, parameters string) (*conn, error) {
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: parameters}
	opened, err := (&engine.Driver{}).Open(dsn.String())
	if err != nil {
		return nil, &diskError{err}
	}
	raw, ok := opened.(driverConn)
	if !ok {
		return nil, errors.Join(errors.New("the driver lacks a method that this engine needs"), opened.Close())
	}
	return &conn{raw: raw}, nil
}

func (c *conn) close() error {
	var faults []error
	for i, stmt := range c.stmts {
		if stmt != nil {
			faults = append(faults, stmt.Close())
			c.stmts[i] = nil
		}
	}
	return errors.Join(append(faults, c.raw.Close())...)
}

// exec runs a prepared statement that answers no rows, and returns how many it changed.
func (c *conn) exec(id statement, args ...driver.Value) (int64, error) {
	stmt, err := c.stmt(id)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(shared, c.named(args))
	if err != nil {
		return 0, &diskError{err}
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return 0, &diskError{err}
	}
	return changed, nil
}

// errStop, from the function that is called with every row of a query, ends the query without a fault.
var errStop = errors.New("no more rows are wanted")

// query runs a prepared statement and calls each with every row; the row is each's to keep.
func (c *conn) query(ctx context.Context, id statement, each func([]driver.Value) error, args ...driver.Value) error {
	stmt, err := c.stmt(id)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, c.named(args))
	return readRows(rows, err, each)
}

// queryText is query for SQL that is not worth preparing.
func (c *conn) queryText(ctx context.Context, sql string, each func([]driver.Value) error) error {
	rows, err := c.raw.QueryContext(ctx, sql, nil)
	return readRows(rows, err, each)
}

func readRows(rows driver.Rows, err error, each func([]driver.Value) error) error {
	if err != nil {
		return &diskError{err}
	}
	width := len(rows.Columns())
	for {
		row := make([]driver.Value, width)
		if err = rows.Next(row); err != nil {
			break
		}
		if err = each(row); errors.Is(err, errStop) {
			break
		} else if err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, errStop) {
		err = nil
	}
	if err = errors.Join(err, rows.Close()); err != nil {
		return &diskError{err}
	}
	return nil
}

// execText runs SQL that is not worth preparing, several statements too.
func (c *conn) execText(sql string) error {
	if _, err := c.raw.ExecContext(shared, sql, nil); err != nil {
		return &diskError{err}
	}
	return nil
}

// written counts the pages that the connection has written since the last call.
func (c *conn) written() int {
	pages, _, err := c.raw.Status(engine.DBStatusCacheWrite, true)
	if err != nil {
		return 0 // only for an unknown counter
	}
	return pages
}

func (c *conn) stmt(id statement) (driverStmt, error) {
	if c.stmts[id] != nil {
		return c.stmts[id], nil
	}
	prepared, err := c.raw.Prepare(statementText[id])
	if err != nil {
		return nil, &diskError{fmt.Errorf("prepare %q: %w", statementText[id], err)}
	}
	stmt, ok := prepared.(driverStmt)
	if !ok {
		return nil, errors.Join(errors.New("the driver lacks a method that this engine needs"), prepared.Close())
	}
	c.stmts[id] = stmt
	return stmt, nil
}

// named numbers the arguments, in a buffer that the next call reuses.
func (c *conn) named(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}

// integer, text and blob read a column; NULL is the zero value.
func integer(v driver.Value) int64 { i, _ := v.(int64); return i }
func text(v driver.Value) string   { s, _ := v.(string); return s }
func blob(v driver.Value) []byte   { b, _ := v.([]byte); return b }

// orZero stores zero as NULL.
func orZero(n int64) driver.Value {
	if n == 0 {
		return nil
	}
	return n
}

// orNull stores the empty string as NULL.
func orNull(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}
