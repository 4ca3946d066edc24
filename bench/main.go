// Command ringback-bench measures Ringback beside its peers and beside what the machine can do at all, and writes a table,
// every raw run as JSON, and plots:
//
//	go -C bench run .                                  every figure, five rounds: about half an hour
//	go -C bench run . -quick                           every figure once, smaller: under two minutes
//	go -C bench run . -only=throughput-redis,lateness  some of them
//	go -C bench run . -earlier=../../old               beside an earlier version, run by run
//	go -C bench run . -docs ../docs                    writes docs/benchmarks.md and its plots, too
//	go -C bench run . -from bench.json -docs ../docs   draws what an earlier run found
//
// Every contestant and the receiver run in separate processes; this one starts them, sends them orders and ends them. It needs Linux, for it reads /proc, and redis-server; PostgreSQL is used where it is installed. Nothing that
// it starts outlives it, and what it writes lies in a temporary folder that it removes, but for the files named by flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// flags are what a run is asked for.
type flags struct {
	only    string
	rounds  int
	quick   bool
	list    bool
	root    string
	earlier string
	json    string
	from    string
	docs    string
}

func run(args []string, stdout, stderr io.Writer) int {
	if name, ok := strings.CutPrefix(strings.Join(args, " "), asPeer+" "); ok {
		return runPeer(name, stderr)
	}
	var f flags
	set := flag.NewFlagSet("ringback-bench", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&f.only, "only", "", "figures to measure, divided by commas; see -list")
	set.IntVar(&f.rounds, "rounds", 0, "rounds of each figure (5, or 1 when quick)")
	set.BoolVar(&f.quick, "quick", false, "measure fewer jobs, once: shows that all of it works, and no more")
	set.BoolVar(&f.list, "list", false, "list the figures")
	set.StringVar(&f.root, "root", "..", "folder of Ringback's sources")
	set.StringVar(&f.earlier, "earlier", "", "folder of the sources of an earlier Ringback, to measure beside this one")
	set.StringVar(&f.json, "json", "bench.json", "file for every raw run")
	set.StringVar(&f.from, "from", "", "file of an earlier run, to show instead of measuring")
	set.StringVar(&f.docs, "docs", "", "folder for benchmarks.md and its plots")
	if err := set.Parse(args); err != nil {
		return 2
	}
	if set.NArg() > 0 {
		fmt.Fprintf(stderr, "unknown argument %q\n", set.Arg(0))
		return 2
	}
	if f.list {
		for _, fig := range figures {
			fmt.Fprintf(stdout, "%-18s %s\n", fig.name, fig.title)
		}
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends at once; children die with this process
	if err := f.show(ctx, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "ringback-bench:", err)
		return 1
	}
	return 0
}

// show measures, or reads what was measured, and writes it wherever it is wanted.
func (f flags) show(ctx context.Context, stdout, stderr io.Writer) error {
	var doc *document
	var failed error
	if f.from != "" {
		var err error
		if doc, err = readDocument(f.from); err != nil {
			return err
		}
	} else {
		chosen, err := choose(figures, f.only)
		if err != nil {
			return err
		}
		doc, failed = measure(ctx, f, chosen, stderr)
		if doc == nil {
			return failed
		}
		if err := doc.write(f.json); err != nil {
			return err
		}
	}
	fmt.Fprint(stdout, doc.markdown())
	if f.docs != "" {
		if err := writeDocs(f.docs, doc); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// choose picks figures by name, in their own order; no names mean all.
func choose(all []figure, names string) ([]figure, error) {
	if names == "" {
		return all, nil
	}
	wanted := make(map[string]bool)
	for name := range strings.SplitSeq(names, ",") {
		wanted[strings.TrimSpace(name)] = true
	}
	var chosen []figure
	for _, f := range all {
		if wanted[f.name] {
			chosen = append(chosen, f)
			delete(wanted, f.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("there is no figure %q; -list shows all", name)
	}
	return chosen, nil
}
