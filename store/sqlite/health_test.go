package sqlite

import (
	"context"
	"database/sql/driver"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// failSync lets every fsync of a commit fail until heal is called: commits without one succeed.
func failSync(t *testing.T, s *Store) (heal func()) {
	t.Helper()
	return hookInto(t, s, commit, func(int, []driver.NamedValue) error {
		if s.level == full {
			return codeError(lib.SQLITE_IOERR_FSYNC)
		}
		return nil
	})
}

func TestPing_FailsWhereARegistrationFails(t *testing.T) {
	o := options(t)
	log := logging(&o)
	s := opened(t, o)
	insert(t, s, numbered("job", 2, 0)...)
	jobs := claimUp(t, s, 2)
	heal := failSync(t, s)
	_, err := s.Insert(t.Context(), store.NewToken(), numbered("more", 1, 0))
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorIs(t, s.Ping(t.Context()), store.ErrUnavailable)
	require.ErrorContains(t, s.Ping(t.Context()), "the disk under the database fails")
	settle(t, s, settled(jobs[0], policy.Verdict{Kind: policy.Delivered})) // what promises nothing goes on
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), log)
	heal()
	require.NoError(t, s.Ping(t.Context()))
}

func TestWriter_WritesTheLogAnewAfterAnFsyncThatFailed(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, bulky("big", 100, 10_000)...)
	heal := failSync(t, s)
	require.Error(t, s.Ping(t.Context()))
	heal()
	claimUp(t, s, 1)
	info, err := os.Stat(o.Path + "-wal")
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(1<<20))

	reader, err := connect(o.Path, true)
	require.NoError(t, err)
	_, err = reader.exec(snapshot)
	require.NoError(t, err)
	require.NoError(t, reader.query(t.Context(), countOutbox, func([]driver.Value) error { return nil }))
	require.ErrorContains(t, s.Ping(t.Context()), "written anew", "a reader keeps the log from its end")
	require.NoError(t, reader.close())

	require.NoError(t, s.Ping(t.Context()))
	before := info.Size()
	var written int64
	inWriter(t, s, func() {
		require.False(t, s.unsynced)
		info, err := os.Stat(o.Path)
		require.NoError(t, err)
		written = info.Size()
	})
	require.Greater(t, written, before/2, "it is in the database")
}

func TestWriter_WritesTheLogAnewAfterAFaultBetweenTransactions(t *testing.T) {
	s := opened(t, options(t))
	insert(t, s, entry("a", 0))
	heal := hookInto(t, s, updateMark, func(int, []driver.NamedValue) error { return codeError(lib.SQLITE_IOERR_FSYNC) })
	inWriter(t, s, s.markLog)
	heal()
	inWriter(t, s, func() { require.True(t, s.unsynced) })
	require.NoError(t, s.Ping(t.Context()))
	inWriter(t, s, func() { require.False(t, s.unsynced) })
}

func TestHealth_LogsAFaultOfReadsOnceAMinuteAndIsNotReady(t *testing.T) {
	o := options(t)
	log := logging(&o)
	s, c := clocked(t, o)
	fault := &diskError{codeError(lib.SQLITE_IOERR_READ)}
	read := func() {
		err := s.read(t.Context(), "read a job", func(context.Context, *conn) error { return fault })
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, reason(fault))
	}
	read()
	read()
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), log)
	require.ErrorContains(t, s.Ping(t.Context()), "the disk under the database fails")
	c.pass(time.Minute)
	require.NoError(t, s.Ping(t.Context()))
	read()
	require.Equal(t, 2, strings.Count(log.String(), "level=ERROR"), log)
	fault.err = codeError(lib.SQLITE_CORRUPT)
	read()
	c.pass(time.Hour)
	require.ErrorContains(t, s.Ping(t.Context()), "the database file is damaged", "until it is opened again")
}

func TestHealth_FaultOfSomebodyElsesLockIsAWarning(t *testing.T) {
	o := options(t)
	log := logging(&o)
	s := opened(t, o)
	other, err := connect(o.Path, false)
	require.NoError(t, err)
	require.NoError(t, other.execText("BEGIN IMMEDIATE"))
	_, err = s.Insert(t.Context(), store.NewToken(), []store.NewJob{entry("b", 0)})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NoError(t, other.close())
	require.Contains(t, log.String(), "level=WARN")
	require.NotContains(t, log.String(), "level=ERROR")
}
