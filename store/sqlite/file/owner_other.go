//go:build !linux

package file

import "errors"

// FreeSpace returns an error: the free space of a file system is not known here.
func FreeSpace(string) (int64, error) {
	return 0, errors.New("this system does not tell the free space of a file system")
}

// Owner returns 0: the process that has a lock is not known here.
func Owner(string) (pid int) { return 0 }
