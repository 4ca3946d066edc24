package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// withoutOwner runs do with a share of the lock of a database, unless another process has the lock. acquireLock waits
// for do. It creates no lock file.
func withoutOwner(path string, do func() error) (err error) {
	if _, err := os.Stat(path + lockSuffix); errors.Is(err, fs.ErrNotExist) {
		return do()
	}
	lock := flock.New(path + lockSuffix)
	ok, err := lock.TryRLock()
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Path(), err)
	}
	if !ok {
		return nil
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return do()
}

// LogBytes returns the size of the write-ahead log of a database; 0: there is none.
func LogBytes(path string) int64 {
	info, err := os.Stat(path + WAL)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Remove removes a file, if it exists.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an older file: %w", err)
	}
	return nil
}

// Sync writes a file's content to the disk.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(file.Sync(), file.Close())
	}
	if err != nil {
		return fmt.Errorf("write the copy to the disk: %w", err)
	}
	return nil
}

// syncName writes a file's name to the disk, where the system can.
func syncName(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err == nil {
		err = errors.Join(folder.Sync(), folder.Close())
	}
	if err != nil {
		return fmt.Errorf("write the name of %s to the disk: %w", path, err)
	}
	return nil
}
