package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// lockFile refuses a second process: the engine keeps in memory what two processes would have to share. The lock ends
// with the process, however it ends; the file stays.
func lockFile(path string) (*flock.Flock, error) {
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
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, not a database", path)
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnly) {
		return nil, fmt.Errorf("the folder %s of the database is not writable", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	if !ok {
		return nil, fmt.Errorf("another process uses the database %s (it holds %s)", path, lock.Path())
	}
	if err := makeFile(path); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return lock, nil
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
