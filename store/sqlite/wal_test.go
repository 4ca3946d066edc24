package sqlite

import (
	"database/sql/driver"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A stage is a database as it lay on the disk at some moment.
type stage struct {
	db, wal []byte
	copy    []byte // as the shell's .backup makes it
	jobs    int    // committed
}

// staged copies a database that is open. Page by page it is what a process that is killed leaves behind, since nothing is
// written meanwhile.
func staged(t *testing.T, s *Store, jobs int) (st stage) {
	t.Helper()
	inWriter(t, s, func() {
		var err error
		st.db, err = os.ReadFile(s.path)
		require.NoError(t, err)
		st.wal, err = os.ReadFile(s.path + "-wal")
		require.NoError(t, err)
	})
	st.jobs = jobs
	path := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(path, st.db, 0o600))
	require.NoError(t, os.WriteFile(path+"-wal", st.wal, 0o600))
	c, err := connect(path, false)
	require.NoError(t, err)
	_, _, err = moveLog(c, "TRUNCATE") // the same pages as in a copy by SQLite's backup interface
	require.NoError(t, err)
	require.NoError(t, c.close())
	st.copy, err = os.ReadFile(path)
	require.NoError(t, err)
	return st
}

// laid lays a database and a log beside each other.
func laid(t *testing.T, db, wal []byte) Options {
	t.Helper()
	o := options(t)
	require.NoError(t, os.WriteFile(o.Path, db, 0o600))
	if len(wal) > 0 {
		require.NoError(t, os.WriteFile(o.Path+"-wal", wal, 0o600))
	}
	return o
}

func TestCheckLog_TakesEveryCrashAndRefusesEveryForeignLog(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	o := options(t)
	s := opened(t, o)
	var stages []stage
	jobs := 0
	var reader *conn
	release := func() {
		if reader != nil {
			require.NoError(t, reader.close())
			reader = nil
		}
	}
	const steps = 24
	for step := range steps {
		switch random.IntN(7) {
		case 0:
			inWriter(t, s, func() { s.cutAgain = 0; s.cutLog() })
		case 1: // of a part, while somebody reads
			release()
			var err error
			reader, err = connect(o.Path, true)
			require.NoError(t, err)
			_, err = reader.exec(snapshot)
			require.NoError(t, err)
			require.NoError(t, reader.query(t.Context(), countOutbox, func([]driver.Value) error { return nil }))
		case 2:
			release()
			s.checks <- struct{}{}
		case 3:
			require.NoError(t, s.Ping(t.Context()))
		case 4:
			release()
			require.NoError(t, s.Close())
			s = opened(t, o)
		case 5:
			for _, h := range claimUp(t, s, 20) {
				settle(t, s, settled(h, policy.Verdict{Kind: policy.Again, Wait: time.Millisecond}))
			}
		default:
		}
		n := 1 + random.IntN(60)
		insert(t, s, numbered(fmt.Sprint(step), n, 0)...)
		jobs += n
		stages = append(stages, staged(t, s, jobs))
	}
	release()

	// count opens what is laid beside each other, and tells how many jobs it has.
	count := func(o Options) (n int64) {
		c, err := connect(o.Path, false)
		require.NoError(t, err)
		ok := ""
		require.NoError(t, c.queryText(t.Context(), "SELECT (SELECT count(*) FROM jobs NOT INDEXED), integrity_check FROM pragma_integrity_check", func(v []driver.Value) error {
			n, ok = integer(v[0]), text(v[1])
			return nil
		}))
		require.Equal(t, "ok", ok)
		require.NoError(t, c.close())
		return n
	}
	refused := 0
	for i, later := range stages {
		o := laid(t, later.db, later.wal)
		require.NoError(t, checkLog(t.Context(), o.Path), "killed at %d", i)
		require.NoError(t, checkLog(t.Context(), laid(t, later.copy, nil).Path), "a copy")
		for k, earlier := range stages[:i] {
			o := laid(t, earlier.copy, later.wal)
			if err := checkLog(t.Context(), o.Path); err != nil {
				require.ErrorContains(t, err, "does not belong to the database")
				refused++
				continue
			}
			require.EqualValues(t, later.jobs, count(o), "the log of %d over the copy of %d: it has all that was written since", i, k)
		}
	}
	require.Greater(t, refused, steps*steps/8)
}

func TestOpen_RefusesALogOfAnotherFile(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, numbered("before", 10, 0)...)
	before := staged(t, s, 10)
	inWriter(t, s, s.cutLog)
	insert(t, s, numbered("after", 10, 0)...)
	after := staged(t, s, 20)
	for name, db := range map[string][]byte{"an earlier copy": before.copy, "an empty file": {}} {
		t.Run(name, func(t *testing.T) {
			o := laid(t, db, after.wal)
			_, err := Open(t.Context(), o)
			require.ErrorContains(t, err, "does not belong to the database")
			require.ErrorContains(t, err, "ringback restore")
			require.NotContains(t, err.Error(), "\n")
			content, err := os.ReadFile(o.Path + "-wal")
			require.NoError(t, err)
			require.Equal(t, after.wal, content, "nothing was changed")
			require.NoError(t, os.Remove(o.Path+"-wal"))
			if len(db) > 0 {
				require.Equal(t, job.Ready, get(t, opened(t, o), "before-0000").State)
			}
		})
	}
	t.Run("a copy by VACUUM INTO", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "copy.db")
		inWriter(t, s, func() { require.NoError(t, s.conn.execText("VACUUM INTO '"+path+"'")) })
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = Open(t.Context(), laid(t, content, after.wal))
		require.ErrorContains(t, err, "does not belong to the database")
		require.Equal(t, job.Ready, get(t, opened(t, laid(t, content, nil)), "after-0000").State)
	})
	t.Run("no file", func(t *testing.T) {
		o := laid(t, nil, after.wal)
		require.NoError(t, os.Remove(o.Path))
		_, err := Open(t.Context(), o)
		require.ErrorContains(t, err, "does not belong to the database")
	})
	t.Run("a log that was cut off", func(t *testing.T) {
		for _, end := range []int{0, 10, walHeaderSize, walHeaderSize + 100, len(after.wal) / 2, len(after.wal) - 1} {
			require.NoError(t, checkLog(t.Context(), laid(t, after.db, after.wal[:end]).Path), end)
		}
	})
}

func TestParseMark_ReadsWhateverSQLiteWrites(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	inWriter(t, s, func() {
		for _, mark := range []int64{1, 2, 127, 128, -129, 1 << 20, -1 << 30, 1 << 45, math.MaxInt64, math.MinInt64} {
			_, err := s.conn.exec(updateMark, mark)
			require.NoError(t, err)
			_, _, err = moveLog(s.conn, "TRUNCATE")
			require.NoError(t, err)
			_, err = s.conn.exec(updateMark, mark)
			require.NoError(t, err)
			content, err := os.ReadFile(o.Path)
			require.NoError(t, err)
			copied := laid(t, content, nil)
			page, read := fileMark(t.Context(), copied.Path)
			require.Equal(t, mark, read)
			log, err := readLog(o.Path+"-wal", page)
			require.NoError(t, err)
			require.Equal(t, writeAheadLog{frames: 1, base: mark, marks: []int64{mark}}, log)
		}
	})
}
