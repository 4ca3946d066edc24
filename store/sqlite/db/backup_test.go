package db

import (
	"context"
	"database/sql/driver"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBackup_OfADatabaseInUseIsOneState(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	const size = 20 // items are added so many at a time: a copy has all of them, or none
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			if err := d.Submit(t.Context(), insertCall(size, 100)); err != nil {
				t.Error(err)
			}
		}
	})
	add(t, d, size)
	for i := range 3 {
		to := filepath.Join(t.TempDir(), "it's a copy.db")
		made, err := Backup(t.Context(), testSchema, o.Path, to)
		require.NoError(t, err)
		require.Equal(t, to, made.Path)
		require.Positive(t, made.Jobs)
		require.Zero(t, made.Jobs%size, i)
		info, err := os.Stat(to)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		entries, err := os.ReadDir(filepath.Dir(to))
		require.NoError(t, err)
		require.Len(t, entries, 1, "nothing but the copy")
		_, err = Backup(t.Context(), testSchema, o.Path, to)
		require.ErrorContains(t, err, "exists already")
		copied := o
		copied.Path = to
		requireItems(t, openDatabase(t, copied), int(made.Jobs))
	}
	cancel()
	group.Wait()
}

func TestBackup_OfADatabaseInUseWhoseLogIsEmptyKeepsOneState(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	add(t, d, 10)
	inWriter(t, d, func() { d.truncateLog() })
	c, err := connectToCopy(o.Path)
	require.NoError(t, err)
	count := func() (n int64) {
		require.NoError(t, c.QueryText(t.Context(), "SELECT count(*) FROM items", func(v []driver.Value) error {
			n = Int(v[0])
			return nil
		}))
		return n
	}
	require.NoError(t, c.execText("BEGIN"))
	require.EqualValues(t, 10, count())
	require.NoError(t, d.Submit(t.Context(), insertCall(10, 10_000)))
	inWriter(t, d, func() {
		busy, err := d.truncate()
		require.NoError(t, err)
		require.True(t, busy, "what is being copied stays as it was")
	})
	require.EqualValues(t, 10, count())
	require.NoError(t, c.close())
}

func TestBackup_OfADatabaseNotInUse(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	add(t, d, 10)
	crashed := copyFiles(t, d, 10)
	inWriter(t, d, func() { d.truncateLog() })
	add(t, d, 10)
	later := copyFiles(t, d, 20)

	to := filepath.Join(t.TempDir(), "copy.db")
	from := writeFiles(t, crashed.db, crashed.wal).Path
	made, err := Backup(t.Context(), testSchema, from, to)
	require.NoError(t, err)
	require.EqualValues(t, 10, made.Jobs, "those in the log, too")
	for name, wanted := range map[string][]byte{from: crashed.db, from + "-wal": crashed.wal} {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, wanted, content, "nothing was changed")
	}

	to = filepath.Join(t.TempDir(), "copy.db")
	_, err = Backup(t.Context(), testSchema, writeFiles(t, crashed.copy, later.wal).Path, to)
	require.ErrorContains(t, err, "does not belong to the database")
	_, err = Backup(t.Context(), testSchema, filepath.Join(t.TempDir(), "missing.db"), to)
	require.ErrorContains(t, err, "no such file")
	_, err = Backup(t.Context(), testSchema, writeFiles(t, []byte(strings.Repeat("no database ", 1000)), nil).Path, to)
	require.ErrorContains(t, err, "damaged, or not a database")
	require.NoFileExists(t, to)
}

func TestRestore_PutsACopyInThePlaceOfWhatACrashHasLeft(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	add(t, d, 10)
	copies := map[string]string{"backup": filepath.Join(t.TempDir(), "copy.db")}
	_, err := Backup(t.Context(), testSchema, o.Path, copies["backup"])
	require.NoError(t, err)
	first := copyFiles(t, d, 10)
	copies["the shell's .backup"] = writeFiles(t, first.copy, nil).Path
	copies["the files of a process that was killed"] = writeFiles(t, first.db, first.wal).Path
	inWriter(t, d, func() { d.truncateLog() })
	add(t, d, 10)
	second := copyFiles(t, d, 20)

	for name, from := range copies {
		t.Run(name, func(t *testing.T) {
			target := writeFiles(t, second.db, second.wal)
			require.NoError(t, os.WriteFile(target.Path+"-shm", []byte("stale"), 0o600))
			restored, err := Restore(t.Context(), testSchema, from, target.Path, target.Logger)
			require.NoError(t, err)
			require.EqualValues(t, 10, restored.Jobs)
			require.NoFileExists(t, target.Path+"-wal")
			require.NoFileExists(t, target.Path+"-shm")
			requireItems(t, openDatabase(t, target), 10)

			before := target
			before.Path = restored.Aside
			requireItems(t, openDatabase(t, before), 20) // what was there is kept, with its log
		})
	}
	t.Run("where nothing was", func(t *testing.T) {
		target := options(t)
		restored, err := Restore(t.Context(), testSchema, copies["backup"], target.Path, target.Logger)
		require.NoError(t, err)
		require.Empty(t, restored.Aside)
		openDatabase(t, target)
	})
	t.Run("after a restore that was interrupted", func(t *testing.T) {
		target := writeFiles(t, second.db, second.wal)
		_, err := moveAside(target.Path, time.Now())
		require.NoError(t, err)
		_, err = openUnstarted(t.Context(), target)
		require.ErrorContains(t, err, "has 2 names", "it is not begun on half of what was there")
		require.NoError(t, os.WriteFile(target.Path+".restoring", []byte("half"), 0o600))
		_, err = Restore(t.Context(), testSchema, copies["backup"], target.Path, target.Logger)
		require.NoError(t, err)
		openDatabase(t, target)
	})
}

func TestRestore_ChangesNothingWhenItCannot(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	add(t, d, 3000)
	whole := copyFiles(t, d, 3000)
	damaged := append([]byte(nil), whole.copy...)
	for i := 20 * 4096; i < 30*4096; i++ {
		damaged[i] = 0xee
	}
	newer := writeFiles(t, whole.copy, nil)
	shell(t, newer.Path, "PRAGMA user_version=10")
	older := writeFiles(t, whole.copy, nil)
	shell(t, older.Path, "PRAGMA user_version=1")
	theirs := options(t)
	shell(t, theirs.Path, "CREATE TABLE theirs (x); PRAGMA user_version=1")
	inWriter(t, d, func() { d.truncateLog() })
	add(t, d, 10)
	target := writeFiles(t, whole.db, whole.wal)
	for name, c := range map[string]struct{ from, to, says string }{
		"in use": {writeFiles(t, whole.copy, nil).Path, o.Path, "another process uses the " +
			"database"},
		"a copy beside another's log": {writeFiles(t, whole.copy, copyFiles(t, d, 310).wal).
			Path, target.Path, "does not belong to the database"},
		"a copy that is damaged":     {writeFiles(t, damaged, nil).Path, target.Path, "damaged"},
		"a copy of a newer version":  {newer.Path, target.Path, "made by a newer version"},
		"a copy of an older version": {older.Path, target.Path, "made by an older version"},
		"another program's database": {theirs.Path, target.Path, "is no database of this program"},
		"no copy":                    {filepath.Join(t.TempDir(), "copy.db"), target.Path, "find the backup"},
		"itself":                     {target.Path, target.Path, "is the database itself"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Restore(t.Context(), testSchema, c.from, c.to, o.Logger)
			require.ErrorContains(t, err, c.says)
		})
	}
	entries, err := os.ReadDir(filepath.Dir(target.Path))
	require.NoError(t, err)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"jobs.db", "jobs.db-wal", "jobs.db.lock"}, names)
	requireItems(t, openDatabase(t, target), 3000)
}
