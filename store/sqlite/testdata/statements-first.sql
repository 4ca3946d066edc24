INSERT INTO jobs (n, q, t, state, due, version, round, made, tries, lost, cancel, entries, created, since, expires, namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin, body) VALUES (?, ?, ?, 'scheduled', ?, 1, 0, 0, 0, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
INSERT OR REPLACE INTO bodies (n, body) VALUES (?, ?)
INSERT OR REPLACE INTO attempts (n, slot, seq, entry) VALUES (?, ?, ?, ?)
INSERT OR IGNORE INTO outbox (namespace, id, entry) VALUES (?, ?, ?)
INSERT OR REPLACE INTO ids (namespace, id, t, print, state, finished, reason) VALUES (?, ?, ?, ?, ?, ?, ?)
INSERT INTO queues (q, namespace, topic, lane) VALUES (?, ?, ?, ?)
INSERT INTO topics (t, namespace, name) VALUES (?, ?, ?)
SELECT jobs.n, jobs.q, state, due, finished, reason, version, round, made, tries, lost, cancel, entries, created, since, expires, jobs.namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin, CASE WHEN body_size > 2048 THEN (SELECT body FROM bodies WHERE bodies.n = jobs.n) ELSE body END, queues.topic, queues.lane FROM jobs JOIN queues ON queues.q = jobs.q WHERE id = ? AND jobs.namespace = ?
SELECT print, state, finished, reason FROM ids WHERE namespace = ? AND id = ?
SELECT q, waiting, running, rows FROM queues WHERE namespace = ? AND topic = ? AND lane = ?
SELECT jobs.n, jobs.q, state, due, finished, reason, version, round, made, tries, lost, cancel, entries, created, since, expires, jobs.namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin, CASE WHEN body_size > 2048 THEN (SELECT body FROM bodies WHERE bodies.n = jobs.n) ELSE body END FROM jobs WHERE q = ? AND state = 'scheduled' AND finished IS NULL ORDER BY due, n LIMIT ?
UPDATE jobs SET state = 'running', claimed = ?3 WHERE q = ?1 AND state = 'scheduled' AND finished IS NULL AND due < ?2
UPDATE jobs SET state = 'running', claimed = ?4 WHERE q = ?1 AND state = 'scheduled' AND finished IS NULL AND due = ?2 AND n <= ?3
SELECT jobs.n, jobs.q, state, due, finished, reason, version, round, made, tries, lost, cancel, entries, created, since, expires, jobs.namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin, CASE WHEN body_size > 2048 THEN (SELECT body FROM bodies WHERE bodies.n = jobs.n) ELSE body END, queues.topic, queues.lane FROM jobs JOIN queues ON queues.q = jobs.q WHERE jobs.n = ?
UPDATE jobs SET state = 'scheduled', due = ?, made = ?, tries = ?, lost = ?, entries = ? WHERE n = ?
UPDATE jobs SET state = ?, finished = ?, reason = ?, made = ?, tries = ?, lost = ?, entries = ?, version = ?, cancel = 0 WHERE n = ?
UPDATE jobs SET cancel = 1, version = ?, entries = ? WHERE n = ?
UPDATE jobs SET due = ?, version = ?, entries = ?, since = ?, expires = ?, url = ?, headers = ?, content_type = ?, body_kind = ?, body_size = ?, labels = ?, ladder = ?, retries = ?, timeout = ?, body = ? WHERE n = ?
UPDATE jobs SET state = 'scheduled', due = ?, finished = NULL, reason = NULL, version = ?, round = ?, tries = 0, lost = 0, entries = ?, since = ?, expires = ? WHERE n = ?
SELECT due, n FROM jobs WHERE q = ? AND state = 'scheduled' AND finished IS NULL ORDER BY due, n LIMIT 1
SELECT due, n FROM jobs WHERE q = ?1 AND state = 'scheduled' AND finished IS NULL AND due = ?2 AND n > ?3 AND due <= ?4 ORDER BY n LIMIT ?5
SELECT due, n FROM jobs WHERE q = ?1 AND state = 'scheduled' AND finished IS NULL AND due > ?2 AND due <= ?3 ORDER BY due, n LIMIT ?4
UPDATE queues SET waiting = ?, running = ?, rows = ? WHERE q = ?
UPDATE topics SET registered = ?, delivered = ?, dead = ?, cancelled = ?, kept_done = ?, kept_done_bytes = ?, kept_dead = ?, kept_dead_bytes = ?, ids = ? WHERE t = ?
UPDATE topics SET policy = ?, revision = ? WHERE t = ?
UPDATE meta SET value = ? WHERE key = ?
DELETE FROM jobs WHERE n = ?
DELETE FROM bodies WHERE n = ?
DELETE FROM attempts WHERE n = ?
DELETE FROM ids WHERE namespace = ? AND id = ?
DELETE FROM outbox WHERE namespace = ? AND id = ?
DELETE FROM queues WHERE q = ?
DELETE FROM queues WHERE rows = 0
SELECT jobs.n, jobs.q, state, due, finished, reason, version, round, made, tries, lost, cancel, entries, created, since, expires, jobs.namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin, queues.topic, queues.lane FROM jobs JOIN queues ON queues.q = jobs.q WHERE t = ? AND state = ? AND finished IS NOT NULL ORDER BY finished, jobs.n LIMIT ?
SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND namespace = ?2) OR EXISTS (SELECT 1 FROM ids WHERE id = ?1 AND namespace = ?2)
SELECT t FROM topics WHERE namespace = ? AND name = ?
SELECT namespace, id, finished FROM ids WHERE t = ? ORDER BY finished LIMIT ?
SELECT seq, entry FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?
SELECT entry FROM attempts WHERE n = ? ORDER BY seq
SELECT q, lane FROM queues INDEXED BY queues_pending WHERE namespace = ? AND topic = ? AND lane >= ? AND waiting + running > 0 ORDER BY lane LIMIT ?
SELECT q, lane, waiting, running FROM queues INDEXED BY queues_pending WHERE namespace = ? AND topic = ? AND lane > ? AND waiting + running > 0 ORDER BY lane LIMIT ?
SELECT q FROM queues INDEXED BY queues_pending WHERE namespace = ? AND topic = ? AND waiting + running > 0 LIMIT ?
SELECT jobs.n, jobs.q, state, due, finished, reason, version, round, made, tries, lost, cancel, entries, created, since, expires, jobs.namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin FROM jobs WHERE q = ?1 AND state = ?2 AND finished IS NULL AND due = ?4 AND n > ?5 AND due < ?3 ORDER BY n LIMIT ?6
SELECT jobs.n, jobs.q, state, due, finished, reason, version, round, made, tries, lost, cancel, entries, created, since, expires, jobs.namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin FROM jobs WHERE q = ?1 AND state = ?2 AND finished IS NULL AND due > ?4 AND due < ?3 ORDER BY due, n LIMIT ?5
SELECT jobs.n, jobs.q, state, due, finished, reason, version, round, made, tries, lost, cancel, entries, created, since, expires, jobs.namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin, queues.topic, queues.lane FROM jobs JOIN queues ON queues.q = jobs.q WHERE t = ?1 AND state = ?2 AND finished IS NOT NULL AND finished = ?4 AND jobs.n > ?5 AND finished < ?3 ORDER BY jobs.n LIMIT ?6
SELECT jobs.n, jobs.q, state, due, finished, reason, version, round, made, tries, lost, cancel, entries, created, since, expires, jobs.namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin, queues.topic, queues.lane FROM jobs JOIN queues ON queues.q = jobs.q WHERE t = ?1 AND state = ?2 AND finished IS NOT NULL AND finished > ?4 AND finished < ?3 ORDER BY finished, jobs.n LIMIT ?5
SELECT t, namespace, name, policy, revision, registered, delivered, dead, cancelled, kept_done, kept_done_bytes, kept_dead, kept_dead_bytes, ids FROM topics
SELECT q, namespace, topic, lane, waiting, running, rows FROM queues INDEXED BY queues_pending WHERE waiting + running > 0
SELECT jobs.n, jobs.q, state, due, finished, reason, version, round, made, tries, lost, cancel, entries, created, since, expires, jobs.namespace, id, print, url, method, headers, content_type, body_kind, body_size, labels, ladder, retries, timeout, kind, origin, claimed FROM jobs WHERE q = ? AND state = 'running' AND finished IS NULL LIMIT ?
SELECT value FROM meta WHERE key = ?
SELECT count(*) FROM outbox
SELECT (SELECT max(n) FROM jobs), (SELECT max(q) FROM queues), (SELECT max(t) FROM topics)
INSERT INTO outbox (seq, namespace, id, entry) VALUES (-1, '', '', zeroblob(16384))
BEGIN IMMEDIATE
COMMIT
ROLLBACK
BEGIN
