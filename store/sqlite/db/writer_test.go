package db

import (
	"database/sql/driver"
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/store"
)

// openCounted opens a database and counts its transactions.
func openCounted(t *testing.T, o Options) (d *database, begun *int) {
	t.Helper()
	begun = new(int)
	d, err := Open(t.Context(), o, func(tx *Tx) testTx {
		*begun++
		return testTx{tx}
	})
	require.NoError(t, err)
	d.Start()
	t.Cleanup(func() {
		if !d.isClosing() {
			require.NoError(t, d.Close())
		}
	})
	return d, begun
}

func insertCalls(n int) (calls []*testCall) {
	for range n {
		calls = append(calls, insertCall(1, 100))
	}
	return calls
}

func TestWriter_CommitsConcurrentCallsTogether(t *testing.T) {
	d, begun := openCounted(t, options(t))
	for _, err := range submitAll(t, d, insertCalls(200)...) {
		require.NoError(t, err)
	}
	require.Equal(t, 1, *begun)
	requireItems(t, d, 200)
}

func TestWriter_FailsOnlyTheCallThatCannotBeWritten(t *testing.T) {
	d := openDatabase(t, options(t))
	add(t, d, 10)
	limitPages(t, d, 4)
	errs := submitAll(t, d, insertCall(100, 10_000), updateCall(), updateCall(), updateCall())
	require.ErrorIs(t, errs[0], store.ErrUnavailable)
	for _, err := range errs[1:] {
		require.NoError(t, err)
	}
}

// limitPages limits the growth of the database, in pages, as a full disk does.
func limitPages(t *testing.T, d *database, more int64) {
	t.Helper()
	inWriter(t, d, func() {
		var pages int64
		require.NoError(t, d.conn.QueryText(t.Context(), "PRAGMA page_count", func(v []driver.Value) error {
			pages = Int(v[0])
			return nil
		}))
		require.NoError(t, d.conn.execText("PRAGMA max_page_count="+strconv.FormatInt(pages+more, 10)))
	})
}

func TestWriter_FailsAGroupAtOnceWhenTheFileIsLocked(t *testing.T) {
	o := options(t)
	d, begun := openCounted(t, o)
	add(t, d, 1)
	*begun = 0
	other := dial(t, o.Path, false)
	require.NoError(t, other.execText("BEGIN IMMEDIATE"))
	for _, err := range submitAll(t, d, insertCalls(5)...) {
		require.ErrorContains(t, err, "another process has the database locked")
	}
	require.Equal(t, 1, *begun, "transactions that waited for the lock")
	requireItems(t, d, 1) // reads go on
	require.NoError(t, other.close())
	add(t, d, 1)
}

func TestWriter_StopsTryingCallsAloneAtAFaultThatMeetsAll(t *testing.T) {
	o := options(t)
	d, begun := openCounted(t, o)
	add(t, d, 1)
	*begun = 0
	other := dial(t, o.Path, false)
	hookInto(t, d, insertItem, func(used int) error {
		if used == 1 {
			return errors.New("injected fault") // of the group
		}
		return nil
	})
	hookInto(t, d, beginWrite, func(used int) error {
		if used == 2 {
			return other.execText("BEGIN IMMEDIATE") // before the first call alone
		}
		return nil
	})
	for _, err := range submitAll(t, d, insertCalls(4)...) {
		require.ErrorContains(t, err, "another process has the database locked")
	}
	require.Equal(t, 2, *begun, "the group, and the first call alone")
	require.NoError(t, other.close())
}

func TestWriter_StopsAtDamage(t *testing.T) {
	d, begun := openCounted(t, options(t))
	add(t, d, 1)
	*begun = 0
	hookInto(t, d, insertItem, func(used int) error {
		if used == 2 {
			return codeError(lib.SQLITE_CORRUPT)
		}
		return nil
	})
	for _, err := range submitAll(t, d, insertCalls(4)...) {
		require.ErrorContains(t, err, "the database file is damaged")
	}
	require.Equal(t, 1, *begun)
}

func TestWriter_AnswersCallsTriedAloneOneByOneUntilTheDatabaseCloses(t *testing.T) {
	d := openDatabase(t, options(t))
	add(t, d, 1)
	blocked, gate := make(chan struct{}), make(chan struct{})
	hookInto(t, d, insertItem, func(used int) error {
		switch used {
		case 1:
			return errors.New("injected fault") // of the group
		case 3:
			close(blocked)
			<-gate // the second call alone
		}
		return nil
	})
	release := blockWriter(t, d)
	answers := make(chan error, 3)
	for range cap(answers) {
		go func() { answers <- d.Submit(t.Context(), insertCall(1, 100)) }()
	}
	waitForCalls(t, d, cap(answers))
	release()
	<-blocked
	require.NoError(t, <-answers, "the first does not wait for the others")
	closed := make(chan error)
	go func() { closed <- d.Close() }()
	<-d.closing
	close(gate)
	refused := 0
	for range 2 {
		if err := <-answers; err != nil {
			require.ErrorIs(t, err, store.ErrUnavailable)
			refused++
		}
	}
	require.Equal(t, 1, refused, "the third is not tried any more")
	require.NoError(t, <-closed)
}

func TestWriter_ReplacesABrokenConnection(t *testing.T) {
	d := openDatabase(t, options(t))
	add(t, d, 1)
	inWriter(t, d, func() { d.broken = true })
	add(t, d, 1)
	requireItems(t, d, 2)
}

// failSync makes each commit with fsync fail until heal is called.
func failSync(t *testing.T, d *database) (heal func()) {
	t.Helper()
	return hookInto(t, d, commit, func(int) error {
		if d.sync == syncFull {
			return codeError(lib.SQLITE_IOERR_FSYNC)
		}
		return nil
	})
}

func TestWriter_WritesTheLogAnewAfterAnFsyncThatFailed(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	require.NoError(t, d.Submit(t.Context(), insertCall(100, 10_000)))
	heal := failSync(t, d)
	require.ErrorContains(t, d.Submit(t.Context(), insertCall(1, 1)), "the disk under the database fails")
	heal()
	require.NoError(t, d.Submit(t.Context(), updateCall()), "it promises nothing")
	before := sizeOf(t, o.Path+WAL)
	require.Greater(t, before, int64(1<<20))

	reader := openReader(t, o.Path)
	require.ErrorContains(t, d.Submit(t.Context(), insertCall(1, 1)), "written anew",
		"a reader keeps the log from its end")
	require.NoError(t, reader.close())

	add(t, d, 1)
	var written int64
	inWriter(t, d, func() {
		require.False(t, d.unsynced)
		info, err := os.Stat(o.Path)
		require.NoError(t, err)
		written = info.Size()
	})
	require.Greater(t, written, before/2, "it is in the database")
}

func TestWriter_WritesTheLogAnewAfterAFaultBetweenTransactions(t *testing.T) {
	d := openDatabase(t, options(t))
	add(t, d, 1)
	heal := hookInto(t, d, updateMark, func(int) error { return codeError(lib.SQLITE_IOERR_FSYNC) })
	inWriter(t, d, d.markLog)
	heal()
	inWriter(t, d, func() { require.True(t, d.unsynced) })
	add(t, d, 1)
	inWriter(t, d, func() { require.False(t, d.unsynced) })
}

func TestHealth_LockOfAnotherProcessIsAWarning(t *testing.T) {
	o := options(t)
	log := captureLog(&o)
	d := openDatabase(t, o)
	other := dial(t, o.Path, false)
	require.NoError(t, other.execText("BEGIN IMMEDIATE"))
	require.ErrorIs(t, d.Submit(t.Context(), insertCall(1, 1)), store.ErrUnavailable)
	require.NoError(t, other.close())
	require.Contains(t, log.String(), "level=WARN")
	require.NotContains(t, log.String(), "level=ERROR")
}
