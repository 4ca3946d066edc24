package db

import (
	"context"
	"database/sql/driver"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/store"
)

func TestRead_EndsWhenNoConnectionIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDatabase(t, options(t))
		var taken []*Conn
		for range readerCount {
			taken = append(taken, <-d.readers)
		}
		start := time.Now()
		_, err := items(t.Context(), d)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.Equal(t, readLimit, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = items(ctx, d)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, store.ErrUnavailable)
		for _, c := range taken {
			d.readers <- c
		}
		require.NoError(t, d.Close())
	})
}

func TestHealth_LogsAFaultOfReadsOnceAMinuteAndIsNotHealthy(t *testing.T) {
	o := options(t)
	log := captureLog(&o)
	c := &clock{}
	o.Now = c.ns.Load
	d := openDatabase(t, o)
	fault := NewError(codeError(lib.SQLITE_IOERR_READ))
	read := func() {
		err := d.Read(t.Context(), "read items", func(context.Context, *Conn) error { return fault })
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, reason(fault))
	}
	read()
	read()
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), log)
	require.ErrorContains(t, d.Health(), "the disk under the database fails")
	c.pass(time.Minute)
	require.NoError(t, d.Health())
	read()
	require.Equal(t, 2, strings.Count(log.String(), "level=ERROR"), log)
}

func TestHealth_AfterDamageNothingIsUsable(t *testing.T) {
	o := options(t)
	log := captureLog(&o)
	c := &clock{}
	o.Now = c.ns.Load
	d := openDatabase(t, o)
	release := blockWriter(t, d)
	waits := make(chan error)
	go func() { waits <- d.Submit(t.Context(), insertCall(1, 100)) }()
	waitForCalls(t, d, 1)
	fault := NewError(codeError(lib.SQLITE_CORRUPT))
	err := d.Read(t.Context(), "read items", func(context.Context, *Conn) error { return fault })
	require.ErrorIs(t, err, store.ErrUnavailable)
	release()
	require.ErrorContains(t, <-waits, "the database file is damaged", "found while it waited")
	c.pass(time.Hour)
	_, err = items(t.Context(), d)
	require.ErrorContains(t, err, "count items: the database file is damaged", "until it is opened again")
	require.ErrorIs(t, d.Submit(t.Context(), insertCall(1, 100)), store.ErrUnavailable)
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log)
}

func TestRead_PanicLosesNoConnection(t *testing.T) {
	d := openDatabase(t, options(t))
	for range 2 * readerCount {
		require.Panics(t, func() {
			_ = d.Read(t.Context(), "read items", func(context.Context, *Conn) error { panic("a fault of the caller") })
		})
		requireItems(t, d, 0)
	}
	require.Len(t, d.readers, readerCount)
}

func TestRead_PanicInARowEndsTheSnapshot(t *testing.T) {
	d := openDatabase(t, options(t))
	add(t, d, 2)
	for range readerCount { // the pool hands them out in turn
		require.Panics(t, func() {
			_ = d.Read(t.Context(), "read items", func(ctx context.Context, c *Conn) error {
				return c.QueryText(ctx, "SELECT n FROM items",
					func([]driver.Value) error { panic("a fault of the caller") })
			})
		})
	}
	var busy bool
	var err error
	inWriter(t, d, func() { busy, err = d.truncate() })
	require.NoError(t, err)
	require.False(t, busy, "no reader needs the log any more")
	add(t, d, 1)
	requireItems(t, d, 3)
}
