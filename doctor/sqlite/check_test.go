package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/doctor"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/file"
	"github.com/ringback/ringback/store/sqlite/table"
)

// requireFinding fails the test unless there is a finding of a check with a level and words.
func requireFinding(t *testing.T, found []doctor.Finding, check doctor.Name, level doctor.Level, seen string) {
	t.Helper()
	require.True(t, slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Check == check && f.Level == level && strings.Contains(f.Seen, seen) &&
			(f.Remedy == "") == (level == doctor.OK)
	}), "%s %s %q in %v", check, level, seen, found)
}

// open opens a database in a new folder.
func open(t *testing.T) (s *sqlite.Store, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "jobs.db")
	s, err := sqlite.Open(t.Context(), sqlite.Options{
		Path: path, Limits: sqlite.Defaults(policy.Builtin()).Limits(), Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, path
}

// closed returns the path of a database that no process uses.
func closed(t *testing.T) string {
	t.Helper()
	s, path := open(t)
	require.NoError(t, s.Close())
	return path
}

func run(t *testing.T, path string) []doctor.Finding {
	t.Helper()
	return doctor.Run(t.Context(), Check("store main", path)...)
}

// change runs a statement in a database that no process uses.
func change(t *testing.T, path, text string) {
	t.Helper()
	c, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	_, err = c.ExecContext(t.Context(), text)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestCheck_OfADatabaseInUse(t *testing.T) {
	s, path := open(t)
	before := contents(t, path)
	found := run(t, path)
	require.Len(t, found, 7)
	requireFinding(t, found, doctor.SQLiteFiles, doctor.OK, "is writable")
	if runtime.GOOS == "linux" {
		requireFinding(t, found, doctor.SQLiteOwner, doctor.OK,
			"process "+strconv.Itoa(os.Getpid())+" uses the database")
	}
	requireFinding(t, found, doctor.SQLiteSpace, doctor.OK, "are free")
	requireFinding(t, found, doctor.SQLiteLog, doctor.OK, "journal_mode is wal")
	requireFinding(t, found, doctor.SQLiteSchema, doctor.OK, "schema "+strconv.FormatInt(table.Schema.Version, 10))
	requireFinding(t, found, doctor.SQLiteIntegrity, doctor.OK, "whole")
	require.Equal(t, before, contents(t, path), "it changes nothing")
	require.NoError(t, s.Ping(t.Context()))
	_, err := sqlite.OpenAuditor(t.Context(), path, true, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "another process uses the database", "it releases no lock")
	require.NoError(t, s.Close())
	requireFinding(t, run(t, path), doctor.SQLiteOwner, doctor.OK, "no process")
}

// contents returns the files of a database.
func contents(t *testing.T, path string) (all []string) {
	t.Helper()
	for _, suffix := range []string{"", file.WAL} {
		text, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		all = append(all, string(text))
	}
	return all
}

func TestCheck_OfFilesThatCannotBeUsed(t *testing.T) {
	folder := t.TempDir()
	found := run(t, filepath.Join(folder, "none.db"))
	requireFinding(t, found, doctor.SQLiteFiles, doctor.OK, "does not exist yet")
	requireFinding(t, found, doctor.SQLiteIntegrity, doctor.Unknown, "there is no database yet")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, entries, "it makes nothing")

	requireFinding(t, run(t, filepath.Join(folder, "none", "jobs.db")), doctor.SQLiteFiles,
		doctor.Fault, "does not exist")
	found = run(t, folder)
	requireFinding(t, found, doctor.SQLiteFiles, doctor.Fault, "is a folder, not a database")

	linked := closed(t)
	require.NoError(t, os.Link(linked, linked+"-2"))
	requireFinding(t, run(t, linked), doctor.SQLiteFiles, doctor.Fault, "has 2 names")

	public := closed(t)
	require.NoError(t, os.Chmod(public, 0o644))
	requireFinding(t, run(t, public), doctor.SQLiteFiles, doctor.Warn, "jobs.db (mode 0644)")
	info, err := os.Stat(public)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm(), "it changes nothing")

	if os.Getuid() != 0 { // root writes everywhere
		locked := closed(t)
		require.NoError(t, os.Chmod(locked, 0o400))
		requireFinding(t, run(t, locked), doctor.SQLiteFiles, doctor.Fault, "is not writable")
	}
}

func TestCheck_OfWhatIsInTheFile(t *testing.T) {
	newer := closed(t)
	change(t, newer, "PRAGMA user_version=99")
	found := run(t, newer)
	requireFinding(t, found, doctor.SQLiteSchema, doctor.Fault, "schema 99, made by a newer version")
	requireFinding(t, found, doctor.SQLiteIntegrity, doctor.Unknown, "made by a newer version")

	mode := closed(t)
	change(t, mode, "PRAGMA journal_mode=DELETE")
	requireFinding(t, run(t, mode), doctor.SQLiteLog, doctor.Warn, "journal_mode is delete")

	text := filepath.Join(t.TempDir(), "text.db")
	require.NoError(t, os.WriteFile(text, bytes.Repeat([]byte("no database "), 1000), 0o600))
	requireFinding(t, run(t, text), doctor.SQLiteIntegrity, doctor.Fault, "damaged, or not a database")

	damaged := closed(t)
	content, err := os.ReadFile(damaged)
	require.NoError(t, err)
	for at := 2 * 4096; at < len(content); at += 4096 { // not the schema
		copy(content[at:at+64], bytes.Repeat([]byte{0xee}, 64))
	}
	require.NoError(t, os.WriteFile(damaged, content, 0o600))
	requireFinding(t, run(t, damaged), doctor.SQLiteIntegrity, doctor.Fault, "damaged")
}

func TestCheck_OfALogThatBelongsToAnotherFile(t *testing.T) {
	_, used := open(t)
	before := closed(t)
	log, err := os.ReadFile(used + file.WAL)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(before+file.WAL, log, 0o600))
	found := run(t, before)
	requireFinding(t, found, doctor.SQLiteLog, doctor.Fault, "does not belong to the database")
	requireFinding(t, found, doctor.SQLiteSchema, doctor.Unknown, "could not be checked")
}

func TestCheckIntegrity_SaysThatItDidNotEnd(t *testing.T) {
	path := closed(t)
	f, err := db.OpenFile(t.Context(), table.Schema, path, false, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	requireFinding(t, []doctor.Finding{checkIntegrity(ctx, f)}, doctor.SQLiteIntegrity, doctor.Unknown,
		"too large to check in 3s")
}

func TestJudge_FileSystemsSpaceAndLogs(t *testing.T) {
	for kind, level := range map[string]doctor.Level{
		"ext4": doctor.OK, "xfs": doctor.OK, "type 0x1": doctor.OK,
		"nfs": doctor.Warn, "cifs": doctor.Warn, "overlay": doctor.Warn, "tmpfs": doctor.Warn,
	} {
		require.Equal(t, level, judgeKind(kind).Level, kind)
		require.Contains(t, judgeKind(kind).Seen, kind)
	}
	require.Equal(t, doctor.OK, judgeSpace(1<<30, 1<<30).Level)
	require.Equal(t, doctor.Warn, judgeSpace(1<<30, 5<<30).Level, "a quarter of the database")
	require.Equal(t, doctor.Warn, judgeSpace(200<<20, 0).Level)
	require.Equal(t, doctor.Fault, judgeSpace(1<<20, 0).Level)
	require.Equal(t, doctor.OK, judgeLog("wal", 128<<20).Level)
	require.Equal(t, doctor.Warn, judgeLog("wal", 517<<20).Level)
	require.Equal(t, "another process uses the database", judgeOwner(true, 0).Seen)
}
