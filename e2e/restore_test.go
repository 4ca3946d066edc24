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
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	later := func(p *process, id string) {
		register(t, p, obj{"id": id, "topic": "later", "url": "http://127.0.0.1:9/", "delay": "1h"})
	}
	p := start(t, name)
	later(p, "before")
	said, err := command("backup", "--store="+name, "--to="+copied)
	require.NoError(t, err, said)
	require.Contains(t, said, "holds 1 jobs")
	later(p, "after")
	said, err = command("restore", "--store="+name, "--from="+copied)
	require.Error(t, err)
	require.Contains(t, said, "another process uses the database")
	p.kill()

	// What one must not do, and what happens then.
	content, err := os.ReadFile(copied)
	require.NoError(t, err)
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, content, 0o600))
	said, err = command("serve", "--store="+name, "--addr=127.0.0.1:0", "--no-auth")
	require.Error(t, err)
	require.Contains(t, said, "does not belong to the database")
	require.NoError(t, os.WriteFile(file, kept, 0o600))

	said, err = command("restore", "--store="+name, "--from="+copied)
	require.NoError(t, err, said)
	p = start(t, name)
	require.Equal(t, "scheduled", get(t, p, "before").State)
	call[obj](t, p, http.MethodGet, "/v1/jobs/after", nil, http.StatusNotFound)
	p.kill()

	_, aside, found := strings.Cut(strings.TrimSpace(said), "is now ")
	require.True(t, found, said)
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
