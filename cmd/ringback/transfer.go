package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/internal/app"
)

// exportCommand is ringback export.
type exportCommand struct {
	configFlag `embed:""`
	storeFlags `embed:""`

	// File to create, readable by its owner only, or - for stdout. It has the secrets of the stores as they are stored.
	To string `required:"" placeholder:"FILE" variable:"RINGBACK_EXPORT_TO"`
	// Leave out secrets and tokens. Deliveries that need a secret are held until it is set again.
	WithoutSecrets bool `variable:"-"`
}

// RunCommand writes the file and prints its ledger.
func (c *exportCommand) RunCommand(ctx context.Context, p *process) error {
	o := c.options(p, c.To)
	o.WithoutSecrets = c.WithoutSecrets
	bar, report := newProgress(p.stderr), p.stdout
	if c.To == "-" {
		report = p.stderr
	}
	o.Progress = bar.show
	ledger, err := app.Export(ctx, o)
	bar.end()
	if len(ledger) > 0 && err == nil {
		fmt.Fprint(report, app.LedgerTable(app.LedgerColumn{Title: "JOBS", Ledger: ledger}))
	}
	if err != nil {
		return storeError(err)
	}
	_, err = fmt.Fprintf(report, "exported %d jobs\n", ledger.Jobs())
	return err
}

// importCommand is ringback import.
type importCommand struct {
	configFlag `embed:""`
	storeFlags `embed:""`

	// File to read, made by ringback export, or - for stdin. A repeated import stores nothing twice.
	From string `placeholder:"FILE" variable:"RINGBACK_IMPORT_FROM"`
	// Import nothing: keep what imports that are not complete have stored, so that it is delivered.
	Accept bool `variable:"-"`
}

// RunCommand stores the content of the file, and prints its ledger beside that of the stores.
func (c *importCommand) RunCommand(ctx context.Context, p *process) error {
	o := c.options(p, c.From)
	switch {
	case c.Accept && c.From != "":
		return &usageError{errors.New("--accept cannot be combined with --from")}
	case c.Accept:
		n, err := app.AcceptImports(ctx, o)
		if err != nil {
			return storeError(err)
		}
		_, err = fmt.Fprintf(p.stdout, "%d imports were not complete: what they have stored is kept\n", n)
		return err
	case c.From == "":
		return &usageError{errors.New("missing flags: --from=FILE")}
	}
	bar := newProgress(p.stderr)
	o.Progress = bar.show
	result, err := app.Import(ctx, o)
	bar.end()
	if result.Stored != nil {
		fmt.Fprint(p.stdout, app.LedgerTable(app.LedgerColumn{Title: "FILE", Ledger: result.File},
			app.LedgerColumn{Title: "STORES", Ledger: result.Stored}))
	}
	switch {
	case err != nil:
		return storeError(err)
	case result.Accepted || !result.DoneAt.IsZero():
		what := "this file was imported"
		if result.Accepted {
			what = "what was imported from this file was accepted"
		}
		_, err = fmt.Fprintf(p.stdout, "nothing to do: %s at %s\n", what, result.DoneAt.Format(time.RFC3339))
	default:
		_, err = fmt.Fprintf(p.stdout, "imported %d jobs; %d were there\n", result.Created, result.Existing)
	}
	return err
}

// options returns the options of a transfer. A lost terminal or pipe does not end the process.
func (f *storeFlags) options(p *process, file string) app.TransferOptions {
	ignoreBrokenPipes()
	signal.Ignore(syscall.SIGHUP)
	return app.TransferOptions{
		Options: app.Options{
			Store: f.join(), Shards: f.Shards, RedisPrefix: f.RedisPrefix, RedisWait: f.RedisWait,
			Logger: newLogger(p.stderr, "text"), Version: versionName(),
		},
		File: file, Stdin: os.Stdin, Stdout: p.stdout,
	}
}

// progressEvery is the interval at which a progress is drawn.
const progressEvery = 200 * time.Millisecond

// A progress is a line on a terminal. It shows nothing elsewhere.
type progress struct {
	out         io.Writer // nil: no terminal
	began, last time.Time
	did         string
}

func newProgress(stderr io.Writer) *progress {
	if info, err := os.Stderr.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{out: stderr}
}

// show draws the line, not too often.
func (b *progress) show(did string, jobs, total int64) {
	now := time.Now()
	if b.out == nil || did == b.did && now.Sub(b.last) < progressEvery {
		return
	}
	if did != b.did {
		b.began, b.did = now, did
	}
	b.last = now
	fmt.Fprint(b.out, "\r", progressLine(did, jobs, total, now.Sub(b.began)), "\x1b[K")
}

// end leaves the line.
func (b *progress) end() {
	if b.out != nil && b.did != "" {
		fmt.Fprintln(b.out)
	}
}

// progressLine returns the text of a progress after a time.
func progressLine(did string, jobs, total int64, after time.Duration) string {
	text := fmt.Sprintf("%s %d jobs", did, jobs)
	if total > 0 {
		share := min(jobs, total) * 100 / total
		text = fmt.Sprintf("%s %3d%% %s %d of %d", output.Bar(jobs, total), share, did, jobs, total)
	}
	if after >= time.Second {
		text += fmt.Sprintf(", %.0f/s", float64(jobs)/after.Seconds())
	}
	return text
}
