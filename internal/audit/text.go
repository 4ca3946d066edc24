package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/ringback/ringback/store"
)

// A Named report is that of a store with a name.
type Named struct {
	Name string // of the store
	URL  string // without a password
	Report
}

// row is a line of a ledger.
type row struct {
	State    string `json:"state"`
	Records  int64  `json:"records"`
	Places   int64  `json:"places"`
	Counters int64  `json:"counters"`
	Removed  int64  `json:"removed"` // ended jobs that retention or a purge has removed
	Equal    bool   `json:"equal"`   // the three numbers agree
}

// rows are the lines of a ledger.
func rows(l *store.Ledger) []row {
	r, p, c := l.Records, l.Places, l.Counters
	all := []row{
		{State: "waiting", Records: r.Waiting, Places: p.Waiting, Counters: c.Waiting},
		{State: "running", Records: r.Running, Places: p.Running, Counters: c.Running},
		{State: "delivered", Records: r.Delivered, Places: p.Delivered, Counters: c.Delivered},
		{State: "dead", Records: r.Dead, Places: p.Dead, Counters: c.Dead},
		{State: "cancelled", Records: r.Cancelled, Places: p.Cancelled, Counters: c.Cancelled},
	}
	for i := range all {
		n := &all[i]
		if i >= 2 { // they have ended
			n.Removed = n.Counters - n.Places
		}
		n.Equal = n.Records == n.Places && (n.Places == n.Counters || n.Removed > 0)
	}
	return all
}

// WriteText writes a report for people.
func (n *Named) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "store %s: %s, %d shard(s)\n\n", n.Name, n.URL, n.Shards)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\trecords\tplaces\tcounters\tremoved\t")
	unequal := false
	for _, r := range rows(&n.Ledger) {
		equal := "equal"
		if !r.Equal {
			equal, unequal = "NOT EQUAL", true
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t %s\n", r.State, r.Records, r.Places, r.Counters, r.Removed, equal)
	}
	l := &n.Ledger
	equal := "equal"
	if l.Registered != l.Counters.Sum() {
		equal, unequal = "NOT EQUAL", true
	}
	fmt.Fprintf(t, "registered\t%d\t%d\t%d\t\t %s\n", l.Records.Sum(), l.Places.Sum(), l.Registered, equal)
	fmt.Fprintf(t, "outbox\t%d\t\t\t\t\n", l.Outbox)
	_ = t.Flush()
	if unequal && len(n.Faults) == 0 {
		fmt.Fprintln(w,
			"\nNo job is missing or counted wrong: the numbers were read at different moments, while jobs moved.")
	}
	for i := range n.Faults {
		n.writeFault(w, &n.Faults[i])
	}
	if n.More {
		fmt.Fprintf(w,
			"\nThere are more faults than the %d that are listed. Repair these, and verify again.\n", MaxFaults)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", n.summary())
	return err
}

// visible returns a text without characters that a terminal acts on: damaged data may have any.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// writeFault writes a fault with what it means and what to do.
func (n *Named) writeFault(w io.Writer, f *store.Fault) {
	names := slices.DeleteFunc([]string{visible(f.ID), visible(f.Where)}, func(name string) bool { return name == "" })
	shard := ""
	if n.Shards > 1 {
		shard = fmt.Sprintf(" (shard %d)", f.Shard)
	}
	mark := "FAULT"
	if f.Repaired {
		mark = "REPAIRED"
	}
	fmt.Fprintf(w, "\n%s %s: %s%s: %s\n", mark, f.Kind, strings.Join(names, ", "), shard, visible(f.Detail))
	if f.Repaired {
		return
	}
	means, todo := Advice(f.Kind)
	fmt.Fprintf(w, "  means: %s\n  to do: %s\n", means, todo)
}

// summary is the last line of a report.
func (n *Named) summary() string {
	left := n.Left()
	switch {
	case len(n.Faults) == 0:
		return fmt.Sprintf("%d jobs, no fault", n.Ledger.Records.Sum())
	case left == 0:
		return fmt.Sprintf("%d jobs, all %d faults repaired", n.Ledger.Records.Sum(), len(n.Faults))
	case left < len(n.Faults):
		return fmt.Sprintf("%d jobs, %d faults, %d of them "+
			"repaired", n.Ledger.Records.Sum(), len(n.Faults), len(n.Faults)-left)
	default:
		return fmt.Sprintf("%d jobs, %d faults", n.Ledger.Records.Sum(), left)
	}
}

// The JSON of a report.
type (
	jsonReport struct {
		Store      string      `json:"store"`
		URL        string      `json:"url"`
		Shards     int         `json:"shards"`
		Jobs       int64       `json:"jobs"`
		Registered int64       `json:"registered"`
		Outbox     int64       `json:"outbox"`
		Ledger     []row       `json:"ledger"`
		Faults     []jsonFault `json:"faults"`
		More       bool        `json:"more"`
		Left       int         `json:"left"`
	}
	jsonFault struct {
		Kind     store.RepairKind `json:"kind"`
		Shard    int              `json:"shard"`
		Where    string           `json:"where"`
		ID       string           `json:"id"`
		Detail   string           `json:"detail"`
		Repaired bool             `json:"repaired"`
		Means    string           `json:"means"`
		ToDo     string           `json:"to_do"`
	}
)

// MarshalJSON returns the report for programs.
func (n *Named) MarshalJSON() ([]byte, error) {
	r := jsonReport{
		Store: n.Name, URL: n.URL, Shards: n.Shards, Jobs: n.Ledger.Records.Sum(),
		Registered: n.Ledger.Registered, Outbox: n.Ledger.Outbox, Ledger: rows(&n.Ledger), Faults: []jsonFault{},
		More: n.More, Left: n.Left(),
	}
	for _, f := range n.Faults {
		means, todo := Advice(f.Kind)
		r.Faults = append(r.Faults, jsonFault{f.Kind, f.Shard, f.Where, f.ID, f.Detail, f.Repaired, means, todo})
	}
	return json.Marshal(r)
}
