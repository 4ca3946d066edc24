//go:build unix

package notify

import "syscall"

// looks is whether pending knows anything.
const looks = true

// pending reports whether something has come over a socket that nobody has read yet: bytes, an end or an error.
func pending(fd uintptr) bool {
	var one [1]byte
	_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK) // does not wait: net makes all its sockets so
	return err != syscall.EAGAIN && err != syscall.EINTR
}
