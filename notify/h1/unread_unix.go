//go:build unix

package h1

import "syscall"

// seesUnread reports whether unread works on this system.
const seesUnread = true

// unread reports whether a socket has unread bytes, an end or an error.
func unread(fd uintptr) bool {
	var one [1]byte
	// does not block: package net's sockets are non-blocking
	_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
	return err != syscall.EAGAIN && err != syscall.EINTR
}
