package sqlite

import (
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// failSync lets every fsync of a commit fail until heal is called: commits without one succeed.
func failSync(t *testing.T, s *Store) (heal func()) {
	t.Helper()
	return hookSQL(s, commitSQL, &hook{do: func(int, []driver.NamedValue) error {
		if faultsOf(s.db.Path()).fsync.Load() {
			return codeError(lib.SQLITE_IOERR_FSYNC)
		}
		return nil
	}})
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
