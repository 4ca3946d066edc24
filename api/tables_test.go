package api

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A table of the docs whose rows are members begins with a mark as schemas have: see use. A row with another first cell
// is written by hand, and stays behind the row before it. A member links to where the page's definition of it leads:
//
//	[`breaker`]: breakers.md

var tablePattern = regexp.MustCompile(`(?m)^<!-- .*: rows written by make generate -->\n\n((?:\|.*\n)+)`)

func TestDocs_TablesAreThoseOfTheTypes(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	tables := 0
	for _, path := range pages {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		want := tablePattern.ReplaceAllStringFunc(string(text), func(table string) string {
			tables++
			mark, rows, _ := strings.Cut(table, "\n\n")
			m := readMark(t, mark)
			require.NotNil(t, m, "%s: %s", path, mark)
			fields := slices.DeleteFunc(m.fields(t), func(f field) bool { return f.Is("answer") && m.use != answerUse })
			return mark + "\n\n" + tableOf(m, fields, rows, string(text))
		})
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
			continue
		}
		require.Equal(t, want, string(text), "%s: run make generate", path)
	}
	require.Positive(t, tables)
}

// tableOf returns the table of fields in a page with its rows written anew.
func tableOf(m *mark, fields []field, table, page string) string {
	lines := strings.SplitAfter(table, "\n")
	byHand := make(map[string]string) // rows, by the member before them
	before := ""
	for _, row := range lines[2 : len(lines)-1] {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		name := strings.Trim(cell, "[`]")
		if slices.ContainsFunc(fields, func(f field) bool { return f.Name == name }) {
			before = name
		} else {
			byHand[before] += row
		}
	}
	var b strings.Builder
	b.WriteString(lines[0] + lines[1] + byHand[""])
	for _, f := range fields {
		name := "`" + f.Name + "`"
		if strings.Contains(page, "\n["+name+"]: ") {
			name = "[" + name + "]"
		}
		if m.use == answerUse {
			fmt.Fprintf(&b, "| %s | %s |\n", name, f.text)
		} else {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, unsetCell(f), join(f.text, f.rule()))
		}
		b.WriteString(byHand[f.Name])
	}
	return b.String()
}

// unsetCell returns the default of a field, or else what null is, as a cell.
func unsetCell(f field) string {
	if null := regexp.MustCompile(`Null(?: or empty)?: ([^.]*)\.`).FindStringSubmatch(f.text); null != nil {
		return null[1]
	}
	return f.unset
}
