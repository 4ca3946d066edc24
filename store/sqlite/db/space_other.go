//go:build !linux

package db

import "errors"

// FreeSpace returns an error: the free space of a file system is not known here.
func FreeSpace(string) (int64, error) {
	return 0, errors.New("this system does not tell the free space of a file system")
}
