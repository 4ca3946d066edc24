package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ringback/ringback/cli/output"
)

// Text returns a change for people, with a line for each member.
func (c *Change) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\n", map[Action]string{Create: "+", Update: "~", Remove: "-"}[c.Action], c.Action, c.ID)
	for _, m := range c.Members {
		if c.Action == Create {
			fmt.Fprintf(&b, "    %s: %s\n", m.Name, valueText(m.New))
		} else {
			fmt.Fprintf(&b, "    %s: %s -> %s\n", m.Name, valueText(m.Old), valueText(m.New))
		}
	}
	for _, lane := range c.Lanes {
		fmt.Fprintf(&b, "    with lane %s\n", lane)
	}
	return b.String()
}

// Done returns the change for people after it was made.
func (c *Change) Done() string {
	return map[Action]string{Create: "created ", Update: "updated ", Remove: "removed "}[c.Action] + c.String()
}

// valueText returns a value on a line.
func valueText(v any) string {
	if v == nil {
		return "(not set)"
	}
	if text, ok := v.(string); ok && text != "" && !strings.ContainsAny(text, "\"\\\n\t") {
		return text
	}
	encoded, _ := json.Marshal(v) // it was read from JSON
	return string(encoded)
}

// Count returns the number of changes of an action.
func (p *Plan) Count(a Action) (n int) {
	for _, c := range p.Changes {
		if c.Action == a {
			n++
		}
	}
	return n
}

// Print prints the changes, for people with a line that counts them.
func (p *Plan) Print(out *output.Printer) error {
	if out.ForPeople() {
		var b strings.Builder
		for _, c := range p.Changes {
			b.WriteString(output.PrintableLines(c.Text()))
		}
		_, err := fmt.Fprintln(out.Out, b.String()+p.Summary())
		return err
	}
	list := out.List(nil)
	for _, c := range p.Changes {
		if err := list.Add(c); err != nil {
			return err
		}
	}
	return list.Close()
}

// Summary returns the numbers of changes on a line.
func (p *Plan) Summary() string {
	return fmt.Sprintf("%d to create, %d to update, %d to remove, %d unchanged", p.Count(Create), p.Count(Update),
		p.Count(Remove), p.Unchanged)
}
