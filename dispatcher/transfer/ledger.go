package transfer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ringback/ringback/job"
)

// Row is what a Ledger counts together.
type Row struct {
	Namespace string `json:"namespace"`
	Topic     string `json:"topic"`
	// State is pending of jobs that have not ended, else the state of the job.
	State string `json:"state"`
}

// Pending is the Row.State of jobs that have not ended.
const Pending = "pending"

// Ledger counts jobs. Its JSON form is a list in order.
type Ledger map[Row]int64

// ledgerLine is a row in JSON.
type ledgerLine struct {
	Row
	Jobs int64 `json:"jobs"`
}

// add counts a job.
func (l Ledger) add(q job.Queue, state job.State) { l[rowOf(q, state)]++ }

func rowOf(q job.Queue, state job.State) Row {
	row := Row{Namespace: q.Namespace, Topic: q.Topic, State: Pending}
	if state.Ended() {
		row.State = string(state)
	}
	return row
}

// rowOfJob returns the row of a job of a store: a running one is cancelled in the file if that was requested.
func rowOfJob(j *job.Job) Row {
	if isCancelled(j) {
		return rowOf(j.Queue, job.Cancelled)
	}
	return rowOf(j.Queue, j.State)
}

// Jobs returns the number of all jobs.
func (l Ledger) Jobs() (sum int64) {
	for _, n := range l {
		sum += n
	}
	return sum
}

// rows returns the rows of some ledgers in order.
func rows(all ...Ledger) []Row {
	seen := make(map[Row]bool)
	var list []Row
	for _, l := range all {
		for row := range l {
			if !seen[row] {
				seen[row] = true
				list = append(list, row)
			}
		}
	}
	slices.SortFunc(list, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Topic, b.Topic),
			cmp.Compare(a.State, b.State))
	})
	return list
}

// MarshalJSON returns the rows in order.
func (l Ledger) MarshalJSON() ([]byte, error) {
	lines := make([]ledgerLine, 0, len(l))
	for _, row := range rows(l) {
		lines = append(lines, ledgerLine{Row: row, Jobs: l[row]})
	}
	return json.Marshal(lines)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (l *Ledger) UnmarshalJSON(text []byte) error {
	var lines []ledgerLine
	if err := decodeStrictly(text, &lines); err != nil {
		return err
	}
	*l = make(Ledger, len(lines))
	for _, line := range lines {
		if _, twice := (*l)[line.Row]; twice || line.Jobs < 1 {
			return fmt.Errorf("the ledger has no valid row for %s/%s %s", line.Namespace, line.Topic, line.State)
		}
		(*l)[line.Row] = line.Jobs
	}
	return nil
}

// Column is a ledger with a title.
type Column struct {
	Title  string
	Ledger Ledger
}

// Table returns ledgers side by side as text.
func Table(columns ...Column) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	all := make([]Ledger, len(columns))
	_, _ = fmt.Fprint(w, "NAMESPACE\tTOPIC\tSTATE")
	for i, c := range columns {
		all[i] = c.Ledger
		_, _ = fmt.Fprint(w, "\t", c.Title)
	}
	_, _ = fmt.Fprintln(w)
	for _, row := range rows(all...) {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s", row.Namespace, row.Topic, row.State)
		for _, l := range all {
			_, _ = fmt.Fprintf(w, "\t%d", l[row])
		}
		_, _ = fmt.Fprintln(w)
	}
	_ = w.Flush()
	return b.String()
}
