package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRestore_AfterAKill(t *testing.T) {
	t.Parallel()
	name := newSQLite(t)
	file := strings.TrimPrefix(name, "sqlite:")
	copied := filepath.Join(t.TempDir(), "copy.db")
	command := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = cleanEnv()
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	later := func(p *process, id string) {
		register(t, p, obj{"id": id, "topic": "later", "url": "http://127.0.0.1:9/", "delay": "1h"})
	}
	p := start(t, name)
	later(p, "before")
	output, err := command("backup", "--store="+name, "--to="+copied)
	require.NoError(t, err, output)
	require.Contains(t, output, "holds 1 jobs")
	later(p, "after")
	output, err = command("restore", "--store="+name, "--from="+copied)
	require.Error(t, err)
	require.Contains(t, output, "another process uses the database")
	p.kill()

	// What one must not do, and what happens then.
	content, err := os.ReadFile(copied)
	require.NoError(t, err)
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, content, 0o600))
	output, err = command("serve", "--store="+name, "--addr=127.0.0.1:0", "--no-auth")
	require.Error(t, err)
	require.Contains(t, output, "does not belong to the database")
	require.NoError(t, os.WriteFile(file, kept, 0o600))

	output, err = command("restore", "--store="+name, "--from="+copied)
	require.NoError(t, err, output)
	p = start(t, name)
	require.Equal(t, "scheduled", get(t, p, "before").State)
	call[obj](t, p, http.MethodGet, "/v1/jobs/after", nil, http.StatusNotFound)
	p.kill()

	_, aside, found := strings.Cut(strings.TrimSpace(output), "is now ")
	require.True(t, found, output)
	p = start(t, "sqlite:"+aside)
	require.Equal(t, "scheduled", get(t, p, "after").State, "nothing of what was there is lost")
}

func TestRestore_IsOfSQLiteAlone(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"backup", "--store=redis://127.0.0.1:1", "--to=copy.db"},
		{"restore", "--store=redis://127.0.0.1:1", "--from=copy.db"},
		{"backup"},
		{"restore"},
	} {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env, cmd.Dir = cleanEnv(), t.TempDir()
		require.Error(t, cmd.Run())
		require.Equal(t, 2, cmd.ProcessState.ExitCode())
	}
}
