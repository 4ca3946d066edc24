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

// untilSignal returns a context that ends at the first SIGINT or SIGTERM. The second one exits at once, which loses no
// job: the store holds every accepted job, and jobs in flight are sent again.
func untilSignal(parent context.Context, stderr io.Writer, exit func(int)) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		first := time.Now()
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
