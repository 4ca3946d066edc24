package outbox_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/outbox"
)

func TestAdd_RefusesJobsThatCannotBeRegistered(t *testing.T) {
	db := openSQLite(t)
	for want, j := range map[string]client.Job{
		"ID \"a b\" must be":             {ID: "a b"},
		"not beginning with rb:":         {ID: "rb:1"},
		"must be 1 to 64":                {ID: strings.Repeat("x", 65)},
		"combined with RunAt":            {Delay: 1, RunAt: time.Now()},
		"combined with ExpiresAt":        {ExpiresIn: 1, ExpiresAt: time.Now()},
		"must not be negative":           {Delay: -1},
		"body: is not JSON":              {Body: json.RawMessage("{")},
		"must be UTF-8":                  {Body: json.RawMessage("\"\xff\"")},
		"at most 15728640 B":             {Body: make([]byte, 12<<20)},
		"body: json: unsupported type":   {Body: make(chan int)},
		"body: is larger than 10485760 ": {Body: strings.NewReader(strings.Repeat("x", 10<<20+1))},
	} {
		err := outbox.SQLite.Add(t.Context(), db, client.Job{ID: "good"}, j)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "outbox: job 1: ")
	}
	require.Empty(t, entries(t, db))
}

func TestAdd_GivesIDs(t *testing.T) {
	db := openSQLite(t)
	job := client.Job{Body: 1}
	require.NoError(t, outbox.SQLite.Add(t.Context(), db, job, job, client.Job{ID: "mine"}))
	all := entries(t, db)
	require.Len(t, all, 3)
	require.Len(t, all[0].id, 26)
	require.NotEqual(t, all[0].id, all[1].id)
	require.Equal(t, "mine", all[2].id)
	require.Empty(t, job.ID)
}

func TestAdd_WritesWithAConnection(t *testing.T) {
	db := openSQLite(t)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, outbox.SQLite.Add(t.Context(), conn, client.Job{ID: "a"}))
	require.NoError(t, conn.Close())
	require.NoError(t, outbox.SQLite.Add(t.Context(), db))
	require.Len(t, entries(t, db), 1)
}

func TestDialect_HasTheSchemaOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/outbox.md")
	require.NoError(t, err)
	for _, d := range []outbox.Dialect{outbox.PostgreSQL, outbox.MySQL, outbox.SQLite} {
		for line := range strings.Lines(strings.ReplaceAll(d.Schema(), "\t", "    ")) {
			require.Contains(t, string(page), "    "+line)
		}
	}
}

func TestDialect_PanicsIfUnknown(t *testing.T) {
	require.PanicsWithValue(t, "outbox: unknown dialect 0: use outbox.PostgreSQL, outbox.MySQL or outbox.SQLite",
		func() { outbox.NewRelay(nil, 0, nil, outbox.Options{}) })
}
