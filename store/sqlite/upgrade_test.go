package sqlite

import (
	"database/sql/driver"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// firstSchema makes a database as the first program did, with what more says; its statements are in statements-first.sql.
func firstSchema(t *testing.T, path, more string) {
	t.Helper()
	sql, err := os.ReadFile("testdata/schema-first.sql")
	require.NoError(t, err)
	shell(t, path, "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL")
	shell(t, path, "BEGIN; "+string(sql)+more+"; PRAGMA user_version=1; COMMIT")
}

// firstJobs are jobs in every state, as the first program left them when it died.
const firstJobs = `
INSERT INTO topics (t, namespace, name, policy, revision, registered, delivered, dead, cancelled, kept_done, kept_done_bytes,
  kept_dead, kept_dead_bytes, ids)
VALUES (1, 'default', 'orders', '{"lane_concurrency":7}', 3, 8, 2, 1, 1, 2, 4, 1, 2, 1);
UPDATE meta SET value = 3 WHERE key = 'revision';
INSERT INTO queues VALUES (1, 'default', 'orders', 'shop.example:443', 2, 2, 7), (2, 'default', 'orders', 'idle', 0, 0, 0);
INSERT INTO jobs (n, q, t, state, due, finished, reason, version, round, made, tries, lost, cancel, claimed, entries, created,
  since, expires, namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, body)
VALUES
 (1, 1, 1, 'scheduled', 4102444800000, NULL, NULL, 1, 0, 0, 0, 0, 0, NULL, 0, 1, 1, 0, 'default', 'waits', NULL, 'u1', 'POST',
  '{"X-A":["b"]}', 'text/plain', 2, 5, '{"k":"v"}', '["15s"]', 3, '2s', CAST('hello' AS BLOB)),
 (2, 1, 1, 'scheduled', 2, NULL, NULL, 1, 0, 1, 1, 0, 0, NULL, 1, 1, 1, 0, 'default', 'due', NULL, 'u2', 'POST',
  NULL, NULL, 0, 3000, NULL, NULL, NULL, NULL, NULL),
 (3, 1, 1, 'running', 1, NULL, NULL, 1, 0, 0, 0, 0, 0, 5, 0, 1, 1, 0, 'default', 'held', NULL, 'u3', 'POST',
  NULL, NULL, 0, -1, NULL, NULL, NULL, NULL, NULL),
 (4, 1, 1, 'running', 1, NULL, NULL, 2, 0, 0, 0, 0, 1, 5, 1, 1, 1, 0, 'default', 'marked', NULL, 'u4', 'POST',
  NULL, NULL, 0, -1, NULL, NULL, NULL, NULL, NULL),
 (5, 1, 1, 'delivered', 1, 4102444800000, NULL, 1, 0, 1, 0, 0, 0, 5, 1, 1, 1, 0, 'default', 'done', x'01', 'u5', 'POST',
  NULL, NULL, 0, -1, NULL, NULL, NULL, NULL, NULL),
 (6, 1, 1, 'dead', 1, 4102444800000, 'gave_up', 1, 0, 1, 1, 0, 0, 5, 1, 1, 1, 0, 'default', 'dead', NULL, 'u6', 'POST',
  NULL, NULL, 0, -1, NULL, NULL, NULL, NULL, NULL),
 (7, 1, 1, 'cancelled', 1, 4102444800000, 'cancelled', 2, 0, 0, 0, 0, 0, NULL, 1, 1, 1, 0, 'default', 'cancelled', NULL, 'u7',
  'POST', NULL, NULL, 0, -1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO bodies VALUES (2, zeroblob(3000));
INSERT INTO attempts VALUES (2, 0, 0, '{"n":1,"k":"attempt","t":"2026-03-01T12:00:00Z","s":503}'),
 (4, 0, 0, '{"n":0,"k":"cancelled","t":"2026-03-01T12:00:00Z"}'), (5, 0, 0, '{"n":1,"k":"attempt","t":"2026-03-01T12:00:00Z","s":200}'),
 (6, 0, 0, '{"n":1,"k":"attempt","t":"2026-03-01T12:00:00Z","s":410}'), (7, 0, 0, '{"n":0,"k":"cancelled","t":"2026-03-01T12:00:00Z"}');
INSERT INTO ids VALUES ('default', 'gone', 1, x'02', 'delivered', 4102444800000, NULL);
INSERT INTO outbox (namespace, id, entry) VALUES ('default', 'born', '{"namespace":"default","id":"born","topic":"orders","lane":"l"}');
`

func TestADatabaseOfTheFirstSchemaServesInEveryState(t *testing.T) {
	o := options(t)
	firstSchema(t, o.Path, firstJobs)
	s := opened(t, o)
	verify(t, s)
	records := map[string]int{"waits": 0, "due": 1, "held": 1, "marked": 2, "done": 1, "dead": 1, "cancelled": 1}
	for id, want := range map[string]job.Progress{
		"waits":     {State: job.Scheduled, Version: 1},
		"due":       {State: job.Ready, Version: 1, Attempts: 1, FailedAttempts: 1},
		"held":      {State: job.Ready, Version: 1, Attempts: 1, ConsecutiveLost: 1},
		"marked":    {State: job.Cancelled, Version: 2, Attempts: 1, ConsecutiveLost: 1, Reason: job.ReasonCancelled},
		"done":      {State: job.Delivered, Version: 1, Attempts: 1},
		"dead":      {State: job.Dead, Version: 1, Attempts: 1, FailedAttempts: 1, Reason: policy.ReasonGaveUp},
		"cancelled": {State: job.Cancelled, Version: 2, Reason: job.ReasonCancelled},
	} {
		got := get(t, s, id)
		require.Nil(t, got.OnDelivered, id)
		require.Nil(t, got.OnDead, id)
		require.Len(t, got.History, records[id], id)
		p := got.Progress
		p.CreatedAt, p.DueAt, p.FirstDueAt, p.ExpiresAt, p.FinishedAt = want.CreatedAt, want.DueAt, want.FirstDueAt, want.ExpiresAt, want.FinishedAt
		require.Equal(t, want, p, id)
	}
	waits := get(t, s, "waits")
	require.Equal(t, []byte("hello"), waits.Body)
	require.Equal(t, 2*time.Second, waits.Timeout)
	require.Len(t, get(t, s, "due").Body, 3000)
	known, err := s.Known(t.Context(), 0, []job.Ref{ref("gone"), ref("waits"), ref("nobody")})
	require.NoError(t, err)
	require.Equal(t, []bool{true, true, false}, known)
	require.Len(t, carry(t, s).Outbox, 1)

	// What the first program did not know of.
	told := entry("told", 0)
	told.OnDead = &policy.Callback{URL: "https://owner.example/dead", Retries: new(2)}
	insert(t, s, told)
	require.Equal(t, told.OnDead, get(t, s, "told").OnDead)
	jobs := claimUp(t, s, 9)
	require.Len(t, jobs, 3)
	for _, h := range jobs {
		settle(t, s, turned(h, store.LaneChange{Cooldown: time.Hour, Breaker: store.OpenBreaker}))
	}
	require.Equal(t, 200, get(t, s, "held").Status)
	_, err = s.PutLane(t.Context(), 0, store.NewToken(), store.Lane{Queue: lane, Settings: policy.Lane{Paused: true}})
	require.NoError(t, err)
	revive(t, s, "dead", time.Hour)
	errs, err := s.Purge(t.Context(), 0, store.NewToken(), []job.Ref{ref("dead"), ref("nobody")})
	require.NoError(t, err)
	require.ErrorContains(t, errs[0], "scheduled")
	require.ErrorIs(t, errs[1], store.ErrNotFound)
	require.NoError(t, s.Close())
	s = opened(t, o)
	require.True(t, laneStats(t, s).BreakerOpen)
	lanes, err := s.ListLanes(t.Context(), 0, lane.Namespace, lane.Topic, "", 10)
	require.NoError(t, err)
	require.Len(t, lanes, 1)
}

// manyEnded are 6,000 delivered jobs.
const manyEnded = `
INSERT INTO topics (t, namespace, name, registered, kept_done, delivered) VALUES (1, 'default', 'orders', 6000, 6000, 6000);
INSERT INTO queues VALUES (1, 'default', 'orders', 'l', 0, 0, 6000);
INSERT INTO jobs (n, q, t, state, due, finished, version, round, made, tries, lost, cancel, entries, created, since, expires,
  namespace, id, url, method, body_kind, body_size)
 WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 6000)
 SELECT n, 1, 1, 'delivered', 1, 4102444800000, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 'default', 'job-' || n, '', 'POST', 0, -1 FROM many`

func TestAnUpgradeRewritesNoJobs(t *testing.T) {
	o := options(t)
	firstSchema(t, o.Path, manyEnded)
	c, err := connect(o.Path, false)
	require.NoError(t, err)
	var pages int64
	require.NoError(t, c.queryText(t.Context(), "PRAGMA page_count", func(v []driver.Value) error {
		pages = integer(v[0])
		return nil
	}))
	require.Greater(t, pages, int64(150))
	c.written()
	require.NoError(t, prepare(c, o.Path))
	require.Less(t, c.written(), 40, "of %d pages", pages)
	require.NoError(t, prepare(c, o.Path), "once is enough")
	require.Zero(t, c.written())
	require.NoError(t, c.close())
	require.Equal(t, 1, get(t, opened(t, o), "job-777").Attempts)
}

func TestTheFirstProgramsStatementsWorkOnWhatThisOneMakes(t *testing.T) {
	raw, err := os.ReadFile("testdata/statements-first.sql")
	require.NoError(t, err)
	made, grown := options(t).Path, options(t).Path
	require.NoError(t, opened(t, Options{Path: made, Defaults: options(t).Defaults}).Close())
	firstSchema(t, grown, firstJobs)
	require.NoError(t, opened(t, Options{Path: grown, Defaults: options(t).Defaults}).Close())
	for _, path := range []string{made, grown} {
		c, err := connect(path, false)
		require.NoError(t, err)
		for text := range strings.Lines(string(raw)) {
			text = strings.TrimSpace(text)
			if text == "BEGIN" || text == "BEGIN IMMEDIATE" || text == "COMMIT" || text == "ROLLBACK" {
				continue
			}
			stmt, err := c.raw.Prepare(text)
			require.NoError(t, err, text)
			require.NoError(t, stmt.Close())
		}
		// It registers a job, and moves one whose callbacks it does not know.
		require.NoError(t, c.execText(`
INSERT INTO topics (t, namespace, name) VALUES (9, 'default', 'other');
INSERT INTO queues (q, namespace, topic, lane) VALUES (9, 'default', 'other', 'l');
UPDATE queues SET waiting = 1, running = 0, rows = 1 WHERE q = 9;
UPDATE topics SET registered = 1 WHERE t = 9;
INSERT INTO jobs (n, q, t, state, due, version, round, made, tries, lost, cancel, entries, created, since, expires,
 namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin, body)
 VALUES (99, 9, 9, 'scheduled', 5, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 'default', 'older', NULL, 'u', 'POST', NULL, NULL, 0, -1, NULL,
 NULL, NULL, NULL, NULL, NULL, NULL);
UPDATE jobs SET state = 'scheduled', due = 6, made = 1, tries = 1, lost = 0, entries = 0 WHERE n = 99`))
		require.NoError(t, c.close())
		s := opened(t, Options{Path: path, Defaults: options(t).Defaults})
		require.Equal(t, 1, get(t, s, "older").FailedAttempts)
	}
}

func TestAnUpgradeThatFailsLeavesTheDatabaseAsItWas(t *testing.T) {
	o := options(t)
	firstSchema(t, o.Path, firstJobs+"CREATE INDEX queues_gated ON queues (lane)") // somebody has the name already
	_, err := Open(t.Context(), o)
	require.ErrorContains(t, err, "index queues_gated already exists")
	shell(t, o.Path, "DROP INDEX queues_gated")
	require.Equal(t, job.Scheduled, get(t, opened(t, o), "waits").State)
}

func TestAPageLooksAtSoManyJobsWhateverItsFilterLetsThrough(t *testing.T) {
	o := options(t)
	firstSchema(t, o.Path, manyEnded)
	shell(t, o.Path, "UPDATE jobs SET reason = 'gave_up' WHERE n = 5500")
	s := opened(t, o)
	for name, filter := range map[string]store.Filter{"reason": {Reason: policy.ReasonGaveUp}, "status": {Status: 503}} {
		filter.Namespace, filter.Topic, filter.State, filter.Limit = lane.Namespace, lane.Topic, job.Delivered, 10
		pages, found := 0, 0
		for more := true; more; pages++ {
			page, err := s.List(t.Context(), 0, filter)
			require.NoError(t, err)
			found += len(page.Jobs)
			filter.Cursor, more = page.Cursor, page.Cursor != ""
		}
		require.GreaterOrEqual(t, pages, 2, name)
		require.Equal(t, int(number(filter.Reason != "")), found, name)
	}
}
