package main

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite"
)

func TestTransfer_ExitCodes(t *testing.T) {
	folder := t.TempDir()
	from, file := filepath.Join(folder, "a.db"), filepath.Join(folder, "jobs.jsonl")
	code, _, stderr := try(t, nil, "export", "--store=sqlite:"+from, "--to="+file)
	require.Equal(t, exitUsage, code, stderr)
	code, _, _ = try(t, nil, "export", "--store=sqlite:"+from)
	require.Equal(t, exitUsage, code)
	for _, args := range [][]string{{"--from=" + file}, {}, {"--accept"}, {"--accept", "--from=-"}} {
		code, _, stderr = try(t, nil, append([]string{"import", "--store=sqlite:" + from}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, stderr)
		require.NoFileExists(t, from)
	}
	code, _, stderr = try(t, []string{"RINGBACK_STORE=redis://127.0.0.1:1"}, "export", "--to="+file)
	require.Equal(t, exitFault, code, stderr)
	require.NoFileExists(t, file)
}

func TestProgressLine_ShowsShareAndRate(t *testing.T) {
	for want, got := range map[string]string{
		"exported 5 jobs":           progressLine("exported", 5, 0, 0),
		"imported 1000 jobs, 500/s": progressLine("imported", 1000, 0, 2*time.Second),
		"[###############---------------]  50% exported 500 of 1000, " +
			"250/s": progressLine("exported", 500, 1000, 2*time.Second),
		"[##############################] 100% checked 3 of 2": progressLine("checked", 3, 2, 0),
	} {
		require.Equal(t, want, got)
	}
}

func TestTransfer_MovesAStore(t *testing.T) {
	folder := t.TempDir()
	from, to, file := filepath.Join(folder, "a.db"), filepath.Join(folder, "b.db"), filepath.Join(folder, "jobs.jsonl")
	s, err := sqlite.Open(t.Context(),
		sqlite.Options{Path: from, Limits: policy.Builtin().Limits(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	insertOne(t, s)
	require.NoError(t, s.Close())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"export", "--store=sqlite:" + from, "--to=" +
			file}, "default    orders  pending  1\nexported 1 jobs\n"},
		{[]string{"import", "--store=sqlite:" + to, "--from=" +
			file}, "default    orders  pending  1     1\nimported 1 jobs; 0 were there\n"},
		{[]string{"import", "--store=sqlite:" + to, "--from=" + file}, "nothing to do: this file was imported at "},
		{[]string{"import", "--store=sqlite:" +
			to, "--accept"}, "0 imports were not complete: what they have stored is kept\n"},
		{[]string{"verify", "--store=sqlite:" + to}, "\n1 jobs, no fault\n"},
		{[]string{"backup", "--store=sqlite:" + to, "--to=" +
			filepath.Join(folder, "copy.db")}, "copy.db holds 1 jobs\n"},
	} {
		code, stdout, stderr := try(t, nil, c.args...)
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, c.want)
	}
}
