package outbox_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/outbox"
)

// The statements for refused jobs do what the page says.
func TestDocs_StatementsForRefusedJobs(t *testing.T) {
	page, err := os.ReadFile("../../docs/outbox.md")
	require.NoError(t, err)
	statements := regexp.MustCompile(`(?m)^    ((?:SELECT|UPDATE|DELETE) .*);$`).FindAllSubmatch(page, -1)
	require.Len(t, statements, 3)
	db, srv := openSQLite(t), newServer()
	srv.problems["bad-4711"] = &client.Problem{Status: 422, Code: "invalid_field"}
	srv.problems["close-9"] = &client.Problem{Status: 429, Code: "quota"}
	add(t, db, outbox.SQLite, client.Job{ID: "bad-4711"}, client.Job{ID: "close-9"})
	_, stop := runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
	require.Eventually(t, func() bool {
		left := entries(t, db)
		return left[0].tries == 1 && left[1].problem != ""
	}, 5*time.Minute, time.Millisecond)
	stop()
	rows, err := db.QueryContext(t.Context(), string(statements[0][1]))
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	tries := make(map[string]int)
	for rows.Next() {
		var id, problem string
		var n int
		require.NoError(t, rows.Scan(&id, &n, &problem))
		require.NotEmpty(t, problem)
		tries[id] = n
	}
	require.NoError(t, rows.Err())
	require.Equal(t, map[string]int{"bad-4711": 1, "close-9": 0}, tries)
	require.Positive(t, entries(t, db)[0].next)
	_, err = db.ExecContext(t.Context(), string(statements[1][1]))
	require.NoError(t, err)
	require.Zero(t, entries(t, db)[0].next)
	_, err = db.ExecContext(t.Context(), string(statements[2][1]))
	require.NoError(t, err)
	require.Len(t, entries(t, db), 1)
}
