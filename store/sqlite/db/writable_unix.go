//go:build unix

package db

import "syscall"

// isWritable reports whether this user can write a file, or in a folder, as far as the system says so beforehand.
func isWritable(path string) bool {
	const write = 2
	return syscall.Access(path, write) == nil
}
