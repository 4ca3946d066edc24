package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stopTime is how long a process may take to end before it is killed.
const stopTime = 15 * time.Second

// logLines of the beginning and of the end of a log are shown.
const logLines = 8

// A process is a program that this one started. It ends with it, whatever happens: the kernel sees to that.
type process struct {
	name string
	cmd  *exec.Cmd
	stop syscall.Signal // asks it to end
	log  string         // file that it complains to
	gone chan struct{}  // closed when it has ended
}

// start runs a command. What it writes to its standard error, and to its standard output unless that is taken, is kept for
// the case that it fails.
func (b *bench) start(name string, cmd *exec.Cmd, stop syscall.Signal) (*process, error) {
	path := filepath.Join(b.dir, fmt.Sprintf("%s-%d.log", name, b.serial()))
	log, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the process has its own copy
	cmd.Stderr = log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // ^C is for this program, which ends the others in order
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if stop == syscall.SIGINT {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT // PostgreSQL leaves shared memory behind when it is killed
	}
	p := &process{name: name, cmd: cmd, stop: stop, log: path, gone: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.gone)
		// The kernel ends a child with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended matters to those that still need it: they see it gone
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// end asks the process to end, and waits until it has.
func (p *process) end() {
	_ = p.cmd.Process.Signal(p.stop) // it may have ended by itself
	select {
	case <-p.gone:
	case <-time.After(stopTime):
		p.kill()
	}
}

// kill ends the process at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // as above
	<-p.gone
}

// failed is why the process cannot be worked with, with the beginning and the end of its log.
func (p *process) failed(why error) error {
	text, _ := os.ReadFile(p.log) // without a readable log the error has none
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	if len(lines) > 2*logLines {
		lines = slices.Concat(lines[:logLines], []string{"…"}, lines[len(lines)-logLines:])
	}
	return fmt.Errorf("%s: %w\n%s", p.name, why, strings.Join(lines, "\n"))
}
