package db

import (
	"fmt"
	"syscall"
)

// FreeSpace returns the bytes that this user can write to the file system of a folder. On a network file system that
// hangs it does not return.
func FreeSpace(folder string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0, fmt.Errorf("look at the file system of %s: %w", folder, err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil //nolint:unconvert // narrower on some processors
}
