//go:build unix

package sqlite

import (
	"io/fs"
	"syscall"
)

// links is the number of names (hard links) that a file has.
func links(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) //nolint:unconvert // a uint16 on Darwin
	}
	return 1
}
