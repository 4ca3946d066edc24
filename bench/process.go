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

// stopTime is the time after which a process that was asked to end is killed.
const stopTime = 15 * time.Second

// logLines is the number of lines of the beginning, and of the end, of a log that are shown.
const logLines = 8

// A process is a program that this one started. The kernel kills it if this one ends.
type process struct {
	name string
	cmd  *exec.Cmd
	stop syscall.Signal // asks it to end
	log  string         // file with its output
	gone chan struct{}  // closed when it has ended
}

// start runs a command. Its standard error, and its standard output unless cmd has one, go to a log that is shown if it
// fails.
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

// failed returns err with the beginning and the end of the process's log.
func (p *process) failed(why error) error {
	text, _ := os.ReadFile(p.log)
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	if len(lines) > 2*logLines {
		lines = slices.Concat(lines[:logLines], []string{"…"}, lines[len(lines)-logLines:])
	}
	return fmt.Errorf("%s: %w\n%s", p.name, why, strings.Join(lines, "\n"))
}
