package manifest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ringback/ringback/cli/output"
)

// Flags are the flags of commands that compare files with a server.
type Flags struct {
	// File in YAML or JSON, folder of files, or - for the standard input. Repeat it for several.
	File []string `short:"f" required:"" sep:"none" placeholder:"FILE" in:"none"`
	// Remove what these files manage and no longer have.
	Prune bool `in:"none"`
	// --prune, also if the files have nothing: then all that they managed is removed.
	PruneAll bool `in:"none"`
	// Also change what other files manage.
	TakeOver bool `in:"none"`
}

// Compare reads the files, compares them with a server and prints the differences. Files that are applied, or that
// prune, must have managed_by.
func (f *Flags) Compare(
	ctx context.Context, call Server, read func(name string) ([]byte, error), out *output.Printer, applied bool,
) (*Plan, error) {
	prune := f.Prune || f.PruneAll
	set, err := readFiles(f.File, read, applied || prune)
	if _, ok := errors.AsType[*Error](err); err != nil && !ok { // a file that cannot be read
		err = &Error{Invalid, []string{err.Error()}}
	}
	if err != nil {
		return nil, err
	}
	if f.Prune && !f.PruneAll && len(set.resources) == 0 {
		return nil, &Error{Invalid, []string{fmt.Sprintf(
			"they have no topic, lane or schedule, so --prune removes all that %s manages: pass --prune-all if that "+
				"is meant", set.ManagedBy)}}
	}
	plan, err := NewPlan(ctx, call, set, Options{Prune: prune, TakeOver: f.TakeOver})
	if err != nil {
		return nil, err
	}
	return plan, plan.Print(out)
}

// Question is the question before resources are removed, or lose their settings; empty: none does.
func (p *Plan) Question() string {
	var reset []string
	for _, c := range p.Changes {
		if c.res != nil && c.res.reset {
			reset = append(reset, c.Name)
		}
	}
	var parts []string
	if n := p.Count(Remove); n > 0 {
		parts = append(parts,
			fmt.Sprintf("remove what is marked with - (%d) for good, with signing secrets and secret headers", n))
	}
	if len(reset) > 0 {
		parts = append(parts,
			fmt.Sprintf("give the defaults to what cannot be removed (%s)", strings.Join(reset, ", ")))
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, ", and ")
	return output.Printable(strings.ToUpper(text[:1]) + text[1:] + "?")
}
