//go:build unix

package badreceiver

import (
	"errors"
	"net"
	"syscall"
)

// shortenQueue makes a listener's accept queue as short as the system allows, by listening a second time.
func shortenQueue(l net.Listener) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return errors.New("not a TCP listener")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), 0) }); err != nil {
		return err
	}
	return failed
}
