package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ringback/ringback/internal/app"
)

// verifyCommand is ringback verify.
type verifyCommand struct {
	configFlag `embed:""`

	// Stores to check, as given to serve. They may be in use, but not a SQLite store with --repair.
	Store []string `sep:"none" default:"sqlite:ringback.db" placeholder:"URL"`
	// Prefix of every Redis key, as given to serve. Default: rb.
	RedisPrefix string `placeholder:"TEXT"`
	// Repair faults. No repair loses a job, or makes one due that has ended.
	Repair bool `variable:"RINGBACK_VERIFY_REPAIR"`
	// Format of the report. json is an array with a report for each store.
	Output string `short:"o" default:"text" enum:"text,json" placeholder:"text|json" variable:"RINGBACK_VERIFY_OUTPUT"`
}

// RunCommand prints the report, and fails if faults are left.
func (c *verifyCommand) RunCommand(ctx context.Context, p *process) error {
	o := app.Options{Store: strings.Join(c.Store, "\n"), RedisPrefix: c.RedisPrefix, Logger: newLogger(p.stderr,
		"text")}
	if err := app.CheckAudit(o); err != nil {
		return &usageError{err}
	}
	left, reports := 0, []*app.AuditReport{}
	err := app.Audit(ctx, o, c.Repair, func(r *app.AuditReport) error {
		left += r.Left()
		if c.Output == "text" {
			return r.WriteText(p.stdout)
		}
		reports = append(reports, r)
		return nil
	})
	if c.Output == "json" { // also what was found, and repaired, before an error
		out := json.NewEncoder(p.stdout)
		out.SetIndent("", "  ")
		err = errors.Join(err, out.Encode(reports))
	}
	if err != nil {
		return err
	}
	if left > 0 {
		return fmt.Errorf("%d faults are left: docs/verify.md says what each kind means", left)
	}
	return nil
}
