package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// A fileLock keeps other processes away from a database: the engine keeps in memory what two processes would have to
// share. It ends with the process, however it ends; the lock file stays.
type fileLock struct {
	file  *flock.Flock // <path>.lock, which every version of this program takes
	inode io.Closer    // the database file itself
}

// Unlock releases the lock.
func (l *fileLock) Unlock() error {
	return errors.Join(l.inode.Close(), l.file.Unlock())
}

// noLock is the lock of a file that cannot be locked.
type noLock struct{}

func (noLock) Close() error { return nil }

// resolve is the path of the database without symbolic links: SQLite names the files beside it (-wal, -shm) after that,
// and so is the lock file, so that each name of the database has the same.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the database: %w", err)
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil // lockFile says so
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

// lockFile takes the lock of a database, whose file it makes when there is none. A second process is refused, and so is,
// unless it is to be replaced, a file with several names: SQLite's log lies beside one of them, and whoever opens another
// one does not see it.
func lockFile(path string, replace bool, log *slog.Logger) (*fileLock, error) {
	folder := filepath.Dir(path)
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the folder %s of the database does not exist", folder)
	case err != nil:
		return nil, fmt.Errorf("look at the database's folder: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is no folder, so the database %s cannot be in it", folder, path)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		what := "no regular file"
		if info.IsDir() {
			what = "a folder"
		}
		return nil, fmt.Errorf("%s is %s, not a database", path, what)
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnly) {
		return nil, fmt.Errorf("the folder %s of the database is not writable", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w (the file system must have locks; network file systems are not supported)", lock.Path(), err)
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

// lockDatabase makes the database's file where there is none, and locks it.
func lockDatabase(path string, replace bool, log *slog.Logger) (io.Closer, error) {
	if err := makeFile(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("look at the database: %w", err)
	}
	if n := links(info); n > 1 && !replace {
		return nil, fmt.Errorf("the database %s has %d names (hard links): its log %s-wal belongs to one of them alone; remove the others, or copy the file",
			path, n, filepath.Base(path))
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

// restrict takes from everybody but its owner the rights to a database that was there before, and to the files beside it:
// jobs may hold secrets. One that belongs to another user is only complained of.
func restrict(path string, log *slog.Logger) error {
	for _, name := range []string{path, path + "-wal", path + "-shm", path + ".lock"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at the database's files: %w", err)
		}
		mode := info.Mode().Perm()
		if mode&0o077 == 0 {
			continue
		}
		if err := os.Chmod(name, mode&^0o077); err != nil {
			log.Warn("the database may be read by other users, and its mode cannot be changed", "file", name, "mode", mode.String(), "err", err)
			continue
		}
		log.Warn("the database could be read by other users; its mode was changed", "file", name, "was", mode.String(), "mode", (mode &^ 0o077).String())
	}
	return nil
}

// makeFile makes the database's file, or finds that it can be written. Jobs may hold secrets, so it is its owner's only;
// the files beside it take its mode.
func makeFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnly) {
		return fmt.Errorf("the database %s is not writable", path)
	}
	if err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	return nil
}
