//go:build unix

package connect

import (
	"errors"
	"io"
	"syscall"
)

// isOpen returns an error if the peer has closed a connection.
func isOpen(raw syscall.RawConn) error {
	var n int
	var peeked error
	err := raw.Read(func(fd uintptr) bool {
		n, _, peeked = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	switch {
	case err != nil:
		return err // go-redis inspects it
	case n == 0 && peeked == nil:
		return io.EOF
	case errors.Is(peeked, syscall.EAGAIN):
		return nil
	}
	return peeked
}
