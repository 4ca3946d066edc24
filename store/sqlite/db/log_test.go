package db

import (
	"database/sql/driver"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stage is a database as it lay on the disk at some moment.
type stage struct {
	db, wal []byte
	copy    []byte // as the shell's .backup makes it
	items   int    // committed
}

// copyFiles copies the files of an open database, as a process that is killed would leave them.
func copyFiles(t *testing.T, d *database, items int) (st stage) {
	t.Helper()
	inWriter(t, d, func() {
		var err error
		st.db, err = os.ReadFile(d.path)
		require.NoError(t, err)
		st.wal, err = os.ReadFile(d.path + WAL)
		require.NoError(t, err)
	})
	st.items = items
	path := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(path, st.db, 0o600))
	require.NoError(t, os.WriteFile(path+WAL, st.wal, 0o600))
	c := dial(t, path, false)
	_, _, err := checkpointLog(c, "TRUNCATE") // the same pages as in a copy by SQLite's backup interface
	require.NoError(t, err)
	require.NoError(t, c.close())
	st.copy, err = os.ReadFile(path)
	require.NoError(t, err)
	return st
}

// writeFiles writes a database and its log, and returns the options to open them.
func writeFiles(t *testing.T, db, wal []byte) Options {
	t.Helper()
	o := options(t)
	require.NoError(t, os.WriteFile(o.Path, db, 0o600))
	if len(wal) > 0 {
		require.NoError(t, os.WriteFile(o.Path+WAL, wal, 0o600))
	}
	return o
}

func TestCheckLog_TakesEveryCrashAndRefusesEveryForeignLog(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	o := options(t)
	d := openDatabase(t, o)
	var stages []stage
	written := 0
	var reader *Conn
	release := func() {
		if reader != nil {
			require.NoError(t, reader.close())
			reader = nil
		}
	}
	const steps = 24
	for range steps {
		switch random.IntN(7) {
		case 0:
			inWriter(t, d, func() { d.truncateLog() })
		case 1: // of a part, while somebody reads
			release()
			reader = openReader(t, o.Path)
		case 2:
			release()
			d.checks <- struct{}{}
		case 3:
			require.NoError(t, d.Submit(t.Context(), insertCall(0, 0)))
		case 4:
			release()
			require.NoError(t, d.Close())
			d = openDatabase(t, o)
		case 5:
			for range 20 {
				require.NoError(t, d.Submit(t.Context(), updateCall()))
			}
		default:
		}
		n := 1 + random.IntN(60)
		add(t, d, n)
		written += n
		stages = append(stages, copyFiles(t, d, written))
	}
	release()

	// count opens what is laid beside each other, and returns how many items it has.
	count := func(o Options) (n int64) {
		c := dial(t, o.Path, false)
		ok := ""
		require.NoError(t, c.QueryText(t.Context(), "SELECT (SELECT count(*) FROM items NOT INDEXED), "+
			"integrity_check FROM pragma_integrity_check", func(v []driver.Value) error {
			n, ok = Int(v[0]), Text(v[1])
			return nil
		}))
		require.Equal(t, "ok", ok)
		require.NoError(t, c.close())
		return n
	}
	refused := 0
	for i, later := range stages {
		o := writeFiles(t, later.db, later.wal)
		require.NoError(t, checkLog(t.Context(), o.Path), "killed at %d", i)
		require.NoError(t, checkLog(t.Context(), writeFiles(t, later.copy, nil).Path), "a copy")
		for k, earlier := range stages[:i] {
			o := writeFiles(t, earlier.copy, later.wal)
			if err := checkLog(t.Context(), o.Path); err != nil {
				require.ErrorContains(t, err, "does not belong to the database")
				refused++
				continue
			}
			require.EqualValues(t, later.items, count(o),
				"the log of %d over the copy of %d: it has all that was written since", i, k)
		}
	}
	require.Greater(t, refused, steps*steps/8)
}

func TestOpen_RefusesALogOfAnotherFile(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	add(t, d, 10)
	before := copyFiles(t, d, 10)
	inWriter(t, d, func() { d.truncateLog() })
	add(t, d, 10)
	after := copyFiles(t, d, 20)
	for name, db := range map[string][]byte{"an earlier copy": before.copy, "an empty file": {}} {
		t.Run(name, func(t *testing.T) {
			o := writeFiles(t, db, after.wal)
			_, err := openUnstarted(t.Context(), o)
			require.ErrorContains(t, err, "does not belong to the database")
			require.ErrorContains(t, err, "ringback restore")
			require.NotContains(t, err.Error(), "\n")
			content, err := os.ReadFile(o.Path + WAL)
			require.NoError(t, err)
			require.Equal(t, after.wal, content, "nothing was changed")
			require.NoError(t, os.Remove(o.Path+WAL))
			if len(db) > 0 {
				requireItems(t, openDatabase(t, o), 10)
			}
		})
	}
	t.Run("a copy by VACUUM INTO", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "copy.db")
		inWriter(t, d, func() { require.NoError(t, d.conn.execText("VACUUM INTO '"+path+"'")) })
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = openUnstarted(t.Context(), writeFiles(t, content, after.wal))
		require.ErrorContains(t, err, "does not belong to the database")
		requireItems(t, openDatabase(t, writeFiles(t, content, nil)), 20)
	})
	t.Run("no file", func(t *testing.T) {
		o := writeFiles(t, nil, after.wal)
		require.NoError(t, os.Remove(o.Path))
		_, err := openUnstarted(t.Context(), o)
		require.ErrorContains(t, err, "does not belong to the database")
	})
	t.Run("a log that was cut off", func(t *testing.T) {
		for _, end := range []int{0, 10, walHeaderSize, walHeaderSize + 100, len(after.wal) / 2, len(after.wal) - 1} {
			require.NoError(t, checkLog(t.Context(), writeFiles(t, after.db, after.wal[:end]).Path), end)
		}
	})
}

func TestParseMark_ReadsWhateverSQLiteWrites(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	inWriter(t, d, func() {
		for _, mark := range []int64{1, 2, 127, 128, -129, 1 << 20, -1 << 30, 1 << 45, math.MaxInt64, math.MinInt64} {
			_, err := d.conn.Exec(updateMark, mark)
			require.NoError(t, err)
			_, _, err = checkpointLog(d.conn, "TRUNCATE")
			require.NoError(t, err)
			_, err = d.conn.Exec(updateMark, mark)
			require.NoError(t, err)
			content, err := os.ReadFile(o.Path)
			require.NoError(t, err)
			copied := writeFiles(t, content, nil)
			page, read := fileMark(t.Context(), copied.Path)
			require.Equal(t, mark, read)
			log, err := readLog(o.Path+WAL, page)
			require.NoError(t, err)
			require.Equal(t, writeAheadLog{frames: 1, base: mark, marks: []int64{mark}}, log)
		}
	})
}
