package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOpen_TakesOtherUsersRightsFromItsFiles(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	insert(t, s, newJob("a", time.Hour))
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
	log := captureLog(&copied)
	openStore(t, copied)
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(copied.Path + suffix)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), suffix)
	}
	require.Equal(t, 3, strings.Count(log.String(), "the database could be read by other users"), log)
}
