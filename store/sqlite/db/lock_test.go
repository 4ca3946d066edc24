package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// acquire resolves a path and locks it, as opening a database does.
func acquire(path string) (*fileLock, error) {
	path, err := Resolve(path)
	if err != nil {
		return nil, err
	}
	return acquireLock(context.Background(), path, false, slog.New(slog.DiscardHandler))
}

// lockedPath returns the path of a database that is locked until the test ends.
func lockedPath(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	lock, err := acquire(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lock.Unlock()) })
	return path
}

func TestAcquire_RefusesADatabaseInUseUnderAnotherName(t *testing.T) {
	path := lockedPath(t)
	folder := t.TempDir()
	links := map[string]func(string) error{
		"a symbolic link to the file":           func(link string) error { return os.Symlink(path, link) },
		"a symbolic link to a symbolic link":    func(link string) error { return chain(path, link) },
		"a hard link":                           func(link string) error { return os.Link(path, link) },
		"a hard link with the name of the file": func(link string) error { return os.Link(path, link) },
	}
	for name, link := range links {
		t.Run(name, func(t *testing.T) {
			second := filepath.Join(folder, strings.ReplaceAll(name, " ", "-"))
			require.NoError(t, link(second))
			_, err := acquire(second)
			if strings.Contains(name, "hard") {
				require.ErrorContains(t, err, "has 2 names (hard links)")
			} else {
				require.ErrorContains(t, err, "another process uses the database "+path)
			}
			require.NoError(t, os.Remove(second))
		})
	}
	linked := filepath.Join(folder, "folder")
	require.NoError(t, os.Symlink(filepath.Dir(path), linked))
	_, err := acquire(filepath.Join(linked, filepath.Base(path)))
	require.ErrorContains(t, err, "another process uses the database "+path)
}

// chain makes a relative link to a link.
func chain(path, link string) error {
	middle := link + "-middle"
	if err := os.Symlink(path, middle); err != nil {
		return err
	}
	return os.Symlink(filepath.Base(middle), link)
}

func TestAcquire_LocksTheFileWhateverItsPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux has a lock for this")
		return
	}
	// As if it were reached by a bind mount: in another folder, with another lock file.
	_, ok, err := lockInode(lockedPath(t))
	require.NoError(t, err)
	require.False(t, ok)
}

func TestAcquire_FollowsLinksToFilesThatAreMissing(t *testing.T) {
	link := filepath.Join(t.TempDir(), "jobs.db")
	target := filepath.Join(t.TempDir(), "real.db")
	require.NoError(t, os.Symlink(target, link))
	lock, err := acquire(link)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lock.Unlock()) })
	require.FileExists(t, target+lockSuffix)
	require.NoFileExists(t, link+lockSuffix)

	require.NoError(t, os.Symlink("round", filepath.Join(filepath.Dir(target), "round")))
	_, err = acquire(filepath.Join(filepath.Dir(target), "round"))
	require.ErrorContains(t, err, "too many symbolic links")
}

func TestAcquire_EndsItsWaitWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	lock, err := acquire(path)
	require.NoError(t, err)
	require.NoError(t, lock.Unlock())
	require.NoError(t, withoutOwner(path, func() error {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("SIGTERM")
		time.AfterFunc(2*sharePause, func() { cancel(cause) })
		_, err := acquireLock(ctx, path, false, slog.New(slog.DiscardHandler))
		require.ErrorIs(t, err, cause)
		return nil
	}))
	lock, err = acquire(path)
	require.NoError(t, err)
	require.NoError(t, lock.Unlock())
}

func TestAcquire_WaitsForThoseThatOnlyLook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	lock, err := acquire(path)
	require.NoError(t, err)
	require.NoError(t, withoutOwner(path, func() error { return errors.New("somebody has the lock") }))
	require.NoError(t, lock.Unlock())

	acquired := make(chan error, 1)
	require.NoError(t, withoutOwner(path, func() error {
		go func() {
			lock, err := acquire(path)
			if err == nil {
				err = lock.Unlock()
			}
			acquired <- err
		}()
		select {
		case err := <-acquired:
			return fmt.Errorf("it did not wait: %w", err)
		case <-time.After(3 * sharePause):
		}
		return withoutOwner(path, func() error { return nil }) // another one can look as well
	}))
	require.NoError(t, <-acquired)
}
