//go:build unix

package redis

import (
	"errors"
	"io"
	"syscall"
)

// isOpen looks whether the other side has closed a connection; nil says that it has not.
func isOpen(raw syscall.RawConn) error {
	var n int
	var looked error
	err := raw.Read(func(fd uintptr) bool {
		n, _, looked = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	switch {
	case err != nil:
		return err //nolint:wrapcheck // go-redis looks at it
	case n == 0 && looked == nil:
		return io.EOF
	case errors.Is(looked, syscall.EAGAIN):
		return nil
	}
	return looked
}
