// Command ringback-bench compares Ringback with its peers and with bare loops, which show the limits of the machine. It
// writes a table, every raw run as JSON, and plots:
//
//	go -C bench run .                                  every figure, five rounds: about half an hour
//	go -C bench run . -quick                           every figure once, smaller: under two minutes
//	go -C bench run . -only=throughput-redis,lateness  some of them
//	go -C bench run . -only=rss,page,start -pending 10000000 -shards 3   with ten million jobs that wait
//	go -C bench run . -only=soak-redis,soak-sqlite     half an hour of load on each engine
//	go -C bench run . -earlier=../../old               compares with an earlier version, run by run
//	go -C bench run . -docs ../docs                    also writes docs/benchmarks.md and its plots
//	go -C bench run . -from bench.json -docs ../docs   shows the results of an earlier run
//
// Every contestant and the receiver run in separate processes. This one starts them, sends them orders and stops them.
// It needs Linux (it reads /proc) and redis-server, and uses PostgreSQL if it is installed. No process that it starts
// outlives it. Its files are in a temporary folder that it removes, except those that flags name.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// flags are the flags of a run.
type flags struct {
	only    string
	rounds  int
	quick   bool
	list    bool
	root    string
	earlier string
	pending int
	shards  int
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
	set.StringVar(&f.only, "only", "", "figures to measure, separated by commas; see -list. Default: all")
	set.IntVar(&f.rounds, "rounds", 0, "rounds of each figure. Default: 5, with -quick 1")
	set.BoolVar(&f.quick, "quick", false,
		"measure few jobs, once: checks that everything works; the figures mean nothing")
	set.BoolVar(&f.list, "list", false, "list the figures")
	set.StringVar(&f.root, "root", "..", "folder of Ringback's sources")
	set.StringVar(&f.earlier, "earlier", "", "folder with the sources of an earlier Ringback to compare with")
	set.IntVar(&f.pending, "pending", 0, "jobs that wait, of the figures from memory to start. Default: a million")
	set.IntVar(&f.shards, "shards", 1, "shards of the Redis in which they wait")
	set.StringVar(&f.json, "json", "bench.json", "file for every raw run")
	set.StringVar(&f.from, "from", "", "file of an earlier run, which is shown instead of measuring")
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

// show measures, or reads the results of an earlier run, and writes them to stdout and to the files of the flags.
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

// choose returns the named figures in the order of all; empty: all but those on demand.
func choose(all []figure, names string) ([]figure, error) {
	if names == "" {
		return slices.DeleteFunc(slices.Clone(all), func(f figure) bool { return f.onDemand }), nil
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
