package db

import (
	"database/sql/driver"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// openWithSmallLog opens a database whose log is large from 8 MiB on.
func openWithSmallLog(t *testing.T, o Options) *database {
	t.Helper()
	d, err := openUnstarted(t.Context(), o)
	require.NoError(t, err)
	d.truncateAbove, d.largeLog = 4<<20, 8<<20
	d.Start()
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// writeMuch writes more than the log may have.
func writeMuch(t *testing.T, d *database) {
	t.Helper()
	for range 12 {
		require.NoError(t, d.Submit(t.Context(), insertCall(100, 10_000)))
	}
}

func TestCheckpoint_KeepsTheLogSmallUnderLoad(t *testing.T) {
	o := options(t)
	d := openWithSmallLog(t, o)
	var largest int64
	for range 60 {
		require.NoError(t, d.Submit(t.Context(), insertCall(100, 10_000)))
		largest = max(largest, sizeOf(t, o.Path+WAL))
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
	var timeout int64
	var fault error
	busy := 0
	inWriter(t, d, func() {
		for range 3 {
			start := time.Now()
			if d.truncateLog() {
				busy++
			}
			fastest = min(fastest, time.Since(start))
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
	require.Equal(t, 3, busy)
	require.EqualValues(t, busyTimeout, timeout, "of everything else")
	require.Less(t, fastest, waiting)
	require.NoError(t, reader.close())
	inWriter(t, d, func() { d.truncateLog() })
	require.Zero(t, sizeOf(t, o.Path+WAL))
}

func TestCheckpoint_NamesAReaderThatKeepsTheLogAndShrinksItAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t)
		log := captureLog(&o)
		d := openWithSmallLog(t, o)
		reader := openReader(t, o.Path)
		writeMuch(t, d)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Greater(t, d.LogBytes(), d.largeLog)
		require.Equal(t, 1, strings.Count(log.String(), "a reader keeps the log of the database"), log)
		require.NoError(t, reader.close())
		time.Sleep(truncatePause) // nothing more is written
		synctest.Wait()
		require.Zero(t, d.LogBytes())
		require.Contains(t, log.String(), "the log of the database has shrunk again")
	})
}

func TestStart_ShrinksTheLogOfTheLastProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t)
		first := openDatabase(t, o) // it does not mind the size
		shell := openReader(t, o.Path)
		writeMuch(t, first)
		require.NoError(t, first.Close())
		_, err := shell.Exec(endRead)
		require.NoError(t, err)
		require.Greater(t, sizeOf(t, o.Path+WAL), int64(8<<20), "the shell has the file open")
		d := openWithSmallLog(t, o)
		synctest.Wait()
		require.Zero(t, d.LogBytes())
		require.NoError(t, shell.close())
	})
}
