package redistest

import (
	"os/exec"
	"syscall"
)

// diesWithUs makes the kernel kill the server when the thread that starts it ends, so that no server outlives a test
// binary that panics.
func diesWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
