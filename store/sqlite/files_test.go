package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestFiles_RemovedOrReplacedWhileInUse(t *testing.T) {
	for _, suffix := range suffixes {
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

func TestOpen_RefusesADatabaseInUseUnderAnotherName(t *testing.T) {
	o := options(t)
	insert(t, opened(t, o), entry("a", 0))
	folder := t.TempDir()
	links := map[string]func(string) error{
		"a symbolic link to the file":           func(path string) error { return os.Symlink(o.Path, path) },
		"a symbolic link to a symbolic link":    func(path string) error { return chain(o.Path, path) },
		"a hard link":                           func(path string) error { return os.Link(o.Path, path) },
		"a hard link with the name of the file": func(path string) error { return os.Link(o.Path, path) },
	}
	for name, link := range links {
		t.Run(name, func(t *testing.T) {
			second := o
			second.Path = filepath.Join(folder, strings.ReplaceAll(name, " ", "-"))
			require.NoError(t, link(second.Path))
			_, err := Open(t.Context(), second)
			if strings.Contains(name, "hard") {
				require.ErrorContains(t, err, "has 2 names (hard links)")
			} else {
				require.ErrorContains(t, err, "another process uses the database "+o.Path)
			}
			require.NoFileExists(t, second.Path+"-wal")
			require.NoError(t, os.Remove(second.Path))
		})
	}
	linked := filepath.Join(folder, "folder")
	require.NoError(t, os.Symlink(filepath.Dir(o.Path), linked))
	second := o
	second.Path = filepath.Join(linked, filepath.Base(o.Path))
	_, err := Open(t.Context(), second)
	require.ErrorContains(t, err, "another process uses the database "+o.Path)
}

// chain makes a relative link to a link.
func chain(path, link string) error {
	middle := link + "-middle"
	if err := os.Symlink(path, middle); err != nil {
		return err //nolint:wrapcheck // for a test
	}
	return os.Symlink(filepath.Base(middle), link) //nolint:wrapcheck // for a test
}

func TestOpen_LocksTheFileWhateverItsPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux has a lock for this")
		return
	}
	o := options(t)
	insert(t, opened(t, o), entry("a", 0))
	// As if it were reached by a bind mount: in another folder, with another lock file.
	_, ok, err := lockInode(o.Path)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestOpen_FollowsLinksToFilesThatAreNotThereYet(t *testing.T) {
	o := options(t)
	target := filepath.Join(t.TempDir(), "real.db")
	require.NoError(t, os.Symlink(target, o.Path))
	insert(t, opened(t, o), entry("a", 0))
	require.FileExists(t, target+".lock")
	require.NoFileExists(t, o.Path+".lock")

	require.NoError(t, os.Symlink("round", filepath.Join(filepath.Dir(target), "round")))
	o.Path = filepath.Join(filepath.Dir(target), "round")
	_, err := Open(t.Context(), o)
	require.ErrorContains(t, err, "too many symbolic links")
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
