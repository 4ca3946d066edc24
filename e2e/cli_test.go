package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/cli"
	"github.com/ringback/ringback/internal/inbox"
)

// updateDocs replaces the transcripts in docs/cli.md by those of the scripts.
var updateDocs = flag.Bool("docs", false, "write the transcripts of the scripts to docs/cli.md")

const cliPage = "../docs/cli.md"

// The scripts run the binary against a server on each engine. What they show is the same on both, and is what
// docs/cli.md has.
func TestCLI_TranscriptsAreThoseOfTheDocs(t *testing.T) {
	t.Parallel()
	for _, engine := range []struct {
		name, scripts string
		store         func(t *testing.T) string
	}{{"sqlite", "*.txt", newSQLite}, {"redis", "dead.txt", newRedis}} {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			blocks := runScripts(t, engine.store(t), engine.scripts)
			if *updateDocs && engine.name == "sqlite" {
				require.NoError(t, os.WriteFile(cliPage, []byte(withTranscripts(t, blocks)), 0o600))
			}
			page := transcripts(t)
			for name, text := range blocks {
				require.Equal(t, page[name], text,
					"docs/cli.md has another transcript %s: go test ./e2e -run CLI -docs writes it", name)
			}
			if engine.scripts == "*.txt" {
				require.ElementsMatch(t, slices.Collect(maps.Keys(page)), slices.Collect(maps.Keys(blocks)))
			}
		})
	}
}

var transcriptMark = regexp.MustCompile("(?s)<!-- transcript ([a-z-]+) -->\n```\n(.*?)```\n")

// transcripts returns the transcripts in the docs by name.
func transcripts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(cliPage)
	require.NoError(t, err)
	found := make(map[string]string)
	for _, m := range transcriptMark.FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	return found
}

// withTranscripts returns the page with other transcripts.
func withTranscripts(t *testing.T, blocks map[string]string) string {
	t.Helper()
	text, err := os.ReadFile(cliPage)
	require.NoError(t, err)
	return transcriptMark.ReplaceAllStringFunc(string(text), func(block string) string {
		name := transcriptMark.FindStringSubmatch(block)[1]
		return fmt.Sprintf("<!-- transcript %s -->\n```\n%s```\n", name, blocks[name])
	})
}

// runScripts runs scripts against a server on a store, and returns their transcripts by name.
func runScripts(t *testing.T, store, scripts string) map[string]string {
	t.Helper()
	token := filepath.Join(t.TempDir(), "root.token")
	require.NoError(t, os.WriteFile(token, []byte("root-0123456789abcdef\n"), 0o600))
	server := start(t, store, "--token-file="+token)
	in, err := inbox.Open(t.Context(), "127.0.0.1:0", "", io.Discard)
	require.NoError(t, err)
	go func() { _ = in.Serve() }()
	t.Cleanup(in.Close)

	var mu sync.Mutex
	all := make(map[string]string)
	actual := strings.NewReplacer("127.0.0.1:8080", strings.TrimPrefix(server.url, "http://"),
		"127.0.0.1:8081", in.Addr())
	files, err := filepath.Glob(filepath.Join("testdata/cli", scripts))
	require.NoError(t, err)
	t.Run("scripts", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Files: files,
			Setup: func(env *testscript.Env) error {
				s := &script{
					actual: actual, shown: strings.NewReplacer(in.Addr(), "127.0.0.1:8081",
						strings.TrimPrefix(server.url, "http://"), "127.0.0.1:8080", env.WorkDir, "/home/anna"),
					learned: make(map[string]string),
				}
				env.Values[scriptKey{}] = s
				env.Defer(func() {
					mu.Lock()
					defer mu.Unlock()
					maps.Copy(all, s.blocks())
				})
				return prepare(env, server.url, token)
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){
				"section": func(ts *testscript.TestScript, _ bool, args []string) { scriptOf(ts).section(args[0]) },
				"show":    show,
				"run":     func(ts *testscript.TestScript, neg bool, args []string) { scriptOf(ts).run(ts, neg, args) },
				"live":    live,
			},
		})
	})
	return all
}

// prepare gives a script a home with a context for the server.
func prepare(env *testscript.Env, url, token string) error {
	env.Vars = append(env.Vars, "HOME="+env.WorkDir, "RINGBACK_OUTPUT=table",
		"PATH="+filepath.Dir(binary)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	config := filepath.Join(env.WorkDir, ".config", "ringback")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return err
	}
	own, err := os.ReadFile(token)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(env.WorkDir, "root.token"), own, 0o600); err != nil {
		return err
	}
	text := fmt.Sprintf("current = \"test\"\n[contexts.test]\nserver = %q\ntoken_file = %q\n", url,
		filepath.Join(env.WorkDir, "root.token"))
	return os.WriteFile(filepath.Join(config, "contexts.toml"), []byte(text), 0o600)
}

// script is a script that runs: the texts of its sections, and what is replaced in them because it differs from run to
// run.
type script struct {
	actual, shown *strings.Replacer
	names         []string
	texts         []string
	learned       map[string]string // an id of this run: the id that is shown
}

type scriptKey struct{}

func scriptOf(ts *testscript.TestScript) *script { return ts.Value(scriptKey{}).(*script) }

func (s *script) section(name string) {
	s.names, s.texts = append(s.names, name), append(s.texts, "")
}

func (s *script) blocks() map[string]string {
	all := make(map[string]string)
	for i, name := range s.names {
		all[name] = s.texts[i]
	}
	return all
}

// show runs a command, and adds it and its output to the transcript. With ! it has to fail.
func show(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	s.add(args, s.run(ts, neg, args))
}

// run runs a command, and returns its output. With ! it has to fail.
func (s *script) run(ts *testscript.TestScript, neg bool, args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = s.actual.Replace(arg)
	}
	err := ts.Exec(words[0], words[1:]...)
	output := ts.ReadFile("stdout") + ts.ReadFile("stderr")
	code := 0
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		code = failed.ExitCode()
		output += fmt.Sprintf("exit code %d\n", code)
	}
	if (code != 0) != neg || err != nil && code == 0 {
		ts.Fatalf("%v: %v\n%s", args, err, output)
	}
	return output
}

// live runs the command after -- when the one before it, which follows events, has begun, and shows both.
func live(ts *testscript.TestScript, _ bool, args []string) {
	s := scriptOf(ts)
	i := slices.Index(args, "--")
	follow := exec.Command(binary)
	for _, arg := range args[1:i] {
		follow.Args = append(follow.Args, s.actual.Replace(arg))
	}
	follow.Env = cleanEnv("HOME="+ts.Getenv("HOME"), "RINGBACK_OUTPUT=table")
	follow.Dir = ts.MkAbs(".")
	var stdout strings.Builder
	follow.Stdout = &stdout
	stderr, err := follow.StderrPipe()
	ts.Check(err)
	ts.Check(follow.Start())
	first := make([]byte, len("watching"))
	_, err = io.ReadFull(stderr, first)
	ts.Check(err)
	s.run(ts, false, args[i+1:])
	_, _ = io.Copy(io.Discard, stderr)
	ts.Check(follow.Wait())
	s.add(args[:i], stdout.String())
}

// add adds a command and its output to the last section, without what differs from run to run.
func (s *script) add(args []string, output string) {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = cli.ShellWord(arg)
	}
	if len(s.texts) == 0 {
		return // what is not in a section is not shown
	}
	last := &s.texts[len(s.texts)-1]
	if *last != "" {
		*last += "\n"
	}
	*last += "$ " + strings.Join(words, " ") + "\n" + aligned(s.stable(s.shown.Replace(output)))
}

// volatile are texts that differ from run to run, and what is shown instead.
var volatile = []struct {
	pattern *regexp.Regexp
	shown   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z`), "2030-01-31 08:00:00.000Z"},
	{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{3}`), "08:00:00.000"},
	{regexp.MustCompile(`\b(\d+m)?\d+s ago|\b\d+m ago|\bnow\b`), "now"},
	{regexp.MustCompile(`( after |  )(\d+ms|<1ms)`), "${1}3ms"},
	{regexp.MustCompile(`(?m)(delivered +200 +)\d+(\.\d)?`), "${1}3.1"},
	{regexp.MustCompile(`\bin 2[5-9]m(\d+s)?`), "in 30m"},
	{regexp.MustCompile(`\bin 89d2[0-3]h`), "in 90d"},
	{regexp.MustCompile(`\brevision \d{9,}`), "revision 1893456000000"},
	{regexp.MustCompile(`whsec_[A-Za-z0-9+/=]{32,}`), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
	{regexp.MustCompile(`rb_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}`), "rb_4Jx2mP0a_…"},
}

// ids are random: those of jobs and work, of secrets, and of tokens, which are known from the token.
var ids = regexp.MustCompile(`\b0[0-9a-v]{20,25}\b|\b[0-9a-f]{16}\b|rb_[0-9A-Za-z]{8}_`)

// stable replaces what differs from run to run.
func (s *script) stable(text string) string {
	for _, id := range ids.FindAllString(text, -1) {
		if token, ok := strings.CutPrefix(id, "rb_"); ok {
			s.learned[strings.TrimSuffix(token, "_")] = "4Jx2mP0a"
		} else if s.learned[id] == "" {
			s.learned[id] = fmt.Sprintf("06gs1q6d5k0bq5n2f9j3v7r8%02d", len(s.learned)+1)[:len(id)-2] +
				fmt.Sprintf("%02d", len(s.learned)+1)
		}
	}
	for id, shown := range s.learned {
		text = strings.ReplaceAll(text, id, shown)
	}
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.shown)
	}
	return text
}

// aligned aligns the columns of tables again, whose cells have other lengths now.
func aligned(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); {
		var block [][]string
		for i+len(block) < len(lines) && strings.Contains(strings.TrimSpace(lines[i+len(block)]), "  ") &&
			!strings.HasPrefix(lines[i+len(block)], "  ") {
			block = append(block, regexp.MustCompile(` {2,}`).Split(strings.TrimSuffix(lines[i+len(block)], "\n"), -1))
		}
		for n, row := range block {
			var line strings.Builder
			for c, cell := range row {
				width := 0
				for _, other := range block {
					if c < len(other) {
						width = max(width, len([]rune(other[c])))
					}
				}
				line.WriteString(cell)
				if c < len(row)-1 {
					line.WriteString(strings.Repeat(" ", width-len([]rune(cell))+2))
				}
			}
			lines[i+n] = line.String() + "\n"
		}
		i += max(len(block), 1)
	}
	return strings.Join(lines, "")
}
