package sqlite

import (
	"database/sql/driver"
	"fmt"
	"strings"
)

// schemaVersion is what PRAGMA user_version of a database says that this code understands.
//
// It stays what it is while tables and columns are only added (see additions): a program names every column that it
// reads or writes, so one that knows less works on the same file, and what it does not know it leaves alone.
const schemaVersion = 1

// schema is made to be read with the sqlite3 shell: names are text, moments Unix milliseconds, durations and ladders
// Go durations, headers, labels and attempts JSON. SQLite 3.37 (2021) reads it: a shell that does not know one word
// of a schema refuses the whole file. The view "overview" joins what one wants to see of a job.
//
//	meta      the revision of all policies, and a row that Ping rewrites
//	topics    policies as put, and the counters: a topic's pending jobs are its queues' waiting and running; grants is
//	          what its rate remembers (state.go)
//	queues    a row a lane; waiting counts those that are held, too, and running is 0 (an older program counted them there);
//	          rows counts every job that refers to it, ended ones too; gate is its hold, its breaker and
//	          what its rate remembers (state.go)
//	lanes     lanes' own settings, as put; a lane that never had a job may have some
//	jobs      what waits, is held, or has ended and is kept; a body above inlineBody lies in bodies, so that moving a job
//	          does not rewrite it. ttl_end is the earlier of its expiry and of since + max_age, where it has one of the two;
//	          max_age is that of its topic when it was registered, in ms. Only an older program writes the state running, and claimed
//	held      a row for jobs that were claimed together and whose attempts are under way: a list of lane (q), job (n) and how
//	          many attempts of it had been made; in jobs they are as they were before (held.go)
//	firsts    the first entry of each record, one after the other as they came; a job's column first is its a. Most jobs have
//	          no other, and those of jobs that were settled together lie side by side
//	attempts  the rest of the record, in the order of seq: an attempt in one of 20 slots, everything else in one of
//	          20 others, so that a new one replaces the oldest of its sort. What an older
//	          program has written begins here with seq 0
//	ids       what must stay known of clients' ids whose job is gone
//	wal_check what tells that a log belongs to the file (wal.go)
//	outbox    jobs born of settlements, until they stand in their own queue
const schema = `
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE topics (
  t               INTEGER PRIMARY KEY,
  namespace       TEXT NOT NULL,
  name            TEXT NOT NULL,
  policy          TEXT,
  revision        INTEGER NOT NULL DEFAULT 0,
  registered      INTEGER NOT NULL DEFAULT 0,
  delivered       INTEGER NOT NULL DEFAULT 0,
  dead            INTEGER NOT NULL DEFAULT 0,
  cancelled       INTEGER NOT NULL DEFAULT 0,
  kept_done       INTEGER NOT NULL DEFAULT 0,
  kept_done_bytes INTEGER NOT NULL DEFAULT 0,
  kept_dead       INTEGER NOT NULL DEFAULT 0,
  kept_dead_bytes INTEGER NOT NULL DEFAULT 0,
  ids             INTEGER NOT NULL DEFAULT 0,
  grants          TEXT,
  alarm           INTEGER,
  UNIQUE (namespace, name)
);

CREATE TABLE queues (
  q         INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  topic     TEXT NOT NULL,
  lane      TEXT NOT NULL,
  waiting   INTEGER NOT NULL DEFAULT 0,
  running   INTEGER NOT NULL DEFAULT 0,
  rows      INTEGER NOT NULL DEFAULT 0,
  gate      TEXT,
  UNIQUE (namespace, topic, lane)
);
CREATE INDEX queues_pending ON queues (namespace, topic, lane) WHERE waiting + running > 0;
CREATE INDEX queues_gated ON queues (q) WHERE gate IS NOT NULL;
` + laneTable + `

CREATE TABLE jobs (
  n            INTEGER PRIMARY KEY,
  q            INTEGER NOT NULL,
  t            INTEGER NOT NULL,
  state        TEXT NOT NULL,
  due          INTEGER NOT NULL,
  finished     INTEGER,
  reason       TEXT,
  version      INTEGER NOT NULL,
  round        INTEGER NOT NULL,
  made         INTEGER NOT NULL,
  tries        INTEGER NOT NULL,
  lost         INTEGER NOT NULL,
  cancel       INTEGER NOT NULL,
  claimed      INTEGER,
  entries      INTEGER NOT NULL,
  created      INTEGER NOT NULL,
  since        INTEGER NOT NULL,
  expires      INTEGER NOT NULL,
  namespace    TEXT NOT NULL,
  id           TEXT NOT NULL,
  print        BLOB,
  url          TEXT NOT NULL,
  method       TEXT NOT NULL,
  headers      TEXT,
  content_type TEXT,
  body_kind    INTEGER NOT NULL,
  body_size    INTEGER NOT NULL,
  labels       TEXT,
  ladder       TEXT,
  retries      INTEGER,
  timeout      TEXT,
  kind         TEXT,
  origin       TEXT,
  status       INTEGER,
  callbacks    TEXT,
  first        INTEGER,
  max_age      INTEGER,
  ttl_end      INTEGER,
  body         BLOB
);
CREATE UNIQUE INDEX jobs_id ON jobs (id, namespace);
CREATE INDEX jobs_open ON jobs (q, state, due) WHERE finished IS NULL;
CREATE INDEX jobs_ended ON jobs (t, state, finished) WHERE finished IS NOT NULL;
` + ttlIndex + `

CREATE TABLE bodies (
  n    INTEGER PRIMARY KEY,
  body BLOB NOT NULL
);

CREATE TABLE attempts (
  n     INTEGER NOT NULL,
  slot  INTEGER NOT NULL,
  seq   INTEGER NOT NULL,
  entry TEXT NOT NULL,
  PRIMARY KEY (n, slot)
) WITHOUT ROWID;

CREATE TABLE ids (
  namespace TEXT NOT NULL,
  id        TEXT NOT NULL,
  t         INTEGER NOT NULL,
  print     BLOB NOT NULL,
  state     TEXT NOT NULL,
  finished  INTEGER NOT NULL,
  reason    TEXT,
  PRIMARY KEY (namespace, id)
) WITHOUT ROWID;
CREATE INDEX ids_finished ON ids (t, finished);

CREATE TABLE outbox (
  seq       INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  id        TEXT NOT NULL,
  entry     TEXT NOT NULL,
  UNIQUE (namespace, id)
);

` + heldTable + firstsTable + walCheckTable + overview + `
INSERT INTO meta VALUES ('revision', 0), ('pinged', 0);
` + laneRevision

const laneTable = `
CREATE TABLE lanes (
  namespace TEXT NOT NULL,
  topic     TEXT NOT NULL,
  lane      TEXT NOT NULL,
  revision  INTEGER NOT NULL,
  settings  TEXT NOT NULL,
  PRIMARY KEY (namespace, topic, lane)
) WITHOUT ROWID;
`

const ttlIndex = `
CREATE INDEX jobs_ttl ON jobs (ttl_end) WHERE finished IS NULL AND ttl_end IS NOT NULL;
`

const heldTable = `
CREATE TABLE held (
  c       INTEGER PRIMARY KEY,
  claimed INTEGER NOT NULL,
  jobs    TEXT NOT NULL
);
`

const firstsTable = `
CREATE TABLE firsts (
  a     INTEGER PRIMARY KEY,
  n     INTEGER NOT NULL,
  entry TEXT NOT NULL
);
`

const overview = `
CREATE VIEW overview AS
  SELECT jobs.namespace, topic, lane, id,
         CASE WHEN n IN (SELECT json_extract(value, '$[1]') FROM held, json_each(held.jobs)) THEN 'running' ELSE state END AS state,
         strftime('%Y-%m-%d %H:%M:%f', due / 1000.0, 'unixepoch') AS due_utc,
         strftime('%Y-%m-%d %H:%M:%f', finished / 1000.0, 'unixepoch') AS finished_utc,
         reason, status, made, tries, method, url
  FROM jobs JOIN queues USING (q);
`

const laneRevision = `
INSERT INTO meta VALUES ('lane_revision', 0);
`

// additions bring a database that an older program made up to the schema: what the table or index lacks by which each is
// known. All of them come together, in one transaction, and at the price of a look at each lane and job, since a column
// that is NULL everywhere is no change of any row.
var additions = []struct{ name, sql string }{
	{"lanes", laneAdditions},
	{"held", heldAdditions},
	{"wal_check", walCheckTable},
	{"jobs_ttl", ttlAdditions},
}

const ttlAdditions = `
ALTER TABLE jobs ADD COLUMN max_age INTEGER;
ALTER TABLE jobs ADD COLUMN ttl_end INTEGER;
` + ttlIndex

const heldAdditions = `
DROP VIEW IF EXISTS overview;
ALTER TABLE jobs ADD COLUMN first INTEGER;
` + heldTable + firstsTable + overview

const laneAdditions = `
ALTER TABLE topics ADD COLUMN grants TEXT;
ALTER TABLE topics ADD COLUMN alarm INTEGER;
ALTER TABLE queues ADD COLUMN gate TEXT;
CREATE INDEX queues_gated ON queues (q) WHERE gate IS NOT NULL;
ALTER TABLE jobs ADD COLUMN status INTEGER;
ALTER TABLE jobs ADD COLUMN callbacks TEXT;
` + laneTable + laneRevision

// prepare brings a database to the schema: a new one is made, an older one added to, a newer one refused.
func prepare(c *conn, path string) error {
	var version, tables int64
	read := func(sql string, into *int64) error {
		return c.queryText(shared, sql, func(row []driver.Value) error {
			*into = integer(row[0])
			return nil
		})
	}
	if err := read("PRAGMA user_version", &version); err != nil {
		return err
	}
	if version > schemaVersion {
		return fmt.Errorf("the database %s has schema %d, made by a newer version of this program; this one knows up to %d",
			path, version, schemaVersion)
	}
	if version == 0 {
		if err := read("SELECT count(*) FROM sqlite_schema", &tables); err != nil {
			return err
		}
		if tables > 0 {
			return fmt.Errorf("the database %s belongs to another program", path)
		}
		// auto_vacuum takes hold only before the first table.
		if err := c.execText("PRAGMA auto_vacuum=INCREMENTAL"); err != nil {
			return err
		}
	}
	if err := c.execText("PRAGMA journal_mode=WAL"); err != nil {
		return err
	}
	if version == 0 {
		sql := fmt.Sprintf("BEGIN IMMEDIATE; %s PRAGMA user_version=%d; COMMIT", schema, schemaVersion)
		if err := c.execText(sql); err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
		return nil
	}
	var missing strings.Builder
	for _, a := range additions {
		if err := read("SELECT count(*) FROM sqlite_schema WHERE name = '"+a.name+"'", &tables); err != nil {
			return err
		}
		if tables == 0 {
			missing.WriteString(a.sql)
		}
	}
	if missing.Len() == 0 {
		return nil
	}
	if err := c.execText("BEGIN IMMEDIATE; " + missing.String() + " COMMIT"); err != nil {
		return fmt.Errorf("add to the tables: %w", err)
	}
	return nil
}
