//go:build unix

package h1

import "syscall"

// seesUnread is whether unread knows anything.
const seesUnread = true

// unread reports whether something has come over a socket that nobody has read yet: bytes, an end or an error.
func unread(fd uintptr) bool {
	var one [1]byte
	_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK) // does not wait: net makes all its sockets so
	return err != syscall.EAGAIN && err != syscall.EINTR
}
