package db

import (
	"database/sql/driver"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store/sqlite/file"
)

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

func TestCheckpoint_KeepsTheLogSmallUnderLoad(t *testing.T) {
	o := options(t)
	d, err := openUnstarted(t.Context(), o)
	require.NoError(t, err)
	d.truncateAbove = 4 << 20
	d.Start()
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	var largest int64
	for range 60 {
		require.NoError(t, d.Submit(t.Context(), insertCall(100, 10_000)))
		largest = max(largest, sizeOf(t, o.Path+file.WAL))
	}
	require.Greater(t, sizeOf(t, o.Path), int64(40<<20), "what was written")
	require.Less(t, largest, int64(24<<20), "the log")
}

func TestTruncateLog_DoesNotWaitForReaders(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	add(t, d, 1)
	reader := openReader(t, o.Path)
	add(t, d, 1)
	fastest, waiting := time.Hour, time.Duration(0)
	var again, timeout int64
	var fault error
	inWriter(t, d, func() {
		for range 3 {
			start := time.Now()
			d.truncateAgain = 0
			d.truncateLog()
			fastest = min(fastest, time.Since(start))
			again = d.truncateAgain
		}
		start := time.Now()
		var blocked, pages, moved int64
		if fault = d.conn.ints(shared, "PRAGMA wal_checkpoint(TRUNCATE)", &blocked, &pages, &moved); fault != nil {
			return
		}
		waiting = time.Since(start) // for the reader
		fault = d.conn.QueryText(t.Context(), "PRAGMA busy_timeout", func(v []driver.Value) error {
			timeout = Int(v[0])
			return nil
		})
	})
	require.NoError(t, fault)
	require.Positive(t, again, "not again at once")
	require.EqualValues(t, busyTimeout, timeout, "of everything else")
	require.Less(t, fastest, waiting)
	_, err := reader.Exec(endRead)
	require.NoError(t, err)
	require.NoError(t, reader.close())
	inWriter(t, d, d.truncateLog)
	require.Positive(t, sizeOf(t, o.Path+file.WAL))
	inWriter(t, d, func() {
		d.truncateAgain = 0
		d.truncateLog()
	})
	require.Zero(t, sizeOf(t, o.Path+file.WAL))
}

func TestVacuum_GivesFreePagesBack(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	for range 10 {
		require.NoError(t, d.Submit(t.Context(), insertCall(100, 10_000)))
	}
	require.False(t, d.Vacuum(t.Context()), "nothing is free")
	require.NoError(t, d.Submit(t.Context(), &testCall{Verb: "delete items", Run: func(tx testTx) error {
		return tx.Exec(deleteItem, int64(990))
	}}))
	var free, left int64
	inWriter(t, d, func() { free, _ = d.freePages() })
	require.Greater(t, free, int64(4*VacuumPages))
	steps := 1
	for d.Vacuum(t.Context()) {
		steps++
	}
	inWriter(t, d, func() { left, _ = d.freePages() })
	require.Less(t, left, int64(2*VacuumPages), "all but what is soon used again")
	require.Greater(t, steps, 1)
}
