package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
)

// Dialect is a kind of database.
type Dialect int

// The kinds of databases.
const (
	// PostgreSQL 10 or newer.
	PostgreSQL Dialect = iota + 1
	// MySQL 8.0.1 or newer, or MariaDB 10.6 or newer, with InnoDB.
	MySQL
	// SQLite 3.35 or newer. Set a busy timeout: without one a statement fails whenever another connection writes.
	SQLite
)

// Schema returns the statements that create the table and its index, unless they exist. MySQL's is one statement, so
// that it needs no multiStatements.
func (d Dialect) Schema() string {
	switch d {
	case PostgreSQL:
		return schemaPostgreSQL
	case MySQL:
		return schemaMySQL
	case SQLite:
		return schemaSQLite
	}
	panic(d.unknown())
}

func (d Dialect) unknown() string {
	return "outbox: unknown dialect " + strconv.Itoa(int(d)) + ": use outbox.PostgreSQL, outbox.MySQL or outbox.SQLite"
}

// Numbers in seq are never given twice: a relay whose lease has ended must not delete a newer job.
const (
	schemaPostgreSQL = `CREATE TABLE IF NOT EXISTS ringback_outbox (
	seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id          varchar(64) NOT NULL,       -- of the job
	job         bytea NOT NULL,             -- its JSON
	size        integer NOT NULL,           -- bytes of the JSON
	added_at    bigint NOT NULL,            -- times are milliseconds since 1970
	next_try_at bigint NOT NULL DEFAULT 0,  -- also the end of a relay's lease; 0: now
	tries       integer NOT NULL DEFAULT 0, -- how often it was refused, without quotas and faults
	problem     text                        -- why, the last time
);
CREATE INDEX IF NOT EXISTS ringback_outbox_next ON ringback_outbox (next_try_at, seq);
`
	schemaMySQL = `CREATE TABLE IF NOT EXISTS ringback_outbox (
	seq         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	id          VARCHAR(64) NOT NULL,      -- of the job
	job         LONGBLOB NOT NULL,         -- its JSON
	size        INT NOT NULL,              -- bytes of the JSON
	added_at    BIGINT NOT NULL,           -- times are milliseconds since 1970
	next_try_at BIGINT NOT NULL DEFAULT 0, -- also the end of a relay's lease; 0: now
	tries       INT NOT NULL DEFAULT 0,    -- how often it was refused, without quotas and faults
	problem     TEXT,                      -- why, the last time
	INDEX ringback_outbox_next (next_try_at, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
`
	schemaSQLite = `CREATE TABLE IF NOT EXISTS ringback_outbox (
	seq         INTEGER PRIMARY KEY AUTOINCREMENT,
	id          TEXT NOT NULL,              -- of the job
	job         BLOB NOT NULL,              -- its JSON
	size        INTEGER NOT NULL,           -- bytes of the JSON
	added_at    INTEGER NOT NULL,           -- times are milliseconds since 1970
	next_try_at INTEGER NOT NULL DEFAULT 0, -- also the end of a relay's lease; 0: now
	tries       INTEGER NOT NULL DEFAULT 0, -- how often it was refused, without quotas and faults
	problem     TEXT                        -- why, the last time
);
CREATE INDEX IF NOT EXISTS ringback_outbox_next ON ringback_outbox (next_try_at, seq);
`
)

// maxBatch is the number of rows that a relay reserves at a time.
const maxBatch = 100

// Conditions for rows, each with two times.
const (
	isDue = `next_try_at BETWEEN ? AND ?`
	// isAhead: the row waits beyond the first time without a problem, or beyond the second.
	isAhead = `next_try_at > ? AND (problem IS NULL OR next_try_at > ?)`
)

// Statements. A %s is a list of placeholders, a %w a condition.
const (
	insertJobs = `INSERT INTO ringback_outbox (id, job, size, added_at) VALUES `
	lockFound  = `SELECT seq, id, size, tries, added_at FROM ringback_outbox WHERE %w ORDER BY next_try_at, seq ` +
		`LIMIT 100 FOR UPDATE SKIP LOCKED`
	leaseRows = `UPDATE ringback_outbox SET next_try_at = ? WHERE seq IN (%s)`
	// SQLite locks the whole database, and a transaction that has begun with a SELECT cannot wait for that lock.
	leaseFound = `UPDATE ringback_outbox SET next_try_at = ? WHERE seq IN (SELECT seq FROM ringback_outbox WHERE %w ` +
		`ORDER BY next_try_at, seq LIMIT 100) RETURNING seq, id, size, tries, added_at`
	anyFound    = `SELECT 1 FROM ringback_outbox WHERE %w LIMIT 1`
	selectJobs  = `SELECT seq, job FROM ringback_outbox WHERE next_try_at = ? AND seq IN (%s)`
	deleteRows  = `DELETE FROM ringback_outbox WHERE next_try_at = ? AND seq IN (%s)`
	releaseRows = `UPDATE ringback_outbox SET next_try_at = 0 WHERE next_try_at = ? AND seq IN (%s)`
	refuseRow   = `UPDATE ringback_outbox SET next_try_at = ?, tries = tries + ?, problem = ? WHERE next_try_at = ? ` +
		`AND seq = ?`
	countRows = `SELECT COUNT(*), COUNT(CASE WHEN tries > 0 THEN 1 END), COALESCE(MIN(added_at), 0) FROM ` +
		`ringback_outbox`
)

// where returns a statement with a condition.
func (d Dialect) where(statement, condition string) string {
	return d.bind(strings.Replace(statement, "%w", condition, 1))
}

// bind returns a statement with the placeholders of the dialect instead of question marks.
func (d Dialect) bind(statement string) string {
	if d != PostgreSQL {
		return statement
	}
	parts := strings.Split(statement, "?")
	var b strings.Builder
	b.WriteString(parts[0])
	for i, part := range parts[1:] {
		b.WriteString("$" + strconv.Itoa(i+1) + part)
	}
	return b.String()
}

// list returns a statement with a list of rows, and its arguments after those that are given. The list is filled up
// with the last row to a power of two, so that drivers that cache prepared statements see few of them.
func (d Dialect) list(statement string, rows []*row, args ...any) (string, []any) {
	n := 1
	for n < len(rows) {
		n *= 2
	}
	for i := range n {
		args = append(args, rows[min(i, len(rows)-1)].seq)
	}
	marks := strings.Join(slices.Repeat([]string{"?"}, n), ", ")
	return d.bind(strings.Replace(statement, "%s", marks, 1)), args
}

// begin begins a transaction of a relay. A stricter isolation locks the gaps between rows in MySQL, so that Add would
// wait.
func (d Dialect) begin(ctx context.Context, db *sql.DB) (*sql.Tx, error) {
	options := &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	if d == SQLite {
		options = nil
	}
	return db.BeginTx(ctx, options) // the caller says it
}

// execute executes one statement of a relay.
func (d Dialect) execute(ctx context.Context, db *sql.DB, statement string, args []any) error {
	if d != MySQL {
		_, err := db.ExecContext(ctx, statement, args...)
		return err // the caller says it
	}
	tx, err := d.begin(ctx, db)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
		return err // the caller says it
	}
	return tx.Commit() // the caller says it
}

// claim reserves rows that meet a condition, at most maxBatch, and returns them.
func (d Dialect) claim(
	ctx context.Context, db *sql.DB, condition string, times [2]int64, until int64,
) (rows []*row, err error) {
	statement, args := d.where(lockFound, condition), []any{times[0], times[1]}
	if d == SQLite {
		statement, args = d.where(leaseFound, condition), []any{until, times[0], times[1]}
	}
	tx, err := d.begin(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if rows, err = readRows(ctx, tx, statement, args); err != nil || len(rows) == 0 {
		return nil, err
	}
	if d != SQLite {
		lease, args := d.list(leaseRows, rows, until)
		if _, err = tx.ExecContext(ctx, lease, args...); err != nil {
			return nil, err // the caller says it
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return cmp.Compare(a.seq, b.seq) })
	return rows, tx.Commit() // the caller says it
}

func readRows(ctx context.Context, tx *sql.Tx, statement string, args []any) (all []*row, err error) {
	found, err := tx.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err // the caller says it
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		r := new(row)
		if err := found.Scan(&r.seq, &r.id, &r.size, &r.tries, &r.addedAt); err != nil {
			return nil, err // the caller says it
		}
		all = append(all, r)
	}
	return all, found.Err() // the caller says it
}
