package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whether man takes the page is tested with the packages.
func TestManual_HasEveryCommandWithItsFlags(t *testing.T) {
	code, page, stderr := try(t, nil, "__man")
	require.Zero(t, code, stderr)
	for _, command := range leaves(t) {
		require.Contains(t, page, "\n.SS "+roff(command.Summary())+"\n"+roff(command.Help)+"\n")
		for _, f := range command.Flags {
			require.Contains(t, page, "\n\\fB"+roff(f.String())+"\\fR\n")
		}
	}
	require.NotContains(t, page, "__")
}

func TestRoff_EscapesWhatTheLanguageReads(t *testing.T) {
	require.Equal(t, `\&.so a\-b \e \(dqx\(dq \[u2026]`, roff(`.so a-b \ "x" …`))
	require.Equal(t, `\&'a'`, roff(`'a'`))
}
