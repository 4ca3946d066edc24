package sqlite

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

	"github.com/ringback/ringback/store/sqlite/file"
)

// A Copy is what Backup or Restore has made.
type Copy struct {
	Path string // of the copy
	Jobs int64  // in it, ended ones among them
	// Aside is where Restore has moved the database that was there before, with its log beside it; empty: there was none.
	Aside string
}

// Backup copies a database, in use or not, to a file that does not exist yet, and checks the copy. The copy is one state
// of the database, needs no log, and its owner alone can read it. While it is made, the log of a database in use grows.
func Backup(ctx context.Context, path, to string) (Copy, error) {
	path, err := file.Resolve(path)
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
	jobs, err := copyDatabase(ctx, path, to)
	return Copy{Path: to, Jobs: jobs}, err
}

// checkLogUnlessInUse is checkLog for a database that no other process uses. Another process has checked the log, which
// cannot be read while it is written.
func checkLogUnlessInUse(ctx context.Context, path string) error {
	return file.WithoutOwner(path, func() error { return checkLog(ctx, path) })
}

// Restore puts a copy in a database's place: of a backup, or of the files of a database that was not in use. The copy is
// read through SQLite, with the log beside it if there is one, and checked, before anything is changed; it stays as it is.
// What was there before is moved aside with its log. It fails while a process uses the database.
func Restore(ctx context.Context, from, path string, log *slog.Logger) (_ Copy, err error) {
	if from, err = file.Resolve(from); err != nil {
		return Copy{}, err
	}
	if path, err = file.Resolve(path); err != nil {
		return Copy{}, err
	}
	source, err := os.Stat(from)
	if err != nil {
		return Copy{}, fmt.Errorf("find the backup: %w", err)
	}
	lock, err := file.Acquire(path, true, log)
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
	if err := file.Remove(restored); err != nil { // of a restore that was interrupted
		return Copy{}, err
	}
	jobs, err := copyDatabase(ctx, from, restored)
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
	return Copy{Path: path, Jobs: jobs, Aside: aside}, file.SyncName(path)
}

// moveAside gives a database and its log another name; empty: there was nothing in it. The database keeps its own until
// the copy takes it, so that no process which starts meanwhile finds none and makes an empty one: it has two names then,
// and is refused.
func moveAside(path string, now time.Time) (aside string, err error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		// A log without a database is kept none the less.
		if _, err := os.Stat(path + file.WAL); err != nil {
			return "", file.Remove(path + file.SHM)
		}
	}
	aside = path + ".before-" + now.UTC().Format("20060102T150405.000Z")
	if err := os.Link(path, aside); err != nil {
		return "", fmt.Errorf("keep the database that was there: %w", err)
	}
	if err := os.Rename(path+file.WAL, aside+file.WAL); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("keep the log that was there: %w", err)
	}
	return aside, file.Remove(path + file.SHM)
}

// copyDatabase writes one state of a database to another file, which is there whole or not at all, and counts its jobs.
func copyDatabase(ctx context.Context, from, to string) (jobs int64, err error) {
	c, err := connectToCopy(from)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", from, unavailable(err))
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := isOurs(ctx, c, from); err != nil {
		return 0, err
	}
	partial := to + ".partial"
	if err := file.Remove(partial); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Remove(partial), file.Remove(partial+"-journal"))
		}
	}()
	if err := file.Create(partial); err != nil { // for its owner alone
		return 0, err
	}
	if err := c.queryText(ctx, "VACUUM INTO '"+strings.ReplaceAll(partial, "'", "''")+"'", func([]driver.Value) error { return nil }); err != nil {
		return 0, fmt.Errorf("copy %s: %w", from, unavailable(err))
	}
	if jobs, err = verifyCopy(ctx, partial); err != nil {
		return 0, err
	}
	if err := file.Sync(partial); err != nil {
		return 0, err
	}
	if err := os.Rename(partial, to); err != nil {
		return 0, fmt.Errorf("name the copy: %w", err)
	}
	return jobs, file.SyncName(to)
}

// connectToCopy opens a database, in use or not, to read all of it, and changes neither it nor its log.
func connectToCopy(path string) (*conn, error) {
	c, err := connectWith(path, "mode=ro")
	if err != nil {
		return nil, err
	}
	err = c.execText(fmt.Sprintf("PRAGMA busy_timeout=%d; PRAGMA schema_version", busyTimeout))
	if err == nil {
		return c, nil
	}
	err = errors.Join(err, c.close())
	if info, missing := os.Stat(path + file.WAL); primaryCode(err) == lib.SQLITE_CANTOPEN && (missing != nil || info.Size() == 0) {
		return connectImmutable(path) // it lies where nothing can be written, so nobody writes it
	}
	return nil, err
}

// isOurs refuses what is no database of this program, or one with another schema.
func isOurs(ctx context.Context, c *conn, path string) error {
	var version, tables int64
	if err := c.queryText(ctx, "SELECT user_version, (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('meta', 'topics', 'queues', 'jobs')) FROM pragma_user_version", func(v []driver.Value) error {
		version, tables = integer(v[0]), integer(v[1])
		return nil
	}); err != nil {
		return fmt.Errorf("read %s: %w", path, unavailable(err))
	}
	if version == 0 || tables != 4 {
		return fmt.Errorf("%s is no database of this program", path)
	}
	return checkVersion(path, version)
}

// verifyCopy reads all of a copy.
func verifyCopy(ctx context.Context, path string) (jobs int64, err error) {
	c, err := connectImmutable(path)
	if err != nil {
		return 0, fmt.Errorf("open the copy: %w", unavailable(err))
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var faults []string
	if err := c.queryText(ctx, "PRAGMA integrity_check(3)", func(v []driver.Value) error {
		if found := text(v[0]); found != "ok" {
			faults = append(faults, found)
		}
		return nil
	}); err != nil {
		return 0, fmt.Errorf("check the copy: %w", unavailable(err))
	}
	if len(faults) > 0 {
		return 0, fmt.Errorf("the copy is damaged: %s", strings.Join(faults, "; "))
	}
	err = c.queryText(ctx, "SELECT count(*) FROM jobs", func(v []driver.Value) error {
		jobs = integer(v[0])
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("check the copy: %w", unavailable(err))
	}
	return jobs, nil
}
