package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// A bench is one run of this program. Its figures share it.
type bench struct {
	sizes
	dir          string // for all files that are written
	self         string // this program
	program      string // path of Ringback's binary
	earlier      string // an earlier version of it; empty: none
	ownProcesses bool   // of the figure that is measured now
	receiver     *peer
	sink         string // the receiver's URL
	secureSink   string // its https URL
	postgres     *postgres
	waiting      map[string]*million // by engine
	fig          *result             // the figure that is measured now
	doc          *document
	stderr       io.Writer
	ends         []func()
	n            int
}

// sizes are the numbers of jobs and the durations of a run.
type sizes struct {
	Rounds      int           `json:"rounds"`
	Jobs        int           `json:"jobs"`         // due at once
	SlowJobs    int           `json:"slow_jobs"`    // the same, for a slow peer
	LevelJobs   int           `json:"level_jobs"`   // the same, at each level of concurrency
	Levels      []int         `json:"levels"`       // of concurrency
	LateSeconds int           `json:"late_seconds"` // of registrations at a pace
	Posts       int           `json:"posts"`        // single registrations
	Batched     int           `json:"batched"`      // registrations in batches
	Waits       int           `json:"waits"`        // requests that wait for their job
	Pending     int           `json:"pending"`      // jobs that wait
	Future      int           `json:"future"`       // waiting jobs of the idle figure
	Topics      int           `json:"topics"`       // their topics
	Shards      int           `json:"shards"`       // of a Redis with pending jobs
	Soak        time.Duration `json:"soak"`         // duration of the soak on an engine
	Settle      time.Duration `json:"settle"`       // wait before an idle process is observed
	Watch       time.Duration `json:"watch"`        // duration of the observation
}

var (
	fullSizes = sizes{
		Rounds: 5, Jobs: 50_000, SlowJobs: 10_000, LevelJobs: 20_000, Levels: []int{1, 4, 16, 64, 256},
		LateSeconds: 10, Posts: 20_000, Batched: 100_000, Waits: 1000, Pending: 1_000_000,
		Future: 100_000, Topics: 1000, Soak: 30 * time.Minute, Settle: 10 * time.Second, Watch: 20 * time.Second,
	}
	quickSizes = sizes{
		Rounds: 1, Jobs: 5000, SlowJobs: 1000, LevelJobs: 1000, Levels: []int{1, 16, 64},
		LateSeconds: 2, Posts: 2000, Batched: 10_000, Waits: 200, Pending: 20_000, Future: 5000, Topics: 1000,
		Soak: time.Minute, Settle: time.Second, Watch: 2 * time.Second,
	}
)

// workers is the concurrency of all contestants, unless a figure varies it.
const workers = 64

// measure runs figures one after the other. The document has what was measured even if some failed.
func measure(ctx context.Context, f flags, chosen []figure, stderr io.Writer) (*document, error) {
	b := &bench{sizes: fullSizes, waiting: make(map[string]*million), stderr: stderr}
	if f.quick {
		b.sizes = quickSizes
	}
	if f.rounds > 0 {
		b.Rounds = f.rounds
	}
	if b.Shards = f.shards; f.pending > 0 {
		b.Pending = f.pending
	}
	defer b.end()
	if err := b.prepare(ctx, f); err != nil {
		return nil, err
	}
	b.doc = &document{Machine: b.machine(ctx), Sizes: b.sizes, Quick: f.quick}
	var failed error
	began := time.Now()
	for i, fig := range chosen {
		b.say("%d of %d  %s: %s", i+1, len(chosen), fig.name, fig.title)
		b.fig, b.ownProcesses = &result{Name: fig.name, Title: fig.title}, fig.ownProcesses
		b.doc.Figures = append(b.doc.Figures, b.fig)
		if err := fig.measure(ctx, b); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			b.fig.Error = err.Error()
			failed = errors.Join(failed, fmt.Errorf("%s: %w", fig.name, err))
			b.say("%v", err)
		}
	}
	b.doc.Took = time.Since(began).Round(time.Second).String()
	return b.doc, failed
}

// prepare makes the folder, builds Ringback and starts the receiver.
func (b *bench) prepare(ctx context.Context, f flags) error {
	var err error
	if b.self, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if b.dir, err = os.MkdirTemp("", "ringback-bench-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	b.atEnd(func() { remove(b.dir) })
	// PostgreSQL runs as another user, in a subfolder.
	if err := os.Chmod(b.dir, 0o711); err != nil { //nolint:gosec // to walk through, not to read
		return fmt.Errorf("make a folder: %w", err)
	}
	if b.program, err = b.build(ctx, f.root, "ringback"); err != nil {
		return err
	}
	if f.earlier != "" {
		if b.earlier, err = b.build(ctx, f.earlier, "ringback-earlier"); err != nil {
			return err
		}
	}
	if b.receiver, err = b.again(ctx, "receiver"); err != nil {
		return err
	}
	b.atEnd(b.receiver.end)
	where, err := b.receiver.ask(ctx, order{Do: "where"})
	if err != nil {
		return err
	}
	b.sink, b.secureSink = where.URL, where.SecureURL
	return b.trust(where.Certificate)
}

// build builds Ringback from its sources.
func (b *bench) build(ctx context.Context, root, name string) (program string, err error) {
	program = filepath.Join(b.dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "validator_novalidatefn",
		"-ldflags", "-s -w", "-o", program, "./cmd/ringback")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ringback in %s: %w\n%s", root, err, out)
	}
	return program, nil
}

// trust makes all programs that are started later accept this certificate and no other.
func (b *bench) trust(certificate []byte) error {
	path := filepath.Join(b.dir, "receiver.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600); err !=
		nil {
		return fmt.Errorf("write the receiver's certificate: %w", err)
	}
	if err := os.Setenv("SSL_CERT_FILE", path); err != nil {
		return fmt.Errorf("trust the receiver's certificate: %w", err)
	}
	return nil
}

// atEnd registers a function for the end of the program. They are called in reverse order.
func (b *bench) atEnd(do func()) { b.ends = append(b.ends, do) }

func (b *bench) end() {
	for _, do := range slices.Backward(b.ends) {
		do()
	}
}

// say prints progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// serial returns a new number at each call.
func (b *bench) serial() int {
	b.n++
	return b.n
}

// folder makes a new folder.
func (b *bench) folder(name string) (string, error) {
	dir := filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, b.serial()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	return dir, nil
}

// remove removes a folder in the system's temporary folder, and ignores errors.
func remove(dir string) { _ = os.RemoveAll(dir) }

// A reading has the values of one run by measure. The name of a measure is also its unit.
type reading map[string]float64

// A contestant is a program that is measured in every round.
type contestant struct {
	name string
	run  func(ctx context.Context) (reading, error)
}

// interleave runs contestants in turn, A B A B, and keeps every reading. A peer that is not installed or fails is left
// out of later rounds, with a note in the figure. A failure of Ringback ends the figure.
func (b *bench) interleave(ctx context.Context, rounds int, all ...contestant) error {
	all = b.withEarlier(all)
	defer b.compareEarlier(all)
	out := make(map[string]bool)
	for round := range rounds {
		for _, c := range all {
			if out[c.name] {
				continue
			}
			began := time.Now()
			r, err := c.run(ctx)
			switch {
			case err != nil && ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil && isOurs(c.name):
				return fmt.Errorf("%s: %w", c.name, err)
			case err != nil:
				out[c.name] = true
				b.fig.Notes = append(b.fig.Notes, fmt.Sprintf("%s was left out: %v", c.name, err))
				b.say("  %s is left out: %v", c.name, err)
				continue
			}
			b.fig.add(c.name, r)
			b.say("  %d/%d  %-34s %s  (%s)", round+1, rounds, c.name, r, time.Since(began).Round(100*time.Millisecond))
		}
	}
	return nil
}
