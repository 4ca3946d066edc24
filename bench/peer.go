package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"
)

// asPeer is the argument with which this program runs itself in another role.
const asPeer = "as"

// An order is a request to a peer. Each verb uses some of the fields.
type order struct {
	Do          string
	Jobs        int
	Concurrency int
	Lanes       int
	Seconds     int
	Rate        int
	URL         string // of the receiver
	Store       string
	Tuned       bool
	Late        bool
	Body        string
}

// An answer is a peer's answer to an order.
type answer struct {
	Error string `json:",omitempty"`
	URL   string `json:",omitempty"`
	// SecureURL is a receiver's https URL, with its certificate in Certificate.
	SecureURL   string    `json:",omitempty"`
	Certificate []byte    `json:",omitempty"`
	Count       int64     `json:",omitempty"` // requests since they were last expected
	Signed      int64     `json:",omitempty"` // of them with a signature
	Last        int64     `json:",omitempty"` // arrival of the last expected, Unix nanoseconds
	Late        []float64 `json:",omitempty"` // of each, in ms
}

// A role is what this program runs as in a peer. It returns the handler of orders.
type role func() (func(context.Context, order) (answer, error), error)

var roles = map[string]role{
	"receiver": asReceiver,
	"bare":     asBare,
	"handler":  asHandler,
	"asynq":    asAsynq,
	"river":    asQueue(openRiver),
	"library":  asQueue(openLibrary),
}

// A queue registers jobs and handles them.
type queue interface {
	fill(ctx context.Context, jobs int) error
	start(ctx context.Context) error
}

// asQueue returns the role of a queue on the store that the order "open" names.
func asQueue(open func(context.Context, order) (queue, error)) role {
	return func() (func(context.Context, order) (answer, error), error) {
		var q queue
		return func(ctx context.Context, o order) (answer, error) {
			switch {
			case o.Do == "open":
				var err error
				q, err = open(ctx, o)
				return answer{}, err
			case q == nil:
				return answer{}, errors.New("no store was opened")
			case o.Do == "fill":
				return answer{}, q.fill(ctx, o.Jobs)
			case o.Do == "start":
				return answer{}, q.start(ctx)
			}
			return answer{}, fmt.Errorf("a queue cannot %s", o.Do)
		}, nil
	}
}

// handlerOf returns what the handlers of a peer do with a job's body: they post it to o.URL. Without a URL they only
// count it, and handled returns after o.Jobs calls.
func handlerOf(o order) (handle func(context.Context, []byte) error, handled func() error) {
	if o.URL != "" {
		return newPoster(o.URL, o.Concurrency).post, func() error { return nil }
	}
	var calls atomic.Int64
	all := make(chan struct{})
	handle = func(context.Context, []byte) error {
		if calls.Add(1) == int64(o.Jobs) {
			close(all)
		}
		return nil
	}
	return handle, func() error {
		select {
		case <-all:
			return nil
		case <-time.After(arriveSeconds * time.Second):
			return fmt.Errorf("%d of %d jobs were handled within %d s", calls.Load(), o.Jobs, arriveSeconds)
		}
	}
}

// runPeer reads orders, one line of JSON each, and answers each with a line, until its input ends.
func runPeer(name string, stderr io.Writer) int {
	begin, ok := roles[name]
	if !ok {
		fmt.Fprintf(stderr, "there is no %q to run as\n", name)
		return 2
	}
	obey, err := begin()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	orders, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return 0 // the parent process has ended
		}
		a, err := obey(ctx, o)
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return 0
		}
	}
}

// A peer is this program, run in another role in another process.
type peer struct {
	*process
	orders  io.WriteCloser
	answers *bufio.Reader
}

// again runs this program in another role, until end is called.
func (b *bench) again(ctx context.Context, name string) (*peer, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), b.self, asPeer, name) //nolint:gosec // this program itself
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	answers, theirs, err := os.Pipe() // not StdoutPipe: what waits for the process must not close it under a reader
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd.Stdout = theirs
	p, err := b.start(name, cmd, syscall.SIGKILL) // a peer has nothing to save
	_ = theirs.Close()                            // the process has its own copy
	if err != nil {
		_ = answers.Close() // nothing writes to it
		return nil, err
	}
	return &peer{process: p, orders: orders, answers: bufio.NewReaderSize(answers, 1<<20)}, nil
}

// ask sends an order and waits for its answer.
func (p *peer) ask(ctx context.Context, o order) (answer, error) {
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	var a answer
	err := json.NewEncoder(p.orders).Encode(o)
	if err == nil {
		var line []byte
		if line, err = p.answers.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &a)
		}
	}
	switch {
	case ctx.Err() != nil:
		return a, fmt.Errorf("%s %s: %w", p.name, o.Do, context.Cause(ctx))
	case err != nil:
		return a, p.failed(fmt.Errorf("%s: %w", o.Do, err))
	case a.Error != "":
		return a, p.failed(fmt.Errorf("%s: %w", o.Do, errors.New(a.Error)))
	}
	return a, nil
}
