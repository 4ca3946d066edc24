package app_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/app"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite"
)

// newStore makes a SQLite store with a job, and returns its path.
func newStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "from.db")
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, Limits: policy.Builtin().Limits()})
	require.NoError(t, err)
	_, err = s.Insert(t.Context(), store.NewToken(), []store.NewJob{{New: job.New{Spec: job.Spec{
		ID: "a", Queue: job.Queue{Namespace: "default", Topic: "orders", Lane: "x"},
		URL: "https://x.example/", Method: "POST",
	}}}})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return path
}

func transferOptions(path, file string) app.TransferOptions {
	return app.TransferOptions{Options: app.Options{Store: "sqlite:" + path}, File: file}
}

func TestExport_WritesAPrivateFileOnce(t *testing.T) {
	from, file := newStore(t), filepath.Join(t.TempDir(), "jobs.jsonl")
	ledger, err := app.Export(t.Context(), transferOptions(from, file))
	require.NoError(t, err)
	require.EqualValues(t, 1, ledger.Jobs())
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	_, err = app.Export(t.Context(), transferOptions(from, file))
	require.ErrorContains(t, err, "exists")
	require.ErrorAs(t, err, new(*app.SettingError))
}

func TestImport_ReadsAFileOrStdin(t *testing.T) {
	from, folder := newStore(t), t.TempDir()
	var out bytes.Buffer
	o := transferOptions(from, "-")
	o.Stdout = &out
	_, err := app.Export(t.Context(), o)
	require.NoError(t, err)

	file := filepath.Join(folder, "jobs.jsonl")
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o644))
	var log testkit.Log
	to := transferOptions(filepath.Join(folder, "to.db"), file)
	to.Logger = slog.New(slog.NewTextHandler(&log, nil))
	var did []string
	to.Progress = func(what string, jobs, total int64) { did = append(did, what) }
	result, err := app.Import(t.Context(), to)
	require.NoError(t, err)
	require.EqualValues(t, 1, result.Created)
	require.Contains(t, log.String(), "readable by other users")
	require.Equal(t, []string{"checked", "imported"}, did)

	piped := transferOptions(filepath.Join(folder, "piped.db"), "-")
	piped.Stdin = bytes.NewReader(out.Bytes())
	result, err = app.Import(t.Context(), piped)
	require.NoError(t, err)
	require.EqualValues(t, 1, result.Created)

	require.NoError(t, os.WriteFile(file, out.Bytes()[:out.Len()-2], 0o600))
	cut := transferOptions(filepath.Join(folder, "cut.db"), file)
	result, err = app.Import(t.Context(), cut)
	require.ErrorContains(t, err, "nothing was imported")
	require.ErrorContains(t, err, "cut off")
	require.Zero(t, result.Created)
}

func TestExport_RefusesWhatItCannotRead(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing.db")
	_, err := app.Export(t.Context(), transferOptions(missing, filepath.Join(folder, "x")))
	require.ErrorAs(t, err, new(*app.SettingError))
	require.NoFileExists(t, missing)
	_, err = app.Import(t.Context(), transferOptions(missing, filepath.Join(folder, "x")))
	require.ErrorAs(t, err, new(*app.SettingError))
	require.NoFileExists(t, missing)
	_, err = app.Export(t.Context(), app.TransferOptions{Options: app.Options{Store: "nothing"}, File: "-"})
	require.ErrorAs(t, err, new(*app.SettingError))

	used := newStore(t)
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: used, Limits: policy.Builtin().Limits()})
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	_, err = app.Export(t.Context(), transferOptions(used, filepath.Join(folder, "x")))
	require.ErrorContains(t, err, "another process uses the database")
	require.NoFileExists(t, filepath.Join(folder, "x"))
}

func TestImport_MustBeCompleteBeforeTheServiceStarts(t *testing.T) {
	from, folder := newStore(t), t.TempDir()
	var out bytes.Buffer
	o := transferOptions(from, "-")
	o.Stdout = &out
	_, err := app.Export(t.Context(), o)
	require.NoError(t, err)
	to := transferOptions(filepath.Join(folder, "to.db"), "-")
	to.Stdin = bytes.NewReader(out.Bytes()[:out.Len()-2])
	_, err = app.Import(t.Context(), to)
	require.ErrorContains(t, err, "cut off")

	service := app.Options{Store: to.Store, Addr: "127.0.0.1:0", NoAuth: true}
	_, err = app.New(t.Context(), service)
	require.ErrorContains(t, err, "is not complete: repeat ringback import with the same file; or keep what it has "+
		"stored with ringback import --accept")
	again := to
	again.File = filepath.Join(folder, "x")
	_, err = app.Export(t.Context(), again)
	require.ErrorContains(t, err, "is not complete")
	require.NoFileExists(t, again.File)

	n, err := app.AcceptImports(t.Context(), to)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, err := app.New(t.Context(), service)
	require.NoError(t, err)
	require.NoError(t, a.Run(ctx))
}
