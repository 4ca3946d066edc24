package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Bounds of Run.
const (
	// Limit bounds a check, and so all of them, as they run side by side.
	Limit = 8 * time.Second
	// grace is how much later a check that ignores its context is given up.
	grace = time.Second
)

// A Check looks at one subject.
type Check struct {
	Subject string
	// Names are those of its findings, each at least once.
	Names []Name
	// Run looks. Its error says why findings are missing: they are reported as unknown. It must end with its context;
	// if a system call hangs, it is given up.
	Run func(context.Context) ([]Finding, error)
}

// errLate is the cause of the end of a check's context.
var errLate = errors.New("no answer in time")

// Run runs checks side by side, for at most 9 s, and returns their findings in the order of the checks.
func Run(ctx context.Context, checks ...Check) []Finding {
	ctx, cancel := context.WithTimeoutCause(ctx, Limit, errLate)
	defer cancel()
	type result struct {
		findings []Finding
		err      error
	}
	results := make([]chan result, len(checks))
	for i, c := range checks {
		results[i] = make(chan result, 1)
		go func() {
			findings, err := c.Run(ctx)
			results[i] <- result{findings, err}
		}()
	}
	over, stop := context.WithTimeout(context.WithoutCancel(ctx), Limit+grace)
	defer stop()
	var all []Finding
	for i, c := range checks {
		var r result
		select {
		case r = <-results[i]:
		case <-over.Done():
			select {
			case r = <-results[i]: // it ended while another was waited for
			default: // its goroutine stays in a system call, such as one about a network file system
				r.err = errLate
			}
		}
		all = append(all, complete(c, r.findings, r.err)...)
	}
	return all
}

// complete adds the findings that are missing, and sorts them.
func complete(c Check, findings []Finding, err error) []Finding {
	for _, name := range c.Names {
		if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Check == name }) {
			findings = append(findings, name.of(unknown("Mend that, and run ringback doctor again.",
				"could not be checked: %s", reason(err)))...)
		}
	}
	for i := range findings {
		f := &findings[i]
		if f.Subject == "" {
			f.Subject = c.Subject
		}
		f.Docs = fmt.Sprintf("docs/doctor.md#%s", f.Check)
	}
	sortFindings(findings)
	return findings
}

// reason returns why a check was not made.
func reason(err error) string {
	switch {
	case err == nil:
		return "nothing was found"
	case errors.Is(err, context.DeadlineExceeded):
		return errLate.Error()
	}
	return err.Error()
}
