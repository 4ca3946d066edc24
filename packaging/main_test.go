package packaging

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/internal/testkit"
)

// binary is the path of ringback, built once for all tests, and links are the dependencies that the linker found.
var (
	binary string
	links  []byte
)

// watch reads the metadata of the sources, so that the go command runs these tests again when
// any of them has changed.
var watch = sync.OnceValue(func() error {
	return filepath.WalkDir("..", func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == ".git" {
			return fs.SkipDir
		}
		return err
	})
})

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	flag.Parse()
	if testing.Short() { // every test needs the binary
		return 0
	}
	dir, err := os.MkdirTemp("", "ringback-packaging-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	binary = filepath.Join(dir, "ringback")
	build := testkit.GoCommand(ctx, "build", "-ldflags=-dumpdep", "-o", binary, "../cmd/ringback")
	if links, err = build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build ringback: %v\n%s", err, links[max(0, len(links)-4096):])
		return 1
	}
	return m.Run()
}

// command returns ringback with only the given environment.
func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	require.NoError(t, watch())
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append([]string{}, env...)
	cmd.Dir = t.TempDir()
	return cmd
}

// endTime bounds a command that exits without a signal, on a busy machine.
const endTime = 2 * time.Minute

// ringback runs a command that exits without a signal, and returns its exit code and output. It is killed after
// endTime; then the code is -1.
func ringback(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command(t, env, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Start())
	late := time.AfterFunc(endTime, func() { _ = cmd.Process.Kill() }) // an error means that it has ended
	defer late.Stop()
	_ = cmd.Wait() // the exit code is returned
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// Settings and flags in the help of serve.
var (
	settingPattern = regexp.MustCompile(`RINGBACK_[A-Z_]+`)
	flagPattern    = regexp.MustCompile(`--[a-z][a-z-]*`)
)

// requireSettings fails for each RINGBACK_… name unknown to serve.
func requireSettings(t *testing.T, names []string) {
	t.Helper()
	code, help, _ := ringback(t, nil, "serve", "--help")
	require.Zero(t, code)
	require.NotEmpty(t, names)
	known := settingPattern.FindAllString(help, -1)
	for _, name := range names {
		if strings.HasPrefix(name, "RINGBACK_") {
			require.Contains(t, known, name)
		}
	}
}

// requireFlags fails for each unknown flag among the arguments.
func requireFlags(t *testing.T, sub string, args []string) {
	t.Helper()
	code, help, stderr := ringback(t, nil, sub, "--help")
	require.Zero(t, code, stderr)
	known := flagPattern.FindAllString(help, -1)
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		require.Contains(t, known, name, "ringback %s has no such flag", sub)
	}
}

// missing skips the test for what was not found, except in CI.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what + " is needed and was not found")
	}
	t.Skip(what + " was not found")
}

// read returns a file's text.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// readYAML decodes the only document of a file.
func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text := read(t, path)
	require.NoError(t, yaml.Unmarshal([]byte(text), into), path)
	require.NotContains(t, text, "\n---", "%s holds one document", path)
}

// duration parses a duration.
func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}
