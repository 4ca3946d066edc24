package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// Format is a form of the output.
type Format string

// The formats.
const (
	Table Format = "table" // for people
	Wide  Format = "wide"  // with more columns, and times as they are
	JSON  Format = "json"  // one document, indented: a list is an array
	JSONL Format = "jsonl" // one line for each thing
	Curl  Format = "curl"  // the request, which is not sent
)

// Formats are all formats.
var Formats = []Format{Table, Wide, JSON, JSONL, Curl}

// Options are the settings of a Printer.
type Options struct {
	Out    io.Writer
	Format Format // empty: table on a terminal, else jsonl
	// Filter is a jq filter. It gets each thing by itself; results that are texts are printed by Raw.
	Filter   string
	Terminal bool // Out is a terminal
	Width    int  // of a line, in characters, which tables fit if they can; 0: any
	Color    bool // with colours, on a terminal
	// Nested are the views of lists inside of a thing, by the names of the members.
	Nested map[string]View
	Now    func() time.Time
}

// Printer prints things. It is not safe for concurrent use.
type Printer struct {
	Options
	format Format
	color  bool
	now    func() time.Time
	filter *gojq.Code
}

// New returns a printer, or an error for a filter that is not valid.
func New(o Options) (*Printer, error) {
	p := &Printer{Options: o, format: o.Format, color: o.Color && o.Terminal, now: o.Now}
	if p.format == "" {
		p.format = JSONL
		if o.Terminal {
			p.format = Table
		}
	}
	if o.Filter == "" {
		return p, nil
	}
	query, err := gojq.Parse(o.Filter)
	if err == nil {
		p.filter, err = gojq.Compile(query)
	}
	if err != nil {
		return nil, fmt.Errorf("--jq: %w", err)
	}
	return p, nil
}

// Format is the format in force.
func (p *Printer) Format() Format { return p.format }

// ForPeople reports whether the output is for people.
func (p *Printer) ForPeople() bool { return p.filter == nil && (p.format == Table || p.format == Wide) }

// One prints a thing, or what has its JSON: for people its members below each other, the lists inside of it as tables
// after them.
func (p *Printer) One(thing any) error {
	raw, err := encode(thing)
	switch {
	case err != nil:
		return err
	case p.filter != nil:
		return p.filtered(raw)
	case p.format == JSON:
		return p.Document(raw)
	case p.ForPeople():
		return p.members(raw)
	default:
		return p.line(raw)
	}
}

// OneLine prints a thing as One does, but for people a line about it.
func (p *Printer) OneLine(text string, thing any) error {
	if p.ForPeople() {
		_, err := fmt.Fprintln(p.Out, text)
		return err
	}
	return p.One(thing)
}

// encode returns the JSON of a thing.
func encode(thing any) (json.RawMessage, error) {
	switch raw := thing.(type) {
	case json.RawMessage:
		return raw, nil
	case []byte:
		return raw, nil
	}
	return json.Marshal(thing)
}

// Document prints one JSON document, indented, whatever the format.
func (p *Printer) Document(raw json.RawMessage) error {
	if err := p.element(raw, ""); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.Out)
	return err
}

// element prints an indented document without a line break at its end. Prefix is before its lines.
func (p *Printer) element(raw json.RawMessage, prefix string) error {
	b := *bytes.NewBufferString(prefix)
	if err := json.Indent(&b, raw, prefix, "  "); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	_, err := io.WriteString(p.Out, escapeJSON(b.String()))
	return err
}

func (p *Printer) line(raw json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	_, err := fmt.Fprintln(p.Out, escapeJSON(b.String()))
	return err
}

// Raw prints a text byte for byte; on a terminal, what that would act on is escaped.
func (p *Printer) Raw(text string) error {
	if p.Terminal {
		text = PrintableLines(text)
	}
	_, err := io.WriteString(p.Out, text)
	return err
}

// filtered prints the results of the jq filter.
func (p *Printer) filtered(raw json.RawMessage) error {
	var input any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // large numbers stay as they are
	if err := d.Decode(&input); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	for results := p.filter.Run(input); ; {
		result, ok := results.Next()
		if !ok {
			return nil
		}
		if err, is := result.(error); is {
			if halt, is := errors.AsType[*gojq.HaltError](err); is && halt.Value() == nil {
				return nil
			}
			return fmt.Errorf("--jq: %w", err)
		}
		if text, is := result.(string); is {
			if err := p.Raw(text + "\n"); err != nil {
				return err
			}
			continue
		}
		encoded, err := gojq.Marshal(result)
		if err != nil {
			return fmt.Errorf("--jq: %w", err)
		}
		if _, err := fmt.Fprintln(p.Out, escapeJSON(string(encoded))); err != nil {
			return err
		}
	}
}

// members prints the members of an object that are not null.
func (p *Printer) members(raw json.RawMessage) error {
	rows, lists := p.flat(raw, "")
	if err := p.write(rows); err != nil {
		return err
	}
	for _, m := range lists {
		if string(m.value) == "[]" {
			continue
		}
		if _, err := fmt.Fprintf(p.Out, "\n%s\n", Printable(m.name)); err != nil {
			return err
		}
		if err := p.Items(raw, m.name, p.Nested[m.name]); err != nil {
			return err
		}
	}
	return nil
}

// verbatim is the member that may be any JSON, which is shown as such.
const verbatim = "body"

// flat returns a row for each member that is not null, those of inner objects with dots, and the lists that are tables.
func (p *Printer) flat(raw json.RawMessage, prefix string) (rows [][]string, lists []member) {
	for _, m := range parse(raw) {
		name := prefix + Printable(m.name)
		_, nested := p.Nested[m.name]
		switch {
		case string(m.value) == "null", string(m.value) == `""`:
		case nested && prefix == "" && bytes.HasPrefix(m.value, []byte("[")):
			lists = append(lists, m)
		case m.name == verbatim:
			rows = append(rows, []string{name, Printable(string(m.value))})
		case bytes.HasPrefix(m.value, []byte("{")):
			inner, _ := p.flat(m.value, name+".")
			rows = append(rows, inner...)
		default:
			rows = append(rows, []string{name, p.colored(m.name, p.cell(m.value, false))})
		}
	}
	return rows, lists
}

// Items prints the items of a list inside of a thing.
func (p *Printer) Items(raw json.RawMessage, member string, view View) error {
	var items []json.RawMessage
	if err := json.Unmarshal(at(raw, member), &items); err != nil {
		return fmt.Errorf("%s is not a list: %w", member, err)
	}
	list := p.List(view)
	for _, item := range items {
		if err := list.Add(item); err != nil {
			return err
		}
	}
	return list.Close()
}

// maxCell is the longest text of a cell in the format table, in characters.
const maxCell = 60

// write prints rows of cells in columns.
func (p *Printer) write(rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if strings.Join(row[i+1:], "") == "" {
				break // no space at the end of the line
			}
			b.WriteString(strings.Repeat(" ", widths[i]-width(cell)+2))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(p.Out, b.String())
	return err
}

// width is the number of characters of a cell, without colours.
func width(cell string) int {
	if strings.HasPrefix(cell, "\x1b[") {
		return utf8.RuneCountInString(cell) - len("\x1b[31m") - len("\x1b[0m")
	}
	return utf8.RuneCountInString(cell)
}

// colors are those of states and verdicts.
var colors = map[string]string{
	"delivered": "32", "done": "32", "active": "32", "closed": "32", "run": "32",
	"dead": "31", "failed": "31", "open": "31", "unreadable": "31",
	"running": "36", "ready": "36", "again": "33", "paused": "33", "half_open": "33",
	"stopped": "33", "cancelled": "33",
}

// Colored returns a text in the colour of a state.
func (p *Printer) Colored(text, state string) string {
	if color := colors[state]; p.color && color != "" {
		return "\x1b[" + color + "m" + text + "\x1b[0m"
	}
	return text
}

// colored returns a cell in the colour of its state.
func (p *Printer) colored(name, cell string) string {
	switch strings.ToLower(name) {
	case "state", "verdict", "breaker", "outcome":
		return p.Colored(cell, cell)
	}
	return cell
}
