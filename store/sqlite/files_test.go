package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/file"
)

func TestFiles_RemovedOrReplacedWhileInUse(t *testing.T) {
	for _, suffix := range file.Suffixes {
		for _, c := range []struct {
			name, says string
			do         func(t *testing.T, path string)
		}{
			{"removed", "was removed", func(*testing.T, string) {}},
			{"replaced", "was replaced", func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, nil, 0o600)) }},
		} {
			t.Run("db"+suffix+" "+c.name, func(t *testing.T) {
				o := options(t)
				log := logging(&o)
				s := opened(t, o)
				insert(t, s, numbered("job", 3, 0)...)
				path := o.Path + suffix
				require.NoError(t, os.Rename(path, path+".aside"))
				c.do(t, path)

				for range 2 {
					_, err := s.Insert(t.Context(), store.NewToken(), numbered("more", 3, 0))
					require.ErrorIs(t, err, store.ErrUnavailable)
					require.ErrorContains(t, err, "the database file jobs.db"+suffix+" "+c.says)
					require.ErrorIs(t, s.Ping(t.Context()), store.ErrUnavailable, "not ready")
				}
				require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), log)
				_, err := s.Get(t.Context(), ref("job-0000"))
				require.ErrorIs(t, err, store.ErrUnavailable, "no new connection is opened")
				jobs := claimUp(t, s, 3)
				require.Len(t, jobs, 3, "what is there is delivered")
				settle(t, s, settled(jobs[0], policy.Verdict{Kind: policy.Delivered}))

				require.NoError(t, os.Rename(path+".aside", path))
				require.NoError(t, s.Ping(t.Context()))
				require.Equal(t, store.Created, insert(t, s, numbered("more", 3, time.Hour)...)[0].Outcome, "what was refused is not there")
				get(t, s, "job-0000")
				require.Contains(t, log.String(), "the files of the database are back")
			})
		}
	}
}

func TestFiles_RemovedDuringACommit(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	err := s.submit(t.Context(), &op{verb: "test", durable: true, run: func(*tx) error {
		return os.Rename(o.Path, o.Path+".aside")
	}})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NoError(t, os.Rename(o.Path+".aside", o.Path))
}

func TestFiles_BrokenConnectionIsNotReplacedByOneToAnotherFile(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, entry("a", 0))
	require.NoError(t, os.Rename(o.Path, o.Path+".aside"))
	inWriter(t, s, func() { s.broken = true })
	_, err := s.Claim(t.Context(), store.NewToken(), wanting(1))
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NoFileExists(t, o.Path)
	require.NoError(t, os.Rename(o.Path+".aside", o.Path))
	require.Len(t, claimUp(t, s, 1), 1)
	insert(t, s, entry("b", 0))
	require.NoError(t, os.Rename(o.Path+"-wal", o.Path+"-wal.aside"))
	require.Error(t, s.Ping(t.Context()), "the files of the new connection are watched")
	require.NoError(t, os.Rename(o.Path+"-wal.aside", o.Path+"-wal"))
}

func TestOpen_TakesOtherUsersRightsFromItsFiles(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, entry("a", time.Hour))
	copied := o
	copied.Path = filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(o.Path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(copied.Path+suffix, content, 0o600))
	}
	require.NoError(t, os.WriteFile(copied.Path+".lock", nil, 0o600))
	for _, suffix := range []string{"", "-wal", ".lock"} {
		require.NoError(t, os.Chmod(copied.Path+suffix, 0o644))
	}
	log := logging(&copied)
	opened(t, copied)
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(copied.Path + suffix)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), suffix)
	}
	require.Equal(t, 3, strings.Count(log.String(), "the database could be read by other users"), log)
}
