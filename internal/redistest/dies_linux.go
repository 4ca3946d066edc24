package redistest

import (
	"os/exec"
	"syscall"
)

// diesWithUs has the kernel kill the server when the thread that starts it ends, as it does with the process: no server
// outlives a test binary that panics, when nothing is cleaned up.
func diesWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
