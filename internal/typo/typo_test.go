package typo

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHint_NamesTheClosest(t *testing.T) {
	known := slices.Values([]string{
		"url", "run_at", "delay", "on_dead", "on_delivered", "body", "body_text", "keep_dead",
	})
	for name, want := range map[string]string{
		"runAt": "run_at", "RUN_AT": "run_at", "run-at": "run_at", "dely": "delay", "uri": "url",
		"bodytext": "body_text", "on_delivred": "on_delivered", "onDead": "on_dead", "keepdaed": "keep_dead",
		"stroe": "", "color": "", "x": "", "": "", "callback": "", strings.Repeat("a", 1<<20): "",
	} {
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		require.Equal(t, want, Hint(name, known), "%.20s", name)
	}
	require.Equal(t, "; did you mean ab?", Hint("abc", slices.Values([]string{"bc", "ab"})), "the first of equals")
}
