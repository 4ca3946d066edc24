package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/cli"
)

// leaves returns the commands that can be run.
func leaves(t *testing.T) []*kong.Node {
	t.Helper()
	parser, err := kong.New(new(commands), kong.Name("ringback"), kong.PostBuild(cli.Describe))
	require.NoError(t, err)
	return parser.Model.Leaves(true)
}

func TestDocs_ListEveryCommand(t *testing.T) {
	const path, head = "../../docs/cli.md", "\n## All commands\n"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	flags, err := os.ReadFile("../../docs/flags.md")
	require.NoError(t, err)
	var table strings.Builder
	for _, command := range leaves(t) {
		name := strings.Join(names(command), " ")
		if !isClientCommand(command) {
			require.Contains(t, string(flags), name, "docs/flags.md")
			continue
		}
		fmt.Fprintf(&table, "| `%s` | %s |\n", name, command.Help)
	}
	before, list, _ := strings.Cut(string(page), head)
	rows := regexp.MustCompile(`(?m)(^\| \x60.*\n)+`)
	want := before + head + rows.ReplaceAllLiteralString(list, table.String())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(page), "docs/cli.md: run make generate")
}

// names returns the words of a command.
func names(command *kong.Node) []string {
	if command.Parent == nil {
		return []string{command.Name}
	}
	return append(names(command.Parent), command.Name)
}

// words splits an example as a shell does.
func words(example string) []string {
	var found []string
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(example, -1) {
		found = append(found, m[1]+m[2])
	}
	return found
}

func TestClientCommands_HaveAnExampleThatParses(t *testing.T) {
	parser, err := kong.New(new(commands), kong.Name("ringback"))
	require.NoError(t, err)
	for _, command := range leaves(t) {
		if !isClientCommand(command) {
			continue
		}
		example := strings.TrimPrefix(command.Detail, "Example:\n\n    ")
		require.NotEmpty(t, example, command.Path())
		k, err := parser.Parse(words(example)[1:])
		require.NoError(t, err, example)
		require.Equal(t, command.Path(), k.Selected().Path())
	}
}

func TestClientCommands_FlagsHaveNoVariables(t *testing.T) {
	// A variable of the server is none of theirs, and theirs are known to every command.
	env := []string{
		"RINGBACK_SERVER=http://127.0.0.1:1", "RINGBACK_CONTEXT=",
		"RINGBACK_NAMESPACE=shop", "RINGBACK_OUTPUT=wide",
	}
	_, _, stderr := try(t, append(env, "RINGBACK_TOPIC=x"), "config")
	require.Contains(t, stderr, "variables=[RINGBACK_TOPIC]")
	_, stdout, _ := try(t, nil, "dead", "revive", "--help")
	require.NotContains(t, stdout, "RINGBACK_TOPIC")
	require.Contains(t, stdout, "($RINGBACK_SERVER)")
}

func TestClientCommands_ReportErrorsWithTheirExitCode(t *testing.T) {
	code, _, stderr := try(t, []string{"RINGBACK_SERVER=http://127.0.0.1:1"}, "stats")
	require.Equal(t, cli.Unavailable, code)
	require.Contains(t, stderr, "no answer from http://127.0.0.1:1")
	code, _, stderr = try(t, []string{"RINGBACK_SERVER=ftp://x"}, "stats")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "RINGBACK_SERVER: must be http:// or https://")
	code, _, stderr = try(t, nil, "stats", "--server=http://a", "--context=b")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "--server cannot be combined with --context")
	code, _, stderr = try(t, nil, "stats", "--server=http://127.0.0.1:1", "--jq=.[")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "--jq: ")
	code, _, stderr = try(t, nil, "job", "list", "-o", "yaml")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "try ringback job list --help")
}

func TestClientCommands_RefuseArgumentsThatAreNotUTF8(t *testing.T) {
	for _, args := range []string{"send http://a/ --id a\xff", "send http://a/ --label " +
		"order=a\xff", "send http://a/ -da\xff", "topic set a\xff rate=1/s", "send http://a/ --header=Pin:a\xff"} {
		fields := strings.Fields(args)
		at := 1 + slices.IndexFunc(fields, func(arg string) bool { return strings.Contains(arg, "\xff") })
		code, _, stderr := try(t, []string{"RINGBACK_SERVER=http://127.0.0.1:1"}, fields...)
		require.Equal(t, cli.Usage, code, args)
		require.Contains(t, stderr,
			fmt.Sprintf("argument %d after ringback is not UTF-8: give texts in UTF-8, and bytes in a file", at))
		require.NotContains(t, stderr, "xff", "it may be a secret")
	}
	_, _, stderr := try(t, nil, "verify", "--store", "sqlite:/none/a\xff")
	require.NotContains(t, stderr, "UTF-8", "a path may have any bytes")
}

// To monitoring the exit code 2 is an outage.
func TestCheck_ExitsWith3IfTheCommandLineIsNotValid(t *testing.T) {
	for _, args := range [][]string{
		{"check", "--no-such-flag"}, {"check", "--timeout", "soon"}, {"check", "--topic", ""},
	} {
		code, stdout, stderr := try(t, nil, args...)
		require.Equal(t, int(cli.CheckUnknown), code, args)
		require.Regexp(t, "^RINGBACK UNKNOWN - .+\n$", stdout)
		require.NotEmpty(t, stderr)
	}
}
