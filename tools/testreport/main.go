package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// quietTime is how long nothing may end before the running tests are named.
const quietTime = time.Minute

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("testreport", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("log", "bin/test.log", "the file for everything that the tests print")
	total := flags.Int("packages", 0, "the number of packages to be tested")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var all []io.Reader
	for _, name := range flags.Args() {
		in, err := os.Open(name)
		if err != nil {
			fmt.Fprintln(stderr, "testreport:", err)
			return 2
		}
		defer func() { _ = in.Close() }() // it was only read
		all = append(all, in)
	}
	if err := os.MkdirAll(filepath.Dir(*path), 0o755); err != nil { //nolint:gosec // a build folder
		fmt.Fprintln(stderr, "testreport:", err)
		return 2
	}
	log, err := os.Create(*path)
	if err != nil {
		fmt.Fprintln(stderr, "testreport:", err)
		return 2
	}
	// An interrupt ends the tests. What they report then is read to its end.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)

	buffered := bufio.NewWriter(log)
	r := newReport(stdout, buffered, *path, *total)
	r.read(all)
	ok := r.summarize()
	if err := errors.Join(buffered.Flush(), log.Close()); err != nil {
		fmt.Fprintf(stderr, "testreport: %s is not complete: %v\n", *path, err)
		ok = false
	}
	if !ok {
		return 1
	}
	return 0
}

// read reads the events of go test -json to the end of all. Meanwhile it names what runs when nothing ends for
// quietTime.
func (r *report) read(all []io.Reader) {
	lines := make(chan []byte)
	var readers sync.WaitGroup
	for _, one := range all {
		readers.Go(func() {
			for in := bufio.NewReader(one); ; {
				line, err := in.ReadBytes('\n')
				if len(line) > 0 {
					lines <- line
				}
				if err != nil { // of a pipe: its end
					return
				}
			}
		})
	}
	go func() {
		readers.Wait()
		close(lines)
	}()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return
			}
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				e = event{Action: "output", Output: string(line)}
			}
			if r.note(e) {
				quiet.Reset(quietTime)
			}
		case <-quiet.C:
			r.nameRunning()
			quiet.Reset(quietTime)
		}
	}
}
