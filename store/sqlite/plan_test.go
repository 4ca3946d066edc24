package sqlite

import (
	"database/sql/driver"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store/sqlite/db"
)

// planOf returns how SQLite would run a statement, a line a step.
func planOf(t *testing.T, s *Store, id db.Statement) string {
	t.Helper()
	var steps []string
	sql := regexp.MustCompile(`\?\d*`).ReplaceAllString(id.Text(), "1")
	inWriter(t, s, func() {
		require.NoError(t, s.db.Conn().QueryText(t.Context(), "EXPLAIN QUERY PLAN "+sql, func(v []driver.Value) error {
			steps = append(steps, v[3].(string))
			return nil
		}), sql)
	})
	return strings.Join(steps, "\n")
}

func TestStatements_SeekWithinJobsOfOneMillisecond(t *testing.T) {
	s := opened(t, options(t))
	for id, says := range map[db.Statement]string{
		claimable:    "jobs_open (q=? AND state=? AND due>?)",
		waitingAt:    "jobs_open (q=? AND state=? AND due=? AND rowid>?)",
		waitingAfter: "jobs_open (q=? AND state=? AND due>? AND due<?)",
		openAt:       "jobs_open (q=? AND state=? AND due=? AND rowid>?)",
		openAfter:    "jobs_open (q=? AND state=? AND due>? AND due<?)",
		endedAt:      "jobs_ended (t=? AND state=? AND finished=? AND rowid>?)",
		endedAfter:   "jobs_ended (t=? AND state=? AND finished>? AND finished<?)",
		countLanes:   "queues_pending (namespace=? AND topic=? AND lane>?)",
		listQueues:   "queues_pending (namespace=? AND topic=? AND lane>?)",
		topicQueues:  "queues_pending (namespace=? AND topic=?)",
	} {
		require.Contains(t, planOf(t, s, id), says, id.Text())
	}
}

func TestStatements_ScanNoTableOnceTheStoreIsOpen(t *testing.T) {
	s := opened(t, options(t))
	// A row for up to batchJobs attempts that are under way; Open reads it, and so do lists of open jobs and Get.
	small := []db.Statement{readLeases, isLeased}
	opening := []db.Statement{allTopics, pendingQueues, throttledQueues, anyLane, unusedQueues, countOutbox, lastNumbers}
	for _, id := range db.Statements() {
		control := strings.HasPrefix(id.Text(), "BEGIN") || slices.Contains([]string{commitSQL, "ROLLBACK", "END"}, id.Text())
		if control || slices.Contains(opening, id) || slices.Contains(small, id) {
			continue
		}
		plan := planOf(t, s, id)
		for step := range strings.SplitSeq(plan, "\n") {
			require.False(t, strings.HasPrefix(step, "SCAN") && step != "SCAN CONSTANT ROW", "%s\n%s", id.Text(), plan)
		}
		if id != readAttempts { // of which there are few
			require.NotContains(t, plan, "TEMP B-TREE", id.Text())
		}
	}
}
