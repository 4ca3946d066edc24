package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/inbox"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite"
)

// example is a command in a code block of the docs, or a request's body that is shown alone.
type example struct {
	page, text string
	line       int
	body       string // the row of bodies that it is from
	skipped    bool   // by a row of elsewhere: parsed, but not run
}

// elsewhere are the commands that are not run here: their words and flags are parsed.
var elsewhere = []struct{ page, beginning, reason string }{
	{
		"README.md", "ringback dev",
		"serves until it is stopped; TestDev_DeliversASampleAndStopsCleanly runs it",
	},
	{"README.md", "RINGBACK_TOKEN=… ringback serve", "serves, on a Redis host"},
	{"docs/cli.md", "ringback dev", "serves until it is stopped"},
	{"docs/cli.md", "source <(ringback completion zsh)", "is for another shell"},
	{"docs/deploy.md", "docker build", "needs Docker"},
	{"docs/deploy.md", "docker run", "needs Docker"},
	{"docs/deploy.md", "docker compose", "needs Docker"},
	{"docs/doctor.md", "ringback doctor", "tells of this machine, so that its exit code is not known"},
	{"docs/flags.md", "ringback serve --store redis", "serves, on a Redis host"},
	{"docs/flags.md", "touch inbox.keys && ringback dev", "serves until it is stopped"},
	{"docs/flags.md", "ringback serve --check --config", "shows the faults of another file"},
	{"docs/forward.md", "ringback forward", "forwards until it is stopped; forward's tests run it"},
	{"docs/network.md", "ringback serve", "serves until it is stopped"},
	{"docs/network.md", "RINGBACK_PROXY", "serves until it is stopped"},
	{"docs/redis.md", "ringback serve", "serves, on a Redis host"},
	{"docs/releasing.md", "docker buildx", "needs Docker and a registry"},
	{"docs/running.md", "ringback serve", "serves, on a Redis host"},
	{"docs/sqlite.md", "ringback serve", "serves until it is stopped"},
	{"docs/stores.md", "ringback serve", "serves, on Redis hosts"},
	{"docs/traces.md", "OTEL_EXPORTER_OTLP_ENDPOINT", "serves until it is stopped"},
	{"docs/verify.md", "ringback verify -o json | jq", "needs jq"},
}

// before are what the examples of a page, or one that begins so, take for granted: run before them.
var before = map[string]string{
	"docs/breakers.md":     anyTopic,
	"docs/callbacks.md":    anyTopic,
	"docs/cli.md":          `mkdir -p ~/.config/fish/completions`,
	"docs/dead-letters.md": anyTopic,
	"docs/flags.md":        `echo root-0123456789abcdef > token`,
	"docs/pull.md":         anyTopic,
	"docs/rates.md":        anyTopic,
	"docs/reasons.md":      anyJob,
	"docs/topic-fields.md": anyJob,
	"docs/topic-fields.md: curl -X PATCH http://127.0.0.1:8080/v1/topics/order.close -H 'If-Match": anyTopic,
	"docs/schedules.md: curl " +
		"http://127.0.0.1:8080/v1/schedules/daily-report/backfill": `curl -X PUT ` +
		`http://127.0.0.1:8080/v1/schedules/daily-report --json '{
		"cron": "0 8 * * MON-FRI", "timezone": "Europe/Berlin", "job": {"topic": "report", "url": ` +
		`"http://127.0.0.1:8081/"}}'`,
	"docs/pull.md: curl http://127.0.0.1:8080/v1/leases": `for n in 1 2 3 4 5; do curl http://127.0.0.1:8080/v1/jobs ` +
		`--json '{"topic": "reports"}'; done
		curl http://127.0.0.1:8080/v1/topics/reports/lease --json '{"max": 5, "lease": "60s"}'`,
	"docs/using.md: curl -X DELETE " +
		"'http://127.0.0.1:8080/v1/topics/order.old": `curl -X PUT http://127.0.0.1:8080/v1/topics/order.old --json ` +
		`'{}'`,
	"docs/using.md":   `printf '{"url": "http://127.0.0.1:8081/"}\n' > jobs.ndjson`,
	"docs/waiting.md": anyJob,
}

const (
	anyTopic = `curl -X PUT http://127.0.0.1:8080/v1/topics/order.close --json '{}'`
	anyJob   = `curl http://127.0.0.1:8080/v1/jobs --json '{"id": "close-4711", "topic": "order.close", "url": ` +
		`"http://127.0.0.1:8081/", "delay": "1h"}'`
)

// inPlaceOf are the texts of examples that stand for others.
var inPlaceOf = map[string][]string{
	"docs/flags.md": {"/etc/ringback/token", "token"},
	"docs/pull.md":  {`"wait": "30s"`, `"wait": "10ms"`},
	"docs/export.md": {
		"redis+cluster://redis-1:6379,redis-2:6379", "sqlite:new.db", "redis://redis:6379",
		"sqlite:other.db",
	},
	"docs/signing.md": {"whsec_…", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
	"docs/sqlite.md":  {"/backup/", ""},
	"docs/using.md":   {` -H "Authorization: Bearer $RINGBACK_TOKEN"`, ""}, // its other examples have no token
	"docs/verify.md":  {"redis://redis:6379/0", "sqlite:ringback.db"},
	"docs/work.md":    {"Bearer …", "Bearer s3cret"},
}

// learned are texts of examples that stand for what an earlier example has answered: the newest match, of several texts
// the matches in their order.
var learned = map[string]struct {
	shown   []string
	pattern *regexp.Regexp
}{
	"docs/access.md": {[]string{"rb_5tR1nGs0_…"}, regexp.MustCompile(`"(rb_[0-9A-Za-z_]+)"`)},
	"docs/pull.md": {
		[]string{"AJiW…", "AK0x…", "AK17…", "AKc3…", "AKw0…"},
		regexp.MustCompile(`"lease": ?"([^"]+)"`),
	},
	"docs/signing.md":      {[]string{"0f1e2d3c4b5a6978"}, regexp.MustCompile(`"id": ?"([0-9a-f]{16})"`)},
	"docs/topic-fields.md": {[]string{"1893571200123"}, regexp.MustCompile(`"order\.close","revision":([0-9]+)`)},
	"docs/work.md":         {[]string{"ID"}, regexp.MustCompile(`"id": ?"([0-9a-v]+)"`)},
}

// pageFiles are blocks that are files: their first line, and the name under which the page's examples read them.
var pageFiles = map[string]string{"managed_by: shop": "shop.yaml", "# ringback.yaml": "ringback.yaml"}

// bodies are lines that are requests without their command: the beginning of such a line, and the command around it.
var bodies = map[string]string{
	`docs/work.md: {"action": `:   `curl http://127.0.0.1:8080/v1/work --json '%s}'`,
	`docs/pull.md: {"answered": `: `curl http://127.0.0.1:8080/v1/leases --json '%s}'`,
	`docs/cron.md: {"cron": `: `curl -X PUT http://127.0.0.1:8080/v1/schedules/example --json '%s, "job": ` +
		`{"topic": "a", "url": "http://127.0.0.1:8081/"}}'`,
	`docs/cron.md: {"every": `: `curl -X PUT http://127.0.0.1:8080/v1/schedules/example --json '%s, "job": {"topic": ` +
		`"a", "url": "http://127.0.0.1:8081/"}}'`,
}

func TestDocs_EveryExampleRuns(t *testing.T) {
	t.Parallel()
	in, err := inbox.Open(t.Context(), "127.0.0.1:0", "", io.Discard)
	require.NoError(t, err)
	go func() { _ = in.Serve() }()
	t.Cleanup(in.Close)
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)

	found, used, shown := 0, make(map[int]bool), make(map[string]bool)
	for _, path := range append(pages, "../README.md") {
		page := strings.TrimPrefix(path, "../")
		examples, files := examplesOf(t, page)
		for name := range files {
			shown[name] = true
		}
		for i := range examples {
			shown[examples[i].body] = true
			for n, row := range elsewhere {
				if row.page == page && strings.HasPrefix(examples[i].text, row.beginning) {
					examples[i].skipped, used[n] = true, true
				}
			}
		}
		found += len(examples)
		if len(examples) > 0 {
			t.Run(page, func(t *testing.T) {
				t.Parallel()
				runPage(t, page, in.Addr(), examples, files)
			})
		}
	}
	for n, row := range elsewhere {
		require.True(t, used[n], "no example of %s begins with %s", row.page, row.beginning)
	}
	for beginning := range bodies {
		require.True(t, shown[beginning], "no line is %s", beginning)
	}
	for first, name := range pageFiles {
		require.True(t, shown[name], "no block begins with %s", first)
	}
	require.Greater(t, found, 120, "examples are not recognised")
}

// exampleStart matches the first line of a command.
var exampleStart = regexp.MustCompile(`^(?:\$ )?((?:[A-Z_]+=\S+ )*(?:curl|ringback|go run ` +
	`\./cmd/ringback|docker|touch|\(umask|export RINGBACK_\w+=\S+|source)(?: .*)?)$`)

// examplesOf returns the commands in a page's code blocks, and its files by name. Transcripts are those of other tests.
func examplesOf(t *testing.T, page string) (examples []example, files map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../" + page)
	require.NoError(t, err)
	blank := func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }
	lines := strings.Split(transcriptMark.ReplaceAllStringFunc(string(text), blank), "\n")
	files = make(map[string]string)
	fenced, file := false, ""
	for i := 0; i < len(lines); i++ {
		line, block := lines[i], fenced
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced, file = !fenced, ""
			continue
		}
		if own, indented := strings.CutPrefix(line, "    "); indented && !fenced {
			line, block = own, true
		}
		if !block {
			file = ""
			continue
		}
		file = cmp.Or(pageFiles[line], file)
		if file != "" {
			files[file] += line + "\n"
			continue
		}
		line = strings.TrimSpace(line)
		for beginning, command := range bodies {
			if strings.HasPrefix(page+": "+line, beginning) {
				examples = append(examples, example{page: page, line: i + 1, body: beginning, text: fmt.Sprintf(command,
					strings.TrimSuffix(line, "}"))})
			}
		}
		if m := exampleStart.FindStringSubmatch(line); m != nil {
			e := example{page: page, line: i + 1, text: m[1]}
			for i+1 < len(lines) && continues(e.text) {
				i++
				e.text += "\n" + lines[i]
			}
			examples = append(examples, e)
		}
	}
	return examples, files
}

// continues reports whether a command goes on in the next line: a quote is open, or it ends with a backslash.
func continues(text string) bool {
	quote := rune(0)
	previous := ' '
	for _, c := range text {
		switch {
		case quote == c:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && c == '#' && previous == ' ':
			return false
		}
		previous = c
	}
	return quote != 0 || previous == '\\'
}

// runPage runs the examples of a page in their order, in a separate folder and against a separate server.
func runPage(t *testing.T, page, inboxAddr string, examples []example, files map[string]string) {
	home := t.TempDir()
	for name, text := range files {
		text = strings.NewReplacer(inPlaceOf[page]...).Replace(text)
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
	}
	const token = "root-0123456789abcdef"
	s := &docShell{dir: home, words: append([]string{"127.0.0.1:8081", inboxAddr, "go run ./cmd/ringback", "ringback"},
		inPlaceOf[page]...)}
	s.env = cleanEnv("HOME="+home, "RINGBACK_OUTPUT=table",
		"PATH="+filepath.Dir(binary)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	curl, signedIn := false, true
	for _, e := range examples {
		curl = curl || strings.HasPrefix(e.text, "curl")
		signedIn = signedIn && (!strings.HasPrefix(e.text, "curl") || strings.Contains(e.text, "Authorization: Bearer"))
	}
	store := "sqlite:" + filepath.Join(home, "ringback.db")
	if curl ||
		slices.ContainsFunc(examples, func(e example) bool { return !e.skipped && usesServer.MatchString(e.text) }) {
		var flags []string
		if curl && signedIn {
			file := filepath.Join(t.TempDir(), "token")
			require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
			flags = append(flags, "--token-file="+file)
			s.env = append(s.env, "RINGBACK_TOKEN="+token)
		}
		if page == "docs/stores.md" {
			flags = append(flags, "--store=eu=sqlite:"+filepath.Join(home, "eu.db"))
			store = "main=" + store
		}
		server := start(t, store, flags...)
		s.env = append(s.env, "RINGBACK_SERVER="+server.url)
		s.words = append(s.words, "127.0.0.1:8080", strings.TrimPrefix(server.url, "http://"))
	} else {
		createStore(t, filepath.Join(home, "ringback.db"))
	}
	s.prepare(t, page, page)
	for _, e := range examples {
		s.prepare(t, page, page+": "+e.text)
		if e.skipped {
			s.parse(t, e)
		} else {
			s.run(t, e)
		}
	}
}

// usesServer matches the commands that ask a server.
var usesServer = regexp.MustCompile(`\bringback (api|apply|dead|diff|dump|forward|get|jobs|send|topic)\b`)

// docShell runs examples.
type docShell struct {
	dir    string
	env    []string
	words  []string // of examples, each with its replacement
	output strings.Builder
}

// curl with the status of each answer on stderr.
const docPreamble = `set -o pipefail
curl() { command curl -sS --max-time 60 -w '%{stderr}\nHTTP %{http_code}\n' "$@"; }
`

var (
	shownStatus = regexp.MustCompile(`# (\d{3})\b`)
	shownExit   = regexp.MustCompile(`# .*\bexits with (\d)`)
	madeStatus  = regexp.MustCompile(`(?m)^HTTP (\d{3})$`)
)

// run runs an example, which has to succeed, or to end as its comment says.
func (s *docShell) run(t *testing.T, e example) {
	t.Helper()
	text := strings.NewReplacer(append(s.learnedWords(e.page), s.words...)...).Replace(e.text)
	var stdout, stderr bytes.Buffer
	var err error
	cmd := s.bash(t, docPreamble+text)
	cmd.Stderr = &stderr
	if strings.HasPrefix(text, "curl -N ") {
		cmd = s.bash(t, "exec curl -fsS "+strings.TrimPrefix(text, "curl "))
		cmd.Stderr = &stderr
		stdout, err = firstLine(cmd)
	} else {
		cmd.Stdout = &stdout
		err = cmd.Run()
	}
	s.output.Write(stdout.Bytes())
	failed, code := (*exec.ExitError)(nil), 0
	if errors.As(err, &failed) {
		code, err = failed.ExitCode(), nil
	}
	output := fmt.Sprintf("%s:%d: %s\n%s%s", e.page, e.line, text, &stdout, &stderr)
	if err != nil {
		t.Errorf("%v: %s", err, output)
		return
	}
	wanted := 0
	if m := shownExit.FindStringSubmatch(e.text); m != nil {
		wanted, _ = strconv.Atoi(m[1])
	}
	assert.Equal(t, wanted, code, output)
	for _, m := range madeStatus.FindAllStringSubmatch(stderr.String(), -1) {
		if shown := shownStatus.FindStringSubmatch(e.text); shown != nil {
			assert.Equal(t, shown[1], m[1], output)
		} else {
			assert.Less(t, m[1], "400", output)
			assert.NotEqual(t, "000", m[1], output)
		}
	}
}

// prepare runs what a page, or an example of it, takes for granted.
func (s *docShell) prepare(t *testing.T, page, start string) {
	t.Helper()
	for key, script := range before {
		if start == key || key != page && strings.HasPrefix(start, key) {
			s.run(t, example{page: page, text: script})
		}
	}
}

// learnedWords returns the texts that stand for what has been answered, each with that.
func (s *docShell) learnedWords(page string) (words []string) {
	l := learned[page]
	if l.pattern == nil {
		return nil
	}
	matches := l.pattern.FindAllStringSubmatch(s.output.String(), -1)
	for i, shown := range l.shown {
		if first := len(matches) - len(l.shown); first >= 0 {
			words = append(words, shown, matches[first+i][1])
		}
	}
	return words
}

func (s *docShell) bash(t *testing.T, script string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// firstLine runs a command that follows something until it has written a line.
func firstLine(cmd *exec.Cmd) (line bytes.Buffer, err error) {
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return line, err
	}
	if err := cmd.Start(); err != nil {
		return line, err
	}
	text, err := bufio.NewReader(stdout).ReadString('\n')
	line.WriteString(text)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	return line, err
}

// parse lets the commands of an example that are ringback's parse their words and flags.
func (s *docShell) parse(t *testing.T, e example) {
	t.Helper()
	for part := range strings.FieldsFuncSeq(e.text,
		func(c rune) bool { return c == '|' || c == '&' || c == '(' || c == ')' }) {
		m := ringbackWords.FindStringSubmatch(part)
		if m == nil {
			continue
		}
		output, err := s.bash(t, "ringback "+m[1]+" --help").CombinedOutput()
		assert.NoError(t, err, "%s:%d: %s\n%s", e.page, e.line, e.text, output)
	}
}

// ringbackWords matches a command of ringback, without a comment or an ellipsis at its end.
var ringbackWords = regexp.MustCompile(`^\s*(?:[A-Z_]+=\S+ )*(?:ringback|go run \./cmd/ringback) (.*?)\s*(?:…|\s#.*)?$`)

// createStore creates an empty store.
func createStore(t *testing.T, path string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Limits: policy.Builtin().Limits()})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
