package table

import (
	"database/sql/driver"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store/sqlite/db"
)

// plainTx is a unit of work without changes in memory.
type plainTx struct{ *db.Tx }

func (plainTx) Flush() error { return nil }
func (plainTx) Apply()       {}
func (plainTx) Undo()        {}

// openEmpty returns a connection to a database without rows.
func openEmpty(t *testing.T) *db.Conn {
	t.Helper()
	w, err := db.Open(t.Context(), db.Options{
		Path: filepath.Join(t.TempDir(), "jobs.db"), Schema: Schema, Logger: slog.New(slog.DiscardHandler),
		Now: func() int64 { return 0 },
	}, func(tx *db.Tx) plainTx { return plainTx{tx} })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w.Conn()
}

// explain returns SQLite's plan of a statement, one line per step.
func explain(t *testing.T, c *db.Conn, id db.Statement) string {
	t.Helper()
	var steps []string
	sql := regexp.MustCompile(`\?\d*`).ReplaceAllString(id.Text(), "1")
	require.NoError(t, c.QueryText(t.Context(), "EXPLAIN QUERY PLAN "+sql, func(v []driver.Value) error {
		steps = append(steps, v[3].(string))
		return nil
	}), sql)
	return strings.Join(steps, "\n")
}

func TestStatements_SeekWithinJobsOfOneMillisecond(t *testing.T) {
	c := openEmpty(t)
	for id, says := range map[db.Statement]string{
		FirstWaiting:       "jobs_open (q=? AND state=? AND due>?)",
		Unordered:          "jobs_open (q=? AND state=? AND due>?)",
		TakeTurn:           "jobs_ordered (q=? AND ordered>? AND ordered<?)",
		FirstInTurn:        "jobs_ordered (q=? AND ordered=?)",
		NextTurn:           "jobs_ordered (q=? AND ordered>?)",
		WaitingAt:          "jobs_open (q=? AND state=? AND due=? AND rowid>?)",
		WaitingAfter:       "jobs_open (q=? AND state=? AND due>? AND due<?)",
		UnfinishedAt:       "jobs_open (q=? AND state=? AND due=? AND rowid>?)",
		UnfinishedAfter:    "jobs_open (q=? AND state=? AND due>? AND due<?)",
		UnfinishedAtNewest: "jobs_open (q=? AND state=? AND due=? AND rowid<?)",
		UnfinishedBefore:   "jobs_open (q=? AND state=? AND due>? AND due<?)",
		EndedAt:            "jobs_ended (t=? AND state=? AND finished=? AND rowid>?)",
		EndedAfter:         "jobs_ended (t=? AND state=? AND finished>? AND finished<?)",
		EndedAtNewest:      "jobs_ended (t=? AND state=? AND finished=? AND rowid<?)",
		EndedBefore:        "jobs_ended (t=? AND state=? AND finished>? AND finished<?)",
		FirstEnds:          "jobs_ended (t=? AND state=? AND finished>?)",
		LastEnds:           "jobs_ended (t=? AND state=? AND finished<?)",
		CountLanes:         "queues_pending (namespace=? AND topic=? AND lane>?)",
		UnfinishedTopic:    "queues_pending (namespace=? AND topic>?)",
		UnfinishedLanes:    "queues_pending (namespace=? AND topic=? AND lane>?)",
		TopicQueues:        "queues_pending (namespace=? AND topic=?)",
	} {
		require.Contains(t, explain(t, c, id), says, id.Text())
	}
}

func TestStatements_ScanNoTableOnceTheStoreIsOpen(t *testing.T) {
	c := openEmpty(t)
	// A row for up to batchJobs attempts that are under way; Open reads it, and so do lists of open jobs and Get.
	small := []db.Statement{ReadLeases, IsLeased}
	opening := []db.Statement{
		AllTopics, PendingQueues, ThrottledQueues, UnhealthyQueues, AllMeta, UnusedQueues,
		CountOutbox, LastNumbers, AllReplies,
	}
	for _, id := range db.Statements() {
		control := strings.HasPrefix(id.Text(), "BEGIN") ||
			slices.Contains([]string{"COMMIT", "ROLLBACK", "END"}, id.Text())
		if control || slices.Contains(opening, id) || slices.Contains(small, id) {
			continue
		}
		plan := explain(t, c, id)
		for step := range strings.SplitSeq(plan, "\n") {
			none := step == "SCAN CONSTANT ROW" || strings.Contains(step, "VIRTUAL TABLE") // an argument of json_each
			require.False(t, strings.HasPrefix(step, "SCAN") && !none, "%s\n%s", id.Text(), plan)
		}
		if id != ReadAttempts { // of which there are few
			require.NotContains(t, plan, "TEMP B-TREE", id.Text())
		}
	}
}
