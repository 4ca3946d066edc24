//go:build unix

package redistest

import (
	"errors"
	"os"
	"syscall"
)

// halt stops a child process and waits until it is stopped.
func halt(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// wake continues a process that halt stopped.
func wake(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
