package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// A document has all results of a run: every reading, and the table and the curves computed from them.
type document struct {
	Machine machine   `json:"machine"`
	Quick   bool      `json:"quick"`
	Sizes   sizes     `json:"sizes"`
	Took    string    `json:"took"`
	Figures []*result `json:"figures"`
}

// A result is the result of one figure.
type result struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Error  string   `json:"error,omitempty"` // why it is incomplete
	Notes  []string `json:"notes,omitempty"`
	Runs   []series `json:"runs"`
	Rows   []row    `json:"rows"`
	Curves []curve  `json:"curves,omitempty"`
}

// A series is every reading of one measure of a contestant, in order.
type series struct {
	Contestant string    `json:"contestant"`
	Measure    string    `json:"measure"`
	Values     []float64 `json:"values"`
}

// A curve is a line of a plot.
type curve struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

// A goal has two limits for a number: the bar, which is required, and the aim. Low: the number must not exceed them.
type goal struct {
	Bar float64 `json:"bar"`
	Aim float64 `json:"aim"`
	Low bool    `json:"low,omitempty"`
}

func atLeast(bar, aim float64) *goal { return &goal{Bar: bar, Aim: aim} }

func atMost(bar, aim float64) *goal { return &goal{Bar: bar, Aim: aim, Low: true} }

// A row is a row of the table. Its goal applies to the ratio if there is a peer, else to the value.
type row struct {
	Text   string   `json:"text"`
	Unit   string   `json:"unit"`
	Ours   *summary `json:"ours"`
	Peer   string   `json:"peer,omitempty"`
	Theirs *summary `json:"theirs,omitempty"`
	Ratio  *summary `json:"ratio,omitempty"`
	Goal   *goal    `json:"goal,omitempty"`
}

// add adds the reading of a run.
func (r *result) add(contestant string, got reading) {
	for _, measure := range slices.Sorted(maps.Keys(got)) {
		if s := r.find(contestant, measure); s != nil {
			s.Values = append(s.Values, got[measure])
			continue
		}
		r.Runs = append(r.Runs, series{contestant, measure, []float64{got[measure]}})
	}
}

func (r *result) find(contestant, measure string) *series {
	for i := range r.Runs {
		if s := &r.Runs[i]; s.Contestant == contestant && s.Measure == measure {
			return s
		}
	}
	return nil
}

// values returns a contestant's values of a measure, empty if it was left out.
func (r *result) values(contestant, measure string) []float64 {
	if s := r.find(contestant, measure); s != nil {
		return s.Values
	}
	return nil
}

// value adds a row with a value of a contestant.
func (r *result) value(text, contestant, measure string, g *goal) {
	r.Rows = append(r.Rows, row{
		Text: text, Unit: measure, Ours: summarize(r.values(contestant, measure)), Goal: g,
	})
}

// compare adds a row that compares two contestants run by run, unless the peer was left out.
func (r *result) compare(text, contestant, peer, measure string, g *goal) {
	a, b := r.values(contestant, measure), r.values(peer, measure)
	if len(b) == 0 {
		return
	}
	r.Rows = append(r.Rows, row{
		Text: text, Unit: measure, Ours: summarize(a), Peer: peer, Theirs: summarize(b),
		Ratio: summarize(ratios(a, b)), Goal: g,
	})
}

// String formats a reading on one line.
func (r reading) String() string {
	var all []string
	for _, measure := range slices.Sorted(maps.Keys(r)) {
		all = append(all, number(r[measure])+" "+measure)
	}
	return strings.Join(all, ", ")
}

func (d *document) figure(name string) *result {
	for _, f := range d.Figures {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func (d *document) write(path string) error {
	text, err := json.MarshalIndent(d, "", " ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // for everyone to read
	}
	if err != nil {
		return fmt.Errorf("write the runs: %w", err)
	}
	return nil
}

func readDocument(path string) (*document, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the runs: %w", err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read the runs: %w", err)
	}
	return &d, nil
}
