package doctor

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// requireSQLiteFinding fails the test unless there is a finding of a check with a level and words.
func requireSQLiteFinding(t *testing.T, found []Finding, check Name, level Level, seen string) {
	t.Helper()
	require.True(t, slices.ContainsFunc(found, func(f Finding) bool {
		return f.Check == check && f.Level == level && strings.Contains(f.Seen, seen) &&
			(f.Remedy == "") == (level == OK)
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

func runSQLite(t *testing.T, path string) []Finding {
	t.Helper()
	return Run(t.Context(), CheckSQLite("store main", path)...)
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
	found := runSQLite(t, path)
	require.Len(t, found, 5)
	requireSQLiteFinding(t, found, SQLiteFiles, OK, "is writable")
	requireSQLiteFinding(t, found, SQLiteSpace, OK, "are free")
	requireSQLiteFinding(t, found, SQLiteLog, OK, "journal_mode is wal")
	requireSQLiteFinding(t, found, SQLiteSchema, OK, "schema "+strconv.FormatInt(table.Schema.Version, 10))
	requireSQLiteFinding(t, found, SQLiteIntegrity, OK, "whole")
	require.Equal(t, before, contents(t, path), "it changes nothing")
	require.NoError(t, s.Ping(t.Context()))
	_, err := sqlite.OpenAuditor(t.Context(), path, true, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "another process uses the database", "it releases no lock")
	require.NoError(t, s.Close())
}

// contents returns the files of a database.
func contents(t *testing.T, path string) (all []string) {
	t.Helper()
	for _, suffix := range []string{"", db.WAL} {
		text, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		all = append(all, string(text))
	}
	return all
}

func TestCheck_OfFilesThatCannotBeUsed(t *testing.T) {
	folder := t.TempDir()
	found := runSQLite(t, filepath.Join(folder, "none.db"))
	requireSQLiteFinding(t, found, SQLiteFiles, OK, "does not exist yet")
	requireSQLiteFinding(t, found, SQLiteIntegrity, Unknown, "there is no database yet")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, entries, "it makes nothing")

	requireSQLiteFinding(t, runSQLite(t, filepath.Join(folder, "none", "jobs.db")), SQLiteFiles,
		Fault, "does not exist")
	found = runSQLite(t, folder)
	requireSQLiteFinding(t, found, SQLiteFiles, Fault, "is a folder, not a database")

	linked := closed(t)
	require.NoError(t, os.Link(linked, linked+"-2"))
	requireSQLiteFinding(t, runSQLite(t, linked), SQLiteFiles, Fault, "has 2 names")

	public := closed(t)
	require.NoError(t, os.Chmod(public, 0o644))
	requireSQLiteFinding(t, runSQLite(t, public), SQLiteFiles, Warn, "jobs.db (mode 0644)")
	info, err := os.Stat(public)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm(), "it changes nothing")

	if os.Getuid() != 0 { // root writes everywhere
		locked := closed(t)
		require.NoError(t, os.Chmod(locked, 0o400))
		requireSQLiteFinding(t, runSQLite(t, locked), SQLiteFiles, Fault, "is not writable")
	}
}

func TestCheck_OfWhatIsInTheFile(t *testing.T) {
	newer := closed(t)
	change(t, newer, "PRAGMA user_version=99")
	found := runSQLite(t, newer)
	requireSQLiteFinding(t, found, SQLiteSchema, Fault, "schema 99, made by a newer version")
	requireSQLiteFinding(t, found, SQLiteIntegrity, Unknown, "made by a newer version")

	mode := closed(t)
	change(t, mode, "PRAGMA journal_mode=DELETE")
	requireSQLiteFinding(t, runSQLite(t, mode), SQLiteLog, Warn, "journal_mode is delete")

	text := filepath.Join(t.TempDir(), "text.db")
	require.NoError(t, os.WriteFile(text, bytes.Repeat([]byte("no database "), 1000), 0o600))
	requireSQLiteFinding(t, runSQLite(t, text), SQLiteIntegrity, Fault, "damaged, or not a database")

	damaged := closed(t)
	content, err := os.ReadFile(damaged)
	require.NoError(t, err)
	for at := 2 * 4096; at < len(content); at += 4096 { // not the schema
		copy(content[at:at+64], bytes.Repeat([]byte{0xee}, 64))
	}
	require.NoError(t, os.WriteFile(damaged, content, 0o600))
	requireSQLiteFinding(t, runSQLite(t, damaged), SQLiteIntegrity, Fault, "damaged")
}

func TestCheck_OfALogThatBelongsToAnotherFile(t *testing.T) {
	_, used := open(t)
	before := closed(t)
	log, err := os.ReadFile(used + db.WAL)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(before+db.WAL, log, 0o600))
	found := runSQLite(t, before)
	requireSQLiteFinding(t, found, SQLiteLog, Fault, "does not belong to the database")
	requireSQLiteFinding(t, found, SQLiteSchema, Unknown, "could not be checked")
}

func TestCheckIntegrity_SaysThatItDidNotEnd(t *testing.T) {
	path := closed(t)
	f, err := db.OpenFile(t.Context(), table.Schema, path, false, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	requireSQLiteFinding(t, SQLiteIntegrity.of(checkIntegrity(ctx, f)), SQLiteIntegrity, Unknown,
		"too large to check in 3s")
}

func TestJudge_SpaceAndLogs(t *testing.T) {
	require.Equal(t, OK, judgeSpace(1<<30, 1<<30).Level)
	require.Equal(t, Warn, judgeSpace(1<<30, 5<<30).Level, "a quarter of the database")
	require.Equal(t, Warn, judgeSpace(200<<20, 0).Level)
	require.Equal(t, Fault, judgeSpace(1<<20, 0).Level)
	require.Equal(t, OK, judgeLog("wal", 128<<20).Level)
	require.Equal(t, Warn, judgeLog("wal", 517<<20).Level)
}
