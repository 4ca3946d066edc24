//go:build unix

package redistest

import (
	"errors"
	"os"
	"syscall"
)

// halt stops a process of ours, and waits until it stands still.
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

// wake lets a process run that halt stopped.
func wake(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
