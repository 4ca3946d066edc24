package output

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// pageRows is the number of rows of a table that are printed together, and so have the same widths.
const pageRows = 100

// List prints things of a kind as they come. Close ends it.
type List struct {
	p      *Printer
	view   View
	rows   [][]string
	items  int
	fitted []int // the widths at which the columns of the first page fit, 0: left out; nil: any
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
		if l.p.format == Table && i < len(columns)-1 {
			cell = cut(cell, maxCell)
		}
		row = append(row, cell)
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
	columns := l.columns()
	first := l.items == len(rows)
	if first {
		var titles []string
		for _, c := range columns {
			titles = append(titles, c.Title)
		}
		rows = append([][]string{titles}, rows...)
		if l.p.format == Table && l.p.Width > 0 && !slices.ContainsFunc(l.view, isVerbatim) {
			l.fitted = fit(rows, l.p.Width)
		}
	}
	for r, row := range rows {
		kept := row[:0]
		for i, cell := range row {
			switch {
			case l.fitted != nil && l.fitted[i] == 0:
				continue
			case l.fitted != nil:
				cell = cut(cell, l.fitted[i])
			}
			if r > 0 || !first { // not of a title
				cell = l.p.colored(columns[i].Title, cell)
			}
			kept = append(kept, cell)
		}
		rows[r] = kept
	}
	return l.p.write(rows)
}

// isVerbatim reports whether a column has texts that are not cut: its table may be too wide.
func isVerbatim(c Column) bool { return c.Verbatim }

// shortest is the width to which a table that is too wide cuts the cells of a column.
const shortest = 8

// fit returns the widths at which the columns of rows, the first of which has the titles, need at most most characters;
// 0 of a column that is left out. First go the columns without a value, then the ends of the longest cells, except in
// the first column, which identifies, and then the columns at the end.
func fit(rows [][]string, most int) []int {
	widths, sum := make([]int, len(rows[0])), -2
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], width(row[i]))
		}
		sum += widths[i] + 2
	}
	leaveOut := func(i int) {
		if sum > most && widths[i] > 0 {
			sum -= widths[i] + 2
			widths[i] = 0
		}
	}
	for i := 1; i < len(widths) && len(rows) <= pageRows; i++ { // no other page has a value
		if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "-" }) {
			leaveOut(i)
		}
	}
	for sum > most {
		longest := 0
		for i := 1; i < len(widths); i++ {
			if widths[i] > shortest && (longest == 0 || widths[i] > widths[longest]) {
				longest = i
			}
		}
		if longest == 0 {
			break
		}
		widths[longest]--
		sum--
	}
	for i := len(widths) - 1; i > 0; i-- {
		leaveOut(i)
	}
	return widths
}

// cut returns a cell in at most most characters.
func cut(cell string, most int) string {
	if utf8.RuneCountInString(cell) <= most {
		return cell
	}
	return string([]rune(cell)[:most-1]) + "…"
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
