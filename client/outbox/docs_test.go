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
	add(t, db, outbox.SQLite, client.Job{ID: "bad-4711"})
	_, stop := runRelay(t, db, outbox.SQLite, srv.client(t), outbox.Options{})
	require.Eventually(t, func() bool { return entries(t, db)[0].tries == 1 }, 30*time.Second, time.Millisecond)
	stop()
	var id, problem string
	var tries int
	require.NoError(t, db.QueryRowContext(t.Context(), string(statements[0][1])).Scan(&id, &tries, &problem))
	require.Equal(t, "bad-4711", id)
	require.Positive(t, entries(t, db)[0].next)
	_, err = db.ExecContext(t.Context(), string(statements[1][1]))
	require.NoError(t, err)
	require.Zero(t, entries(t, db)[0].next)
	_, err = db.ExecContext(t.Context(), string(statements[2][1]))
	require.NoError(t, err)
	require.Empty(t, entries(t, db))
}
