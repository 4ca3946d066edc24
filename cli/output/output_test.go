package output

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var now = time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)

// printed returns what a printer prints.
func printed(t *testing.T, o Options, with func(p *Printer) error) string {
	t.Helper()
	var b strings.Builder
	o.Out, o.Now = &b, func() time.Time { return now }
	p, err := New(o)
	require.NoError(t, err)
	require.NoError(t, with(p))
	return b.String()
}

func list(items ...string) func(p *Printer) error {
	return func(p *Printer) error {
		l := p.List(Columns("ID id", "STATE state", "NEXT next.0.at", "+FAR far", "NOTE note"))
		for _, item := range items {
			if err := l.Add(json.RawMessage(item)); err != nil {
				return err
			}
		}
		return l.Close()
	}
}

func TestList_HasAFormForEachReader(t *testing.T) {
	items := []string{
		`{"id": "a", "state": "dead", "next": [{"at": "2030-01-31T08:01:30Z"}], "far": ["x", 2], "note": ""}`,
		`{"id": "bcd", "state": null, "next": [], "far": {"k": "v"}, "note": "n"}`,
	}
	require.Equal(t, "ID   STATE  NEXT      NOTE\na    dead   in 1m30s  -\nbcd  -      -         n\n",
		printed(t, Options{Terminal: true}, list(items...)))
	require.Equal(t, "ID   STATE  NEXT                      FAR  NOTE\na    dead   2030-01-31T08:01:30.000Z  x,2  "+
		"-\nbcd  -      -                         k=v  n\n",
		printed(t, Options{Format: Wide}, list(items...)))
	require.Contains(t, printed(t, Options{Terminal: true, Color: true}, list(items...)),
		"a    \x1b[31mdead\x1b[0m   in 1m30s")
	require.Equal(t, 2, strings.Count(printed(t, Options{}, list(items...)), "\n"), "not a terminal: a line each")
	require.JSONEq(t, "["+strings.Join(items, ",")+"]", printed(t, Options{Format: JSON}, list(items...)))
	require.JSONEq(t, "[]", printed(t, Options{Format: JSON}, list()))
	require.Equal(t, "a\nbcd\n", printed(t, Options{Filter: ".id"}, list(items...)))
	require.Equal(t, "1\n0\n", printed(t, Options{Filter: ".next | length", Terminal: true}, list(items...)))
	require.Equal(t, "12345678901234567890\n", printed(t, Options{Filter: ".n"}, list(`{"n": 12345678901234567890}`)))
}

func TestTable_FitsTheWidthUnlessItIsWide(t *testing.T) {
	long := strings.Repeat("x", 40)
	row := func(id, note string) string {
		return `{"id": "` + id + `", "state": "dead", "next": [], "note": "` + note + `"}`
	}
	for width, want := range map[int]string{
		60: "ID    STATE  NEXT  NOTE\nabcd  dead   -     " + long + "\n",
		55: "ID    STATE  NOTE\nabcd  dead   " + long + "\n",
		30: "ID    STATE  NOTE\nabcd  dead   " + long[:16] + "…\n",
		20: "ID    STATE\nabcd  dead\n",
		1:  "ID\nabcd\n",
	} {
		require.Equal(t, want, printed(t, Options{Format: Table, Width: width}, list(row("abcd", long))), width)
	}
	colored := printed(t, Options{Terminal: true, Color: true, Width: 20},
		list(`{"id": "abcdefghij", "state": "delivered"}`))
	require.Contains(t, colored, "\nabcdefghij  deliver…\n", "a colour without an end would go on")
	require.Contains(t, printed(t, Options{Format: Wide, Width: 20}, list(row("abcd", long))), long)
	pages := make([]string, pageRows)
	for i := range pages {
		pages[i] = row("a", "short")
	}
	text := printed(t, Options{Format: Table, Width: 30}, list(slices.Concat(pages, []string{row("b", long)})...))
	require.Contains(t, text, "xxxx…\n", "a later page keeps the columns of the first, and cuts what does not fit them")
	require.NotContains(t, text, long)
}

func TestOne_PrintsMembersBelowEachOther(t *testing.T) {
	thing := `{"id": "a", "none": null, "empty": "", "inner": {"x": 1, "deep": {"y": "z"}}, "body": {"order":   1}, ` +
		`"attempts": [{"id": "n"}]}`
	text := printed(t, Options{Format: Table, Nested: map[string]View{"attempts": Columns("ID id")}},
		func(p *Printer) error { return p.One(json.RawMessage(thing)) })
	require.Equal(t,
		"id            a\ninner.x       1\ninner.deep.y  z\nbody          {\"order\":   1}\n\nattempts\nID\nn\n", text)
}

// forms are the options that show the member id to people.
var forms = []Options{{Format: Table}, {Format: Wide}, {Format: JSON}, {Format: JSONL}, {Filter: ".id", Terminal: true}}

// What receivers and clients sent may try to change the terminal.
func TestPrinter_EscapesHostileText(t *testing.T) {
	hostile := "\x1b]0;owned\x07\u009b31m\u202e\u2067\r\x00<script>\u2028"
	raw, err := json.Marshal(map[string]any{"id": hostile, "state": hostile, hostile: hostile, "body": hostile})
	require.NoError(t, err)
	one := func(p *Printer) error { return p.One(raw) }
	for _, o := range append(forms, Options{Filter: "."}) {
		for _, with := range []func(p *Printer) error{one, list(string(raw))} {
			text := printed(t, o, with)
			require.NotEmpty(t, text)
			for _, r := range "\x1b\x07\u009b\u202e\u2067\r\x00\u2028" {
				require.NotContains(t, text, string(r), "%+v", o)
			}
			if o.Format == JSONL {
				require.JSONEq(t, string(raw), text, "escapes change no value")
			}
		}
	}
	require.Equal(t, `a\ufffdb`, Printable("a\xffb"))
}

func TestPrinter_ChangesNoText(t *testing.T) {
	const text = "10\u00a0€ 5\u202fkm\u3000co\u00adop 👩\u200d🚀 \u05d0\u200f\ufe0f \ue000 \U0001fae9 \ufffd"
	raw, err := json.Marshal(map[string]any{"id": text, "state": "\x1b\u202e\r" + text})
	require.NoError(t, err)
	one := func(p *Printer) error { return p.One(raw) }
	for _, o := range forms {
		require.Contains(t, printed(t, o, one), text, "%+v", o)
		require.Contains(t, printed(t, o, list(string(raw))), text, "%+v", o)
	}
	require.Equal(t, "\x1b\u202e\r"+text+"\n", printed(t, Options{Filter: ".state"}, one), "a pipe gets what was sent")
}

func TestSpan_HasTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "<1ms", 250 * time.Millisecond: "250ms", 59 * time.Second: "59s", time.Hour: "1h",
		25*time.Hour + 30*time.Minute: "1d1h", 90 * time.Second: "1m30s",
	} {
		require.Equal(t, want, Span(d))
	}
}
