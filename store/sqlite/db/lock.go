package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// A fileLock keeps other processes away from a database. It ends with the process, however it ends; the lock file
// stays.
type fileLock struct {
	file  *flock.Flock // <path>.lock
	inode io.Closer    // the database file itself
}

// Unlock releases the lock.
func (l *fileLock) Unlock() error {
	return errors.Join(l.inode.Close(), l.file.Unlock())
}

// Resolve returns the path of the database without symbolic links. SQLite names the files beside it (-wal, -shm) after
// that path, and so does the lock file: all names of a database share them.
func Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the database: %w", err)
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil // acquireLock reports it
	}
	if err != nil {
		return "", fmt.Errorf("find the folder of the database: %w", err)
	}
	path = filepath.Join(folder, filepath.Base(path))
	// A link may lead to a file that is yet to be made.
	for range 40 {
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // it is no link
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		if folder, err = filepath.EvalSymlinks(filepath.Dir(target)); err != nil {
			return "", fmt.Errorf("follow the link %s to the database: %w", path, err)
		}
		path = filepath.Join(folder, filepath.Base(target))
	}
	return "", fmt.Errorf("too many symbolic links lead from %s to a database", path)
}

// acquireLock locks a database and creates its file if it is missing. It fails while another process has the lock.
// Unless the file is going to be replaced, it also fails for a file with several hard links: the log lies beside one of
// the names, and a process that opens another name would not see it.
func acquireLock(ctx context.Context, path string, replace bool, log *slog.Logger) (*fileLock, error) {
	if err := checkPlace(path); err != nil {
		return nil, err
	}
	lock := flock.New(path+lockSuffix, flock.SetPermissions(0o600))
	ok, err := lockUnlessOwned(ctx, lock, log)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, errFolder(path)
	}
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("wait for the lock %s: %w", lock.Path(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w (the file system must have locks; network file systems are not supported)",
			lock.Path(), err)
	}
	if !ok {
		return nil, fmt.Errorf("another process uses the database %s (it holds %s)", path, lock.Path())
	}
	inode, err := lockDatabase(path, replace, log)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return &fileLock{file: lock, inode: inode}, nil
}

const (
	// shareTimeout bounds how long acquireLock waits for those that share the lock: they read the log, mostly for less
	// than a second. After shareWarning it says so.
	shareTimeout = 10 * time.Second
	shareWarning = time.Second
	sharePause   = 20 * time.Millisecond
)

// lockUnlessOwned takes a lock, unless another process has it as a whole. It waits for those that share it, until ctx
// ends.
func lockUnlessOwned(ctx context.Context, lock *flock.Flock, log *slog.Logger) (bool, error) {
	began, warned := time.Now(), false
	for ctx.Err() == nil {
		waited := time.Since(began)
		if ok, err := lock.TryLock(); ok || err != nil || waited > shareTimeout {
			return ok, err
		}
		shared := flock.New(lock.Path())
		if ok, err := shared.TryRLock(); !ok || err != nil {
			return false, err
		}
		if err := shared.Unlock(); err != nil {
			return false, err
		}
		if waited > shareWarning && !warned {
			log.Warn("waiting for a process that reads the log of the database", "lock",
				lock.Path(), "at_most", shareTimeout)
			warned = true
		}
		select {
		case <-time.After(sharePause):
		case <-ctx.Done():
		}
	}
	return false, context.Cause(ctx)
}

// lockDatabase creates the database file if it is missing, and locks it.
func lockDatabase(path string, replace bool, log *slog.Logger) (io.Closer, error) {
	if err := Create(path); err != nil {
		return nil, err
	}
	if !replace {
		if err := checkLinks(path); err != nil {
			return nil, err
		}
	}
	inode, ok, err := lockInode(path)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("another process uses the database %s under another path", path)
	}
	if err := restrict(path, log); err != nil {
		return nil, errors.Join(err, inode.Close())
	}
	return inode, nil
}

// restrict removes the rights of all but the owner from an existing database and the files beside it: rows may hold
// secrets. For a file that belongs to another user it logs a warning.
func restrict(path string, log *slog.Logger) error {
	exposed, err := Exposed(path)
	if err != nil {
		return err
	}
	for name, mode := range exposed {
		if err := os.Chmod(name, mode&^0o077); err != nil {
			log.Warn("the database may be read by other users, and its mode cannot be changed", "file", name, "mode",
				mode.String(), "err", err)
			continue
		}
		log.Warn("the database could be read by other users; its mode was changed", "file", name, "was", mode.String(),
			"mode", (mode &^ 0o077).String())
	}
	return nil
}

// Create creates a database file that its owner alone can read, since rows may hold secrets. SQLite gives the files
// beside it the same mode. If the file exists, Create checks that it can be written.
func Create(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return errFile(path)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	return nil
}
