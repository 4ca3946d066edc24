package output

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// View is the columns in which things of a kind are shown.
type View []Column

// Column is a column: the title, and the path of the member that it shows, with dots.
type Column struct {
	Title, Path string
	Wide        bool // only in the format wide
	Verbatim    bool // times are shown as they are
}

// Columns returns a view. Each text is a title, a space and a path; + before it makes the column wide, = before the
// path verbatim.
func Columns(all ...string) View {
	var v View
	for _, text := range all {
		title, path, _ := strings.Cut(strings.TrimPrefix(text, "+"), " ")
		v = append(v, Column{title, strings.TrimPrefix(path, "="), text[0] == '+', path[0] == '='})
	}
	return v
}

// object is a JSON object in the order of its text.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// parse reads an object; anything else has no members.
func parse(raw json.RawMessage) object {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var o object
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return o
		}
		var m member
		m.name, _ = name.(string)
		if d.Decode(&m.value) != nil {
			return o
		}
		o = append(o, m)
	}
	return o
}

// at returns the member of a path; nil: there is none. A number is a position in a list.
func at(raw json.RawMessage, path string) json.RawMessage {
	for name := range strings.SplitSeq(path, ".") {
		var found json.RawMessage
		if n, err := strconv.Atoi(name); err == nil {
			var items []json.RawMessage
			if json.Unmarshal(raw, &items) == nil && n < len(items) {
				found = items[n]
			}
		}
		for _, m := range parse(raw) {
			if m.name == name {
				found = m.value
			}
		}
		raw = found
	}
	return raw
}

// cell returns a value as the text of a cell: - for null, times from now on, lists and objects on one line.
func (p *Printer) cell(raw json.RawMessage, verbatim bool) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return "-"
	}
	switch raw[0] {
	case '"':
		var text string
		_ = json.Unmarshal(raw, &text)
		if t, err := time.Parse(time.RFC3339, text); err == nil && !verbatim {
			return p.Time(t)
		}
		return Printable(cmp.Or(text, "-"))
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items)
		texts := make([]string, len(items))
		for i, item := range items {
			texts[i] = p.cell(item, verbatim)
		}
		return strings.Join(texts, ",")
	case '{':
		var texts []string
		for _, m := range parse(raw) {
			texts = append(texts, Printable(m.name)+"="+p.cell(m.value, verbatim))
		}
		return strings.Join(texts, " ")
	default:
		return Printable(string(raw))
	}
}

// Texts returns the members of an object that are texts or numbers.
func Texts(raw json.RawMessage) map[string]string {
	texts := make(map[string]string)
	for _, m := range parse(raw) {
		var text string
		if json.Unmarshal(m.value, &text) != nil {
			text = string(m.value)
		}
		texts[m.name] = Printable(text)
	}
	return texts
}

// Time returns a time for people: how far away it is, or in the format wide the time itself.
func (p *Printer) Time(t time.Time) string {
	if p.format == Wide {
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	switch d := t.Sub(p.now()).Round(time.Second); {
	case d > 0:
		return "in " + Span(d)
	case d < 0:
		return Span(-d) + " ago"
	default:
		return "now"
	}
}

// Span returns a duration in at most two units.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return two(d, day, "d", time.Hour, "h")
	case d >= time.Hour:
		return two(d, time.Hour, "h", time.Minute, "m")
	case d >= time.Minute:
		return two(d, time.Minute, "m", time.Second, "s")
	case d >= time.Second:
		return two(d, time.Second, "s", time.Second, "")
	case d < time.Millisecond:
		return "<1ms"
	default:
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
}

// Milliseconds returns a number of milliseconds as Span does.
func Milliseconds(ms float64) string { return Span(time.Duration(ms * float64(time.Millisecond))) }

func two(d, big time.Duration, bigUnit string, small time.Duration, smallUnit string) string {
	text := fmt.Sprintf("%d%s", d/big, bigUnit)
	if rest := d % big / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallUnit)
	}
	return text
}
