package audit

import (
	"encoding/json"
	"fmt"
	"io"
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

// rows are the lines of a ledger.
func rows(l *store.Ledger) []ledgerRow {
	r, p, c := l.Records, l.Places, l.Counters
	return []ledgerRow{
		{"waiting", r.Waiting, p.Waiting, c.Waiting, false},
		{"running", r.Running, p.Running, c.Running, false},
		{"delivered", r.Delivered, p.Delivered, c.Delivered, true},
		{"dead", r.Dead, p.Dead, c.Dead, true},
		{"cancelled", r.Cancelled, p.Cancelled, c.Cancelled, true},
	}
}

// ledgerRow is a line of a ledger.
type ledgerRow struct {
	state                     string
	records, places, counters int64
	ended                     bool
}

// removed returns how many ended jobs retention or a purge has removed.
func (r *ledgerRow) removed() int64 {
	if r.ended {
		return r.counters - r.places
	}
	return 0
}

// isEqual reports whether the three numbers agree.
func (r *ledgerRow) isEqual() bool {
	return r.records == r.places && (r.places == r.counters || r.removed() > 0)
}

// WriteText writes a report for people.
func (n *Named) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "store %s: %s, %d shard(s)\n\n", n.Name, n.URL, n.Shards)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\trecords\tplaces\tcounters\tremoved\t")
	unequal := false
	for _, r := range rows(&n.Ledger) {
		equal := "equal"
		if !r.isEqual() {
			equal, unequal = "NOT EQUAL", true
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t %s\n", r.state, r.records, r.places, r.counters, r.removed(), equal)
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
	var names []string
	for _, name := range []string{f.ID, f.Where} {
		if name != "" {
			names = append(names, visible(name))
		}
	}
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
		Ledger     []jsonRow   `json:"ledger"`
		Faults     []jsonFault `json:"faults"`
		More       bool        `json:"more"`
		Left       int         `json:"left"`
	}
	jsonRow struct {
		State    string `json:"state"`
		Records  int64  `json:"records"`
		Places   int64  `json:"places"`
		Counters int64  `json:"counters"`
		Removed  int64  `json:"removed"`
		Equal    bool   `json:"equal"`
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
		Registered: n.Ledger.Registered, Outbox: n.Ledger.Outbox, Faults: []jsonFault{}, More: n.More, Left: n.Left(),
	}
	for _, l := range rows(&n.Ledger) {
		r.Ledger = append(r.Ledger, jsonRow{l.state, l.records, l.places, l.counters, l.removed(), l.isEqual()})
	}
	for _, f := range n.Faults {
		means, todo := Advice(f.Kind)
		r.Faults = append(r.Faults, jsonFault{f.Kind, f.Shard, f.Where, f.ID, f.Detail, f.Repaired, means, todo})
	}
	return json.Marshal(r)
}
