package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ringback/ringback/cli/output"
)

// Flags are the flags of commands that compare files with a server.
type Flags struct {
	File     []string `short:"f" required:"" placeholder:"FILE" in:"none" help:"File in YAML or JSON, folder of files, or - for the standard input. Repeat it for several."`
	Prune    bool     `in:"none" help:"Remove what these files manage and no longer have."`
	PruneAll bool     `in:"none" help:"--prune, also if the files have nothing: then all that they managed is removed."`
	TakeOver bool     `in:"none" help:"Also change what other files manage."`
}

// Compare reads the files, compares them with a server and prints the differences.
func (f *Flags) Compare(ctx context.Context, call Server, stdin io.Reader, out *output.Printer) (*Plan, error) {
	set, err := Read(f.File, stdin)
	if _, ok := errors.AsType[*Error](err); err != nil && !ok { // a file that cannot be read
		err = &Error{Invalid, []string{err.Error()}}
	}
	if err != nil {
		return nil, err
	}
	if f.Prune && !f.PruneAll && len(set.resources) == 0 {
		return nil, &Error{Invalid, []string{fmt.Sprintf(
			"they have no topic, lane or schedule, so --prune removes all that %s manages: pass --prune-all if that is meant", set.ManagedBy)}}
	}
	plan, err := NewPlan(ctx, call, set, Options{Prune: f.Prune || f.PruneAll, TakeOver: f.TakeOver})
	if err != nil {
		return nil, err
	}
	return plan, plan.Print(out)
}

// Question is the question before resources are removed; empty: none is.
func (p *Plan) Question() string {
	if n := p.Count(Remove); n > 0 {
		return fmt.Sprintf("Remove what is marked with - (%d)?", n)
	}
	return ""
}
