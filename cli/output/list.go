package output

import (
	"fmt"
)

// pageRows is the number of rows of a table that are printed together, and so have the same widths.
const pageRows = 100

// List prints things of a kind as they come. Close ends it.
type List struct {
	p     *Printer
	view  View
	rows  [][]string
	items int
}

// List begins a list.
func (p *Printer) List(view View) *List { return &List{p: p, view: view} }

// Add prints a thing, or what has its JSON, or keeps it for the next page of a table.
func (l *List) Add(thing any) error {
	raw, err := encode(thing)
	if err != nil {
		return err
	}
	l.items++
	switch {
	case l.p.filter != nil:
		return l.p.filtered(raw)
	case l.p.format == JSON:
		separator := ",\n"
		if l.items == 1 {
			separator = "[\n"
		}
		if _, err := fmt.Fprint(l.p.Out, separator); err != nil {
			return err
		}
		return l.p.element(raw, "  ")
	case !l.p.ForPeople():
		return l.p.line(raw)
	}
	var row []string
	columns := l.columns()
	for i, c := range columns {
		cell := l.p.cell(at(raw, c.Path), c.Verbatim)
		if short := []rune(cell); l.p.format == Table && len(short) > maxCell && i < len(columns)-1 {
			cell = string(short[:maxCell-1]) + "…"
		}
		row = append(row, l.p.colored(c.Title, cell))
	}
	l.rows = append(l.rows, row)
	if len(l.rows) == pageRows {
		return l.flush()
	}
	return nil
}

// columns are those of the format.
func (l *List) columns() []Column {
	var shown []Column
	for _, c := range l.view {
		if !c.Wide || l.p.format == Wide {
			shown = append(shown, c)
		}
	}
	return shown
}

// flush prints the rows that were kept, the first ones under the titles.
func (l *List) flush() error {
	rows := l.rows
	l.rows = nil
	if len(rows) == 0 {
		return nil
	}
	if l.items == len(rows) {
		var titles []string
		for _, c := range l.columns() {
			titles = append(titles, c.Title)
		}
		rows = append([][]string{titles}, rows...)
	}
	return l.p.write(rows)
}

// Close prints what is left.
func (l *List) Close() error {
	if l.p.filter == nil && l.p.format == JSON {
		end := "\n]"
		if l.items == 0 {
			end = "[]"
		}
		_, err := fmt.Fprintln(l.p.Out, end)
		return err
	}
	return l.flush()
}
