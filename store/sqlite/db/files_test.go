package db

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

func TestFiles_RemovedOrReplacedWhileInUse(t *testing.T) {
	for _, suffix := range Suffixes {
		for _, c := range []struct {
			name, says string
			do         func(t *testing.T, path string)
		}{
			{"removed", "was removed", func(*testing.T, string) {}},
			{"replaced", "was replaced", func(t *testing.T, path string) {
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			}},
		} {
			t.Run("db"+suffix+" "+c.name, func(t *testing.T) {
				o := options(t)
				log := captureLog(&o)
				d := openDatabase(t, o)
				add(t, d, 3)
				path := o.Path + suffix
				require.NoError(t, os.Rename(path, path+".aside"))
				c.do(t, path)

				for range 2 {
					err := d.Submit(t.Context(), insertCall(3, 100))
					require.ErrorIs(t, err, store.ErrUnavailable)
					require.ErrorContains(t, err, "the database file jobs.db"+suffix+" "+c.says)
				}
				require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), log)
				_, err := items(t.Context(), d)
				require.ErrorIs(t, err, store.ErrUnavailable, "no new connection is opened")
				require.NoError(t, d.Submit(t.Context(), updateCall()), "what promises nothing goes on")

				require.NoError(t, os.Rename(path+".aside", path))
				add(t, d, 3)
				requireItems(t, d, 6) // what was refused is not there
				require.Contains(t, log.String(), "the files of the database are back")
			})
		}
	}
}

func TestFiles_RemovedDuringACommit(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	err := d.Submit(t.Context(), &testCall{Verb: "test", Durable: true, Run: func(testTx) error {
		return os.Rename(o.Path, o.Path+".aside")
	}})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NoError(t, os.Rename(o.Path+".aside", o.Path))
}

func TestFiles_BrokenConnectionIsNotReplacedByOneToAnotherFile(t *testing.T) {
	o := options(t)
	d := openDatabase(t, o)
	add(t, d, 1)
	require.NoError(t, os.Rename(o.Path, o.Path+".aside"))
	inWriter(t, d, func() { d.broken = true })
	require.ErrorIs(t, d.Submit(t.Context(), updateCall()), store.ErrUnavailable)
	require.NoFileExists(t, o.Path)
	require.NoError(t, os.Rename(o.Path+".aside", o.Path))
	require.NoError(t, d.Submit(t.Context(), updateCall()))
	add(t, d, 1)
	require.NoError(t, os.Rename(o.Path+WAL, o.Path+"-wal.aside"))
	require.Error(t, d.Submit(t.Context(), insertCall(1, 1)), "the files of the new connection are watched")
	require.NoError(t, os.Rename(o.Path+"-wal.aside", o.Path+WAL))
}
