package sqlite

import (
	"database/sql/driver"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// planning is a connection to an empty store.
func planning(t *testing.T) *conn {
	t.Helper()
	s := opened(t, options(t))
	c, err := connect(s.path, true)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.close()) })
	return c
}

// planOf is how SQLite would run a statement, a line a step.
func planOf(t *testing.T, c *conn, id statement) string {
	t.Helper()
	var steps []string
	text := regexp.MustCompile(`\?\d*`).ReplaceAllString(statementText[id], "1")
	require.NoError(t, c.queryText(t.Context(), "EXPLAIN QUERY PLAN "+text, func(v []driver.Value) error {
		steps = append(steps, v[3].(string))
		return nil
	}), text)
	return strings.Join(steps, "\n")
}

func TestStatements_SeekWithinJobsOfOneMillisecond(t *testing.T) {
	c := planning(t)
	for id, says := range map[statement]string{
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
		require.Contains(t, planOf(t, c, id), says, statementText[id])
	}
}

func TestStatements_ScanNoTableOnceTheStoreIsOpen(t *testing.T) {
	c := planning(t)
	// A row for up to batchJobs attempts that are under way; Open reads it, and so do lists of open jobs and Get.
	small := []statement{readLeases, isLeased}
	opening := []statement{allTopics, pendingQueues, throttledQueues, anyLane, unusedQueues, countOutbox, lastNumbers, begin, commit, rollback, snapshot}
	for id := range statements {
		if slices.Contains(opening, id) || slices.Contains(small, id) {
			continue
		}
		plan := planOf(t, c, id)
		for step := range strings.SplitSeq(plan, "\n") {
			require.False(t, strings.HasPrefix(step, "SCAN") && step != "SCAN CONSTANT ROW", "%s\n%s", statementText[id], plan)
		}
		if id != readAttempts { // of which there are few
			require.NotContains(t, plan, "TEMP B-TREE", statementText[id])
		}
	}
}
