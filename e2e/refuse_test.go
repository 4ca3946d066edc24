package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

func TestStart_FailsWithOneLine(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("no database, but long enough to be looked at as one"), 0o600))
	sqlite := "--store=" + newSQLite(t)

	tests := []struct {
		name string
		line string
		env  []string
		args []string
	}{
		{
			"a folder that does not exist", "no/such/folder", nil,
			[]string{"--store=sqlite:" + t.TempDir() + "/no/such/folder/x.db"},
		},
		{"a folder that is a file", "file", nil, []string{"--store=sqlite:" + file + "/x.db"}},
		{"a file that is no database", "database", nil, []string{"--store=sqlite:" + file}},
		{"a Redis that is not there", "redis", nil, []string{"--store=redis://127.0.0.1:1"}},
		{"a port in use", taken.Addr().String(), nil, []string{sqlite, "--addr=" + taken.Addr().String()}},
		{"a token file that is not there", "no-such-token", nil, []string{sqlite, "--token-file=/no-such-token"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"serve", "--addr=127.0.0.1:0"}, test.args...)
			refuses(t, 1, test.line, test.env, args...)
		})
	}
}

func TestStart_InvalidSettingsExitWithTwo(t *testing.T) {
	t.Parallel()
	sqlite := "--store=" + newSQLite(t)
	tests := []struct {
		name string
		line string
		env  []string
		args []string
	}{
		{"an unknown store", "must be sqlite:FILE", nil, []string{"--store=mysql://localhost"}},
		{"a store without a file", "sqlite", nil, []string{"--store=sqlite:"}},
		{"shards of a SQLite store", "shards", nil, []string{sqlite, "--shards=4"}},
		{"an address that is none", "host:port", nil, []string{sqlite, "--addr=8080"}},
		{"no token beyond loopback", "--no-auth", nil, []string{sqlite, "--addr=0.0.0.0:0"}},
		{"a token and no-auth", "no-auth", []string{"RINGBACK_TOKEN=s3cret-0123456789"}, []string{sqlite, "--no-auth"}},
		{"a grace of nothing", "grace", nil, []string{sqlite, "--grace=1ms"}},
		{"no grace", "grace: 0s is not between 1s and 1h", nil, []string{sqlite, "--grace=0s"}},
		{"no room for bodies", "max-body: 0 B is not between 1 B and", nil, []string{sqlite, "--max-body=0"}},
		{"a body limit beyond bounds", "max-body", nil, []string{sqlite, "--max-body=17MiB"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"serve", "--addr=127.0.0.1:0"}, test.args...)
			refuses(t, 2, test.line, test.env, args...)
		})
	}
}

func TestStart_InvalidCommandLinesExitWithTwo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		line string
		env  []string
		args []string
	}{
		{"an unknown command", "flood", nil, []string{"flood"}},
		{"an unknown flag", "--strore", nil, []string{"serve", "--strore=x"}},
		{"a duration that is none", "--grace", nil, []string{"serve", "--grace=soon"}},
		{"a size that is none", "--max-body", nil, []string{"serve", "--max-body=big"}},
		{"a network that is none", "allow-targets", nil, []string{"serve", "--allow-targets=10.0.0.0/99"}},
		{
			"a variable of another form", "$RINGBACK_ADDR: addr: ",
			[]string{"RINGBACK_ADDR=tcp://10.0.0.9:80"},
			[]string{"serve"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { refuses(t, 2, test.line, test.env, test.args...) })
	}
}

func TestStart_RejectsASecondProcessOnAFile(t *testing.T) {
	t.Parallel()
	store := newSQLite(t)
	start(t, store)
	refuses(t, 1, "another process", nil, "serve", "--addr=127.0.0.1:0", "--store="+store)
}

func TestStart_RejectsANewerDatabase(t *testing.T) {
	t.Parallel()
	store := newSQLite(t)
	code, _ := start(t, store).terminate()
	require.Zero(t, code)
	// The user version is a number of four bytes at offset 60 of the file (https://sqlite.org/fileformat2.html).
	file, err := os.OpenFile(strings.TrimPrefix(store, "sqlite:"), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte{0, 0, 0x27, 0x10}, 60)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	refuses(t, 1, "newer", nil, "serve", "--addr=127.0.0.1:0", "--store="+store)
}

func TestStart_RejectsAnotherShardCount(t *testing.T) {
	t.Parallel()
	store := newRedis(t)
	code, _ := start(t, store, "--shards=2").terminate()
	require.Zero(t, code)
	refuses(t, 1, "shard", nil, "serve", "--addr=127.0.0.1:0", "--store="+store, "--shards=3")
}

func TestStart_RejectsARedisThatEvicts(t *testing.T) {
	t.Parallel()
	store := redistest.Start(t, "--maxmemory-policy", "allkeys-lru").URL()
	refuses(t, 1, "maxmemory-policy", nil, "serve", "--addr=127.0.0.1:0", "--store="+store)
}

// refuses runs a command that must fail at its start with a one-line error.
func refuses(t *testing.T, code int, line string, env []string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = cleanEnv(env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Stdout = &stderr
	require.NoError(t, cmd.Start())
	late := time.AfterFunc(testkit.MustCome, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait() // the exit code is checked
	require.Equal(t, code, cmd.ProcessState.ExitCode(), stderr.String())
	var output []string
	for l := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(l, "time=") { // a line of the log
			output = append(output, strings.TrimSpace(l))
		}
	}
	require.NotEmpty(t, output)
	require.True(t, strings.HasPrefix(output[0], "ringback: "), stderr.String())
	require.Contains(t, output[0], line)
	if code == 1 {
		require.Len(t, output, 1, "one line and no more: %s", stderr.String())
	}
}
