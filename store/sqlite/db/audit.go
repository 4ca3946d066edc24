package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
)

// A File is a database that is read beside the process that uses it, or changed while none does. It is used by one
// goroutine.
type File struct {
	*Conn
	// InUse says whether another process used the database when it was opened. A File that may be changed has no other
	// user.
	InUse bool
	lock  *fileLock // nil: the file may only be read
}

// OpenFile opens an existing database. With change it locks it, and fails while a process uses it.
func OpenFile(ctx context.Context, schema Schema, path string, change bool, log *slog.Logger) (_ *File, err error) {
	if path, err = Resolve(path); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("find the database: %w", err)
	}
	f := &File{InUse: !change}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if change {
		if f.lock, err = acquireLock(ctx, path, false, log); err != nil {
			return nil, err
		}
		err = checkLog(ctx, path)
	} else {
		err = withoutOwner(path, func() error {
			f.InUse = false
			return checkLog(ctx, path)
		})
	}
	if err != nil {
		return nil, err
	}
	if change {
		f.Conn, err = connect(sqliteDriver, path, false)
	} else {
		f.Conn, err = connectToCopy(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, Unavailable(err))
	}
	return f, schema.check(ctx, f.Conn, path)
}

// Snapshot runs do on the state of the last commit. Meanwhile the log of a database in use grows.
func (f *File) Snapshot(ctx context.Context, do func(context.Context, *Conn) error) error {
	return Unavailable(f.snapshot(ctx, do))
}

// Change runs do in a transaction, which an error undoes.
func (f *File) Change(do func() error) error {
	if _, err := f.Exec(beginWrite); err != nil {
		return Unavailable(err)
	}
	err := do()
	end := commit
	if err != nil {
		end = rollback
	}
	if _, failed := f.Exec(end); failed != nil {
		err = errors.Join(err, failed)
	}
	return Unavailable(err)
}

// Close closes the database and releases its lock.
func (f *File) Close() (err error) {
	if f.Conn != nil {
		err = f.close()
	}
	if f.lock != nil {
		err = errors.Join(err, f.lock.Unlock())
	}
	return err
}
