package cli

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

func TestParse_AnswersAsKongDoes(t *testing.T) {
	type grammar struct {
		Commands

		Level string `enum:"low,high" default:"low"`
		Key   string
	}
	for line, want := range map[string]string{
		"":                               "expected one of ",
		"job":                            "expected one of ",
		"job bogus":                      "unexpected argument bogus",
		"job get":                        `expected "<id>"`,
		"work list extra":                "unexpected argument extra",
		"completion":                     `expected "<shell>"`,
		"completion csh":                 `<shell> must be one of "bash","zsh","fish" but got "csh"`,
		"completion bash --level=middle": `--level must be one of "low","high" but got "middle"`,
		"signature sign --bogus":         "unknown flag --bogus",
		"signature sign":                 "missing flags: --data=TEXT, --secret-file=FILE",
		"apply":                          "missing flags: --file=FILE",
		"job list --limit=many":          "--limit: expected a valid 64 bit int but got \"many\"",
		"completion bash":                "",
		"job get a":                      "",
		"apply -f a -f b":                "",
	} {
		args := strings.Fields(line)
		var ours, kongs grammar
		_, err := Parse(kong.Must(&ours, kong.Name("ringback")), args, nil)
		_, kongErr := kong.Must(&kongs, kong.Name("ringback")).Parse(args)
		if want == "" {
			require.NoError(t, err, line)
			require.NoError(t, kongErr, line)
			require.Equal(t, kongs, ours, line)
			continue
		}
		require.ErrorContains(t, err, want, line)
		require.EqualError(t, kongErr, err.Error(), line)
	}
}
