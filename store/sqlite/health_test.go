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

// failSync makes each commit with fsync fail until heal is called.
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
	log := captureLog(&o)
	s := openStore(t, o)
	insert(t, s, newJobs("job", 2, 0)...)
	jobs := claimJobs(t, s, 2)
	heal := failSync(t, s)
	_, err := s.Insert(t.Context(), store.NewToken(), newJobs("more", 1, 0))
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorIs(t, s.Ping(t.Context()), store.ErrUnavailable)
	require.ErrorContains(t, s.Ping(t.Context()), "the disk under the database fails")
	settle(t, s, settlementOf(jobs[0], policy.Verdict{Kind: policy.Delivered})) // without fsync
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), log)
	heal()
	require.NoError(t, s.Ping(t.Context()))
}
