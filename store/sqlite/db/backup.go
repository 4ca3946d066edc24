package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	lib "modernc.org/sqlite/lib"
)

// A Copy is the result of Backup or Restore.
type Copy struct {
	Path string // of the copy
	Jobs int64  // rows of Schema.Counted in it
	// Aside is the path to which Restore has moved the former database and its log; empty: there was no database.
	Aside string
}

// Backup copies a database, in use or not, to a file that must not exist, and checks the copy. The copy is one state of
// the database and needs no log; its owner alone can read it. Meanwhile the log of a database in use grows.
func Backup(ctx context.Context, schema Schema, path, to string) (Copy, error) {
	path, err := Resolve(path)
	if err != nil {
		return Copy{}, err
	}
	if _, err := os.Stat(path); err != nil {
		return Copy{}, fmt.Errorf("find the database: %w", err)
	}
	if to, err = filepath.Abs(to); err != nil {
		return Copy{}, fmt.Errorf("find the place of the copy: %w", err)
	}
	if _, err := os.Lstat(to); err == nil {
		return Copy{}, fmt.Errorf("%s exists already: a backup overwrites nothing", to)
	}
	if err := checkLogUnlessInUse(ctx, path); err != nil {
		return Copy{}, err
	}
	jobs, err := copyDatabase(ctx, schema, path, to)
	return Copy{Path: to, Jobs: jobs}, err
}

// checkLogUnlessInUse is checkLog for a database that no other process uses. Another process has checked the log, which
// cannot be read while it is written.
func checkLogUnlessInUse(ctx context.Context, path string) error {
	return withoutOwner(path, func() error { return checkLog(ctx, path) })
}

// Restore replaces a database by a copy of another file: a backup, or the files of a database that was not in use. The
// copy is read through SQLite, with the log beside it if there is one, and checked before anything is changed. The file
// at from stays as it is. The former database is moved aside with its log. Restore fails while a process uses the
// database.
func Restore(ctx context.Context, schema Schema, from, path string, log *slog.Logger) (_ Copy, err error) {
	if from, err = Resolve(from); err != nil {
		return Copy{}, err
	}
	if path, err = Resolve(path); err != nil {
		return Copy{}, err
	}
	source, err := os.Stat(from)
	if err != nil {
		return Copy{}, fmt.Errorf("find the backup: %w", err)
	}
	lock, err := acquireLock(ctx, path, true, log)
	if err != nil {
		return Copy{}, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if target, err := os.Stat(path); err == nil && os.SameFile(source, target) {
		return Copy{}, fmt.Errorf("%s is the database itself", from)
	}
	if err := checkLogUnlessInUse(ctx, from); err != nil {
		return Copy{}, err
	}
	restored := path + ".restoring"
	if err := removeFile(restored); err != nil { // of a restore that was interrupted
		return Copy{}, err
	}
	jobs, err := copyDatabase(ctx, schema, from, restored)
	if err != nil {
		return Copy{}, err
	}
	aside, err := moveAside(path, time.Now())
	if err != nil {
		return Copy{}, err
	}
	if err := os.Rename(restored, path); err != nil {
		return Copy{}, fmt.Errorf("put the copy into its place: %w", err)
	}
	return Copy{Path: path, Jobs: jobs, Aside: aside}, syncName(path)
}

// moveAside gives a database and its log another name, which it returns; empty: there was nothing in it. The database
// keeps its old name until the copy takes it: a process that starts meanwhile finds a file with two names and refuses
// it, instead of making an empty one.
func moveAside(path string, now time.Time) (aside string, err error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		// A log without a database is kept, too.
		if _, err := os.Stat(path + WAL); err != nil {
			return "", removeFile(path + SHM)
		}
	}
	aside = path + ".before-" + now.UTC().Format("20060102T150405.000Z")
	if err := os.Link(path, aside); err != nil {
		return "", fmt.Errorf("keep the database that was there: %w", err)
	}
	if err := os.Rename(path+WAL, aside+WAL); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("keep the log that was there: %w", err)
	}
	return aside, removeFile(path + SHM)
}

// copyDatabase writes one state of a database to another file, whole or not at all, and counts its rows.
func copyDatabase(ctx context.Context, schema Schema, from, to string) (jobs int64, err error) {
	c, err := connectToCopy(from)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", from, Unavailable(err))
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := schema.check(ctx, c, from); err != nil {
		return 0, err
	}
	partial := to + ".partial"
	if err := removeFile(partial); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeFile(partial), removeFile(partial+"-journal"))
		}
	}()
	if err := Create(partial); err != nil { // for its owner alone
		return 0, err
	}
	if err := c.ints(ctx, "VACUUM INTO '"+strings.ReplaceAll(partial, "'", "''")+"'"); err != nil {
		return 0, fmt.Errorf("copy %s: %w", from, Unavailable(err))
	}
	if jobs, err = verifyCopy(ctx, schema, partial); err != nil {
		return 0, err
	}
	if err := syncFile(partial); err != nil {
		return 0, err
	}
	if err := os.Rename(partial, to); err != nil {
		return 0, fmt.Errorf("name the copy: %w", err)
	}
	return jobs, syncName(to)
}

// connectToCopy opens a database, in use or not, to read all of it. It changes neither the file nor its log.
func connectToCopy(path string) (*Conn, error) {
	c, err := connectWith(sqliteDriver, path, "mode=ro")
	if err != nil {
		return nil, err
	}
	err = c.execText(fmt.Sprintf("PRAGMA busy_timeout=%d; PRAGMA schema_version", busyTimeout))
	if err == nil {
		return c, nil
	}
	err = errors.Join(err, c.close())
	if info, missing := os.Stat(path + WAL); primaryCode(err) == lib.SQLITE_CANTOPEN &&
		(missing != nil || info.Size() == 0) {
		return connectImmutable(path) // in a folder where nothing can be written, so nobody writes it
	}
	return nil, err
}

// verifyCopy reads all of a copy and counts its rows.
func verifyCopy(ctx context.Context, schema Schema, path string) (rows int64, err error) {
	c, err := connectImmutable(path)
	if err != nil {
		return 0, fmt.Errorf("open the copy: %w", Unavailable(err))
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var faults []string
	if err := c.QueryText(ctx, "PRAGMA integrity_check(3)", func(v []driver.Value) error {
		if found := Text(v[0]); found != "ok" {
			faults = append(faults, found)
		}
		return nil
	}); err != nil {
		return 0, fmt.Errorf("check the copy: %w", Unavailable(err))
	}
	if len(faults) > 0 {
		return 0, fmt.Errorf("the copy is damaged: %s", strings.Join(faults, "; "))
	}
	if err := c.ints(ctx, "SELECT count(*) FROM "+schema.Counted, &rows); err != nil {
		return 0, fmt.Errorf("check the copy: %w", Unavailable(err))
	}
	return rows, nil
}
