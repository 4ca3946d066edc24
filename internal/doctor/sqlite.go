// This part of the package makes the doctor's checks of a SQLite store: its files, their disk, and what is in
// them. It changes nothing, and can run beside the process that uses the database, and in it.

package doctor

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// Bounds.
const (
	integrityTime = 3 * time.Second // of the check of the file's structure
	minFree       = 256 << 20       // bytes
)

// CheckSQLite returns the checks of a store: those of its files, and those of what is in them, which may take longer.
func CheckSQLite(subject, path string) []Check {
	return []Check{{
		Subject: subject, Names: []Name{SQLiteFiles},
		Run: func(context.Context) ([]Finding, error) { return SQLiteFiles.of(checkFiles(path)), nil },
	}, {
		Subject: subject, Names: []Name{SQLiteSpace},
		Run: func(context.Context) ([]Finding, error) {
			path, err := db.Resolve(path)
			if err != nil {
				return nil, err // it is the whole of it
			}
			free, err := db.FreeSpace(filepath.Dir(path))
			if err != nil {
				return nil, err // it is the whole of it
			}
			return SQLiteSpace.of(judgeSpace(free, sizeOf(path))), nil
		},
	}, {
		Subject: subject, Names: []Name{SQLiteLog, SQLiteSchema, SQLiteIntegrity},
		Run: func(ctx context.Context) ([]Finding, error) { return checkDatabase(ctx, path) },
	}}
}

// checkFiles looks at the files' places, owners and modes.
func checkFiles(path string) Finding {
	path, err := db.Resolve(path)
	if err != nil {
		return fault("Correct --store.", "%v", err)
	}
	if err := db.CheckWritable(path); err != nil {
		return fault("Correct --store, or make the folder and its files those of the user of the service "+
			"(chown -R).", "%v", err)
	}
	exposed, err := db.Exposed(path)
	if err != nil {
		return unknown("Run ringback doctor as the user of the service.", "%v", err)
	}
	var names []string
	for name, mode := range exposed {
		names = append(names, fmt.Sprintf("%s (mode %04o)", filepath.Base(name), mode))
	}
	slices.Sort(names)
	_, err = os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return good("%s does not exist yet: the service makes it", path)
	case len(names) > 0:
		return warn("chmod go-rwx them; Ringback does so at its start.",
			"others than the owner can read or write %s", strings.Join(names, ", "))
	}
	return good("%s is writable, and readable by its owner only", path)
}

// judgeSpace judges the free space of the disk; used is the size of the database's files.
func judgeSpace(free, used int64) Finding {
	const remedy = "Free space or enlarge the disk; on a full one registrations get 503, and a process does not start."
	seen := fmt.Sprintf("%s are free, the database takes %s", Size(free), Size(used))
	switch {
	case free < minFree/8:
		return fault(remedy, "%s", seen)
	case free < max(minFree, used/4):
		return warn(remedy, "%s", seen)
	}
	return good("%s", seen)
}

// sizeOf returns the size of the database's files in bytes.
func sizeOf(path string) (n int64) {
	for _, suffix := range db.Suffixes {
		if info, err := os.Stat(path + suffix); err == nil {
			n += info.Size()
		}
	}
	return n
}

// errNone is why nothing can be said about a database.
var errNone = errors.New("there is no database yet")

// checkDatabase opens the database as ringback verify does.
func checkDatabase(ctx context.Context, path string) (found []Finding, err error) {
	if path, err = db.Resolve(path); err != nil {
		return nil, err // it is the whole of it
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, errNone
	}
	f, err := db.OpenFile(ctx, table.Schema, path, false, slog.New(slog.DiscardHandler))
	if err != nil {
		return judgeOpening(err), err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	found = SQLiteSchema.of(good("schema %d", table.Schema.Version))
	mode := ""
	if err := f.QueryText(ctx, "PRAGMA journal_mode",
		func(v []driver.Value) error { mode = db.Text(v[0]); return nil }); err != nil {
		return found, db.Unavailable(err)
	}
	return slices.Concat(found, SQLiteLog.of(judgeLog(mode, db.LogBytes(path))),
		SQLiteIntegrity.of(checkIntegrity(ctx, f))), nil
}

// judgeOpening judges why a database cannot be opened.
func judgeOpening(err error) []Finding {
	switch {
	case db.IsForeignLog(err):
		return SQLiteLog.of(fault(
			"Run ringback restore with the backup (docs/sqlite.md#never-copy-a-file-over-ringbackdb).", "%v", err))
	case db.IsDamage(err):
		return SQLiteIntegrity.of(fault("Restore a backup (docs/sqlite.md#a-damaged-file).", "%v", err))
	}
	return SQLiteSchema.of(fault("Correct --store, or use the version of the program that made the file.", "%v", err))
}

func judgeLog(mode string, size int64) Finding {
	switch {
	case mode != "wal":
		return warn("Leave the file's mode to Ringback, which sets it at its start: PRAGMA journal_mode=WAL.",
			"journal_mode is %s, which another program must have set", mode)
	case size > db.LargeLog:
		return warn("End what reads the database for long, such as a shell or a backup that hangs "+
			"(docs/sqlite.md#a-log-that-grows): the log shrinks within seconds.", "the log (-wal) has %s, so a "+
			"reader keeps it from shrinking, and it grows until the disk is full", Size(size))
	}
	return good("journal_mode is wal; the log has %s and is synced before each answer", Size(size))
}

// checkIntegrity checks the structure of the file, as far as it comes in some seconds.
func checkIntegrity(ctx context.Context, f *db.File) Finding {
	ctx, cancel := context.WithTimeout(ctx, integrityTime)
	defer cancel()
	var faults []string
	err := f.QueryText(ctx, "PRAGMA quick_check(3)", func(v []driver.Value) error {
		if text := db.Text(v[0]); text != "ok" {
			faults = append(faults, strings.ReplaceAll(text, "\n", "; "))
		}
		return nil
	})
	switch {
	case len(faults) > 0 || db.IsDamage(err):
		if len(faults) == 0 {
			faults = []string{err.Error()}
		}
		return fault("Back up what can be read, check the disk, and restore (docs/sqlite.md#a-damaged-file).",
			"the file is damaged: %s", strings.Join(faults, "; "))
	case ctx.Err() != nil:
		return unknown("Run ringback backup, which checks its copy completely, or ringback verify.",
			"the file is too large to check in %s", integrityTime)
	case err != nil:
		return unknown("Run ringback doctor again, as the user of the service.", "%v", db.Unavailable(err))
	}
	return good("the structure of the file is whole")
}
