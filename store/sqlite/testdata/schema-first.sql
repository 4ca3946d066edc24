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
  UNIQUE (namespace, topic, lane)
);
CREATE INDEX queues_pending ON queues (namespace, topic, lane) WHERE waiting + running > 0;

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
  body         BLOB
);
CREATE UNIQUE INDEX jobs_id ON jobs (id, namespace);
CREATE INDEX jobs_open ON jobs (q, state, due) WHERE finished IS NULL;
CREATE INDEX jobs_ended ON jobs (t, state, finished) WHERE finished IS NOT NULL;

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

CREATE VIEW overview AS
  SELECT jobs.namespace, topic, lane, id, state,
         strftime('%Y-%m-%d %H:%M:%f', due / 1000.0, 'unixepoch') AS due_utc,
         strftime('%Y-%m-%d %H:%M:%f', finished / 1000.0, 'unixepoch') AS finished_utc,
         reason, made, tries, method, url
  FROM jobs JOIN queues USING (q);

INSERT INTO meta VALUES ('revision', 0), ('pinged', 0);
