-- The tables can be read with the sqlite3 shell, 3.37 (2021) or newer; the view "overview" shows each job. Times are Unix
-- milliseconds, durations milliseconds. Settings and attempts are JSON. What a job asks for is in jobs.spec,
-- encoded by package job/codec. Package db adds the table wal_check.

CREATE TABLE meta ( -- the newest revision of each kind of settings, steps_ahead, and a row that Ping rewrites
  key   TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE topics (
  t               INTEGER PRIMARY KEY,
  namespace       TEXT NOT NULL,
  name            TEXT NOT NULL,
  registered      INTEGER NOT NULL DEFAULT 0,
  delivered       INTEGER NOT NULL DEFAULT 0,
  dead            INTEGER NOT NULL DEFAULT 0,
  cancelled       INTEGER NOT NULL DEFAULT 0,
  bytes           INTEGER NOT NULL DEFAULT 0, -- of jobs that have not ended
  kept_done       INTEGER NOT NULL DEFAULT 0,
  kept_done_bytes INTEGER NOT NULL DEFAULT 0,
  kept_dead       INTEGER NOT NULL DEFAULT 0,
  kept_dead_bytes INTEGER NOT NULL DEFAULT 0,
  ids             INTEGER NOT NULL DEFAULT 0, -- rows of the table ids
  grants          TEXT, -- the permits that the topic's rate counts (throttle.Grants)
  alarm           INTEGER,
  UNIQUE (namespace, name)
);

CREATE TABLE queues ( -- a row per lane
  q          INTEGER PRIMARY KEY,
  namespace  TEXT NOT NULL,
  topic      TEXT NOT NULL,
  lane       TEXT NOT NULL,
  unfinished INTEGER NOT NULL DEFAULT 0, -- jobs that have not ended, claimed ones too
  rows       INTEGER NOT NULL DEFAULT 0, -- jobs that refer to it, finished ones too
  throttle   TEXT, -- cooldown, breaker and the starts that the lane's rate counts (throttle.Throttle)
  health     TEXT, -- of a lane of which an attempt failed (store.FormatHealth)
  UNIQUE (namespace, topic, lane)
);
CREATE INDEX queues_pending ON queues (namespace, topic, lane) WHERE unfinished > 0;
CREATE INDEX queues_throttled ON queues (q) WHERE throttle IS NOT NULL;
CREATE INDEX queues_unhealthy ON queues (q) WHERE health IS NOT NULL;

CREATE TABLE history ( -- what became of attempts, by topic; with an empty topic, of the namespace; TOPIC/LANE: of a lane
  namespace  TEXT NOT NULL,
  topic      TEXT NOT NULL,
  span       INTEGER NOT NULL, -- a minute or an hour
  at         INTEGER NOT NULL, -- its beginning
  delivered  INTEGER NOT NULL,
  failed     INTEGER NOT NULL,
  dead       INTEGER NOT NULL, -- jobs
  released   INTEGER NOT NULL,
  late_5ms   INTEGER NOT NULL, -- delivered and failed ones by lateness, up to this and above the one before
  late_20ms  INTEGER NOT NULL,
  late_100ms INTEGER NOT NULL,
  late_500ms INTEGER NOT NULL,
  late_2s    INTEGER NOT NULL,
  late_10s   INTEGER NOT NULL,
  late_1m    INTEGER NOT NULL,
  late_10m   INTEGER NOT NULL,
  late_more  INTEGER NOT NULL,
  PRIMARY KEY (namespace, topic, span, at)
) WITHOUT ROWID;
CREATE INDEX history_ends ON history (span, at);

CREATE TABLE settings ( -- documents: policies of topics, and settings of lanes, which may have had no job yet
  kind      TEXT NOT NULL, -- topic, lane
  namespace TEXT NOT NULL,
  name      TEXT NOT NULL, -- of the topic
  lane      TEXT NOT NULL,
  revision  INTEGER NOT NULL,
  limits    TEXT NOT NULL, -- what this engine applies of the value
  value     TEXT NOT NULL,
  PRIMARY KEY (kind, namespace, name, lane)
) WITHOUT ROWID;

CREATE TABLE changes ( -- the last changes of each kind of documents, also removals
  kind      TEXT NOT NULL,
  revision  INTEGER NOT NULL,
  namespace TEXT NOT NULL,
  name      TEXT NOT NULL,
  lane      TEXT NOT NULL,
  PRIMARY KEY (kind, revision)
) WITHOUT ROWID;

CREATE TABLE jobs ( -- the columns that change come first
  n                INTEGER PRIMARY KEY,
  q                INTEGER NOT NULL,
  t                INTEGER NOT NULL,
  state            TEXT NOT NULL, -- scheduled until the job has finished
  due              INTEGER NOT NULL,
  ordered          INTEGER, -- in an ordered lane 0 once first_due has come, before that first_due; NULL: not known
  finished         INTEGER,
  reason           TEXT,
  version          INTEGER NOT NULL,
  generation       INTEGER NOT NULL,
  attempts         INTEGER NOT NULL,
  failed_attempts  INTEGER NOT NULL,
  consecutive_lost INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  answer           TEXT, -- to the last attempt that was not lost: its status, or its error class
  entries          INTEGER NOT NULL, -- of the record, ever made
  first            INTEGER, -- the record's first entry, in first_attempts
  created          INTEGER NOT NULL,
  first_due        INTEGER NOT NULL,
  expires          INTEGER NOT NULL,
  max_age          INTEGER, -- that of its topic when it was registered
  ttl_end          INTEGER, -- the earlier of expires and first_due + max_age
  namespace        TEXT NOT NULL,
  id               TEXT NOT NULL,
  fingerprint      BLOB,
  url              TEXT NOT NULL,
  timeout          INTEGER, -- of an attempt, for its lease
  body_size        INTEGER NOT NULL, -- -1: no body
  spec             BLOB NOT NULL, -- everything else that the job asks for
  body             BLOB -- NULL when it lies in bodies
);
CREATE UNIQUE INDEX jobs_id ON jobs (id, namespace);
CREATE INDEX jobs_open ON jobs (q, state, due) WHERE finished IS NULL;
CREATE INDEX jobs_ordered ON jobs (q, ordered) WHERE finished IS NULL AND ordered IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (t, state, finished) WHERE finished IS NOT NULL;
CREATE INDEX jobs_ttl ON jobs (ttl_end) WHERE finished IS NULL AND ttl_end IS NOT NULL;

CREATE TABLE bodies ( -- bodies above 2 KiB, so that an update of a job does not rewrite them
  n    INTEGER PRIMARY KEY,
  body BLOB NOT NULL
);

CREATE TABLE leases ( -- a row per claim of up to 128 jobs: [[q, n], ...]; their own rows do not change
  c       INTEGER PRIMARY KEY,
  claimed INTEGER NOT NULL,
  jobs    TEXT NOT NULL
);

CREATE TABLE replies ( -- what was answered to settlements that clients may repeat, for some minutes; a row per transaction
  r       INTEGER PRIMARY KEY,
  answers TEXT NOT NULL -- lines: token, space, a character for each settlement: 1 recorded, 0 refused
);

CREATE TABLE first_attempts ( -- the first entry of each record, in order of arrival; most jobs have no other
  a     INTEGER PRIMARY KEY,
  n     INTEGER NOT NULL,
  entry TEXT NOT NULL
);

CREATE TABLE attempts ( -- later entries of records: attempts that count have 20 slots, releases 20 and events 20
  n     INTEGER NOT NULL,
  slot  INTEGER NOT NULL,
  seq   INTEGER NOT NULL,
  entry TEXT NOT NULL,
  PRIMARY KEY (n, slot)
) WITHOUT ROWID;

CREATE TABLE ids ( -- ids chosen by clients whose job has been removed
  namespace   TEXT NOT NULL,
  id          TEXT NOT NULL,
  t           INTEGER NOT NULL,
  fingerprint BLOB NOT NULL,
  state       TEXT NOT NULL,
  finished    INTEGER NOT NULL,
  reason      TEXT,
  PRIMARY KEY (namespace, id)
) WITHOUT ROWID;
CREATE INDEX ids_finished ON ids (t, finished);

CREATE TABLE outbox ( -- jobs made by settlements, until they are in their own queue; encoded by store.AppendNewJob
  seq       INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  id        TEXT NOT NULL,
  entry     BLOB NOT NULL,
  UNIQUE (namespace, id)
);

CREATE VIEW overview AS
  SELECT jobs.namespace, topic, lane, id,
         CASE WHEN n IN (SELECT json_extract(value, '$[1]') FROM leases, json_each(leases.jobs)) THEN 'running' ELSE state END AS state,
         strftime('%Y-%m-%d %H:%M:%f', due / 1000.0, 'unixepoch') AS due_utc,
         strftime('%Y-%m-%d %H:%M:%f', finished / 1000.0, 'unixepoch') AS finished_utc,
         reason, answer, attempts, failed_attempts, url
  FROM jobs JOIN queues USING (q);

INSERT INTO meta VALUES ('pinged', 0);
