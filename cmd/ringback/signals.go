package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how long after the first signal another one counts as the same: supervisors often signal both a process
// and its group.
const sameSignal = 250 * time.Millisecond

// ignoreBrokenPipes makes writes to a closed stdout or stderr fail instead of ending the process by SIGPIPE.
func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

// untilSignal returns a context that ends at the first SIGINT, SIGTERM or SIGHUP. A second SIGINT or SIGTERM exits at
// once, which loses no job: the store holds every accepted job, and jobs in flight are sent again.
//
// SIGHUP comes from a terminal that closes, so it says nothing more to a process that stops already, and nothing to one
// that was started by nohup.
func untilSignal(parent context.Context, stderr io.Writer, exit func(int)) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		first := time.Now()
		signal.Ignore(syscall.SIGHUP)
		cancel(fmt.Errorf("%w: %s", errStopped, s))
		<-signals
		for time.Since(first) < sameSignal {
			<-signals
		}
		fmt.Fprintln(stderr, "ringback: second signal, exiting at once")
		exit(exitFault)
	}()
	return ctx
}
