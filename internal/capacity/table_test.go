package capacity

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table in docs/capacity.md anew")

// number returns a number as the docs write it.
func (l *Limit) number(n int) string {
	switch {
	case l.Bytes:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1000:
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	default:
		return fmt.Sprint(n)
	}
}

func TestDocs_HaveTheTable(t *testing.T) {
	const path, head, end = "../../docs/capacity.md", "\n| of a process |", "\n\n"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	table := head + " all | one namespace | beyond it |\n|---|---|---|---|\n"
	for _, l := range Table {
		name, share := l.Name, "–"
		if l.PerStore {
			name += ", for each store"
		}
		if l.Depends != "" {
			name += " (" + l.Depends + ")"
		}
		if l.Weight > 0 {
			share = l.number(l.Share())
		}
		if l.ByTopic {
			share += " for a topic"
		}
		table += fmt.Sprintf("| %s | %s | %s | %s |\n", name, l.number(l.Whole), share, l.Beyond)
	}
	before, rest, found := strings.Cut(string(page), head)
	require.True(t, found)
	_, after, _ := strings.Cut(rest, end)
	want := before + strings.TrimSuffix(table, "\n") + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(page), "docs/capacity.md: run make generate")
}
