package sqlite

import "github.com/ringback/ringback/store/sqlite/db"

// inlineBody is the size in bytes above which a body lies in its own table: an update rewrites a row whole.
const inlineBody = 2048

// anyLimit is a bound that SQLite's planner ignores: with a plain one it plans again for each new value.
const anyLimit = ` LIMIT ?+0`

// bodyColumn is the body, from either table.
const bodyColumn = `CASE WHEN body_size > 2048 THEN (SELECT body FROM bodies WHERE bodies.n = jobs.n) ELSE body END`

// nameColumns need a join with queues.
const nameColumns = `queues.topic, queues.lane`

// ttlAnew is the end of a time to live, of a job whose since and expiry are given: NULL where there is none.
const ttlAnew = `ttl_end = nullif(min(ifnull(? + max_age, 0x7fffffffffffffff), ifnull(nullif(?, 0), 0x7fffffffffffffff)), 0x7fffffffffffffff)`

// loadedQueue begins what Open reads of lanes.
const loadedQueue = `SELECT q, queues.namespace, queues.topic, queues.lane, waiting, rows, throttle, lanes.revision, settings`

var (
	insertJob = db.NewStatement(`INSERT INTO jobs (n, q, t, state, due, version, generation, attempts, failed_attempts, consecutive_lost, cancel_requested, entries, created, first_due, expires,
 max_age, ttl_end, namespace, id, fingerprint, url, timeout, body_size, spec, body)
 VALUES (?, ?, ?, 'scheduled', ?, 1, 0, 0, 0, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT DO NOTHING`)
	insertBody         = db.NewStatement(`INSERT OR REPLACE INTO bodies (n, body) VALUES (?, ?)`)
	insertAttempt      = db.NewStatement(`INSERT OR REPLACE INTO attempts (n, slot, seq, entry) VALUES (?, ?, ?, ?)`)
	insertOutbox       = db.NewStatement(`INSERT OR IGNORE INTO outbox (namespace, id, entry) VALUES (?, ?, ?)`)
	insertFirstAttempt = db.NewStatement(`INSERT INTO first_attempts (a, n, entry) VALUES (?, ?, ?)`)
	insertLeases       = db.NewStatement(`INSERT OR REPLACE INTO leases (c, claimed, jobs) VALUES (?, ?, ?)`)
	insertID           = db.NewStatement(`INSERT OR REPLACE INTO ids (namespace, id, t, fingerprint, state, finished, reason) VALUES (?, ?, ?, ?, ?, ?, ?)`)
	insertLane         = db.NewStatement(`INSERT OR REPLACE INTO lanes (namespace, topic, lane, revision, settings) VALUES (?, ?, ?, ?, ?)`)
	insertQueue        = db.NewStatement(`INSERT INTO queues (q, namespace, topic, lane) VALUES (?, ?, ?, ?)`)
	insertTopic        = db.NewStatement(`INSERT INTO topics (t, namespace, name) VALUES (?, ?, ?)`)
	findJob            = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + `, ` + bodyColumn +
		` FROM jobs JOIN queues ON queues.q = jobs.q WHERE id = ? AND jobs.namespace = ?`)
	findHead = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns +
		` FROM jobs JOIN queues ON queues.q = jobs.q WHERE id = ? AND jobs.namespace = ?`)
	findLane   = db.NewStatement(`SELECT revision, settings FROM lanes WHERE namespace = ? AND topic = ? AND lane = ?`)
	lanesAfter = db.NewStatement(`SELECT lane, revision, settings FROM lanes WHERE namespace = ? AND topic = ? AND lane > ?
 ORDER BY lane LIMIT ?`)
	findID    = db.NewStatement(`SELECT fingerprint, state, finished, reason FROM ids WHERE namespace = ? AND id = ?`)
	findQueue = db.NewStatement(`SELECT q, waiting, rows, throttle FROM queues WHERE namespace = ? AND topic = ? AND lane = ?`)
	claimable = db.NewStatement(`SELECT ` + columns + `, ` + bodyColumn + `, ttl_end` +
		` FROM jobs WHERE q = ? AND state = 'scheduled' AND finished IS NULL AND (due, n) >= (?, ?) ORDER BY due, n` + anyLimit)
	claimableJob = db.NewStatement(`SELECT ` + columns + `, ` + bodyColumn + `, ttl_end FROM jobs WHERE n = ?`)
	jobByN       = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + `, ` + bodyColumn +
		` FROM jobs JOIN queues ON queues.q = jobs.q WHERE jobs.n = ?`)
	headByN = db.NewStatement(`SELECT ` + columns + ` FROM jobs WHERE n = ?`)
	moveJob = db.NewStatement(`UPDATE jobs SET state = 'scheduled', due = ?, attempts = ?, failed_attempts = ?, consecutive_lost = ?, status = ?, entries = ?, first = ?
 WHERE n = ?`)
	endJob = db.NewStatement(`UPDATE jobs SET state = ?, finished = ?, reason = ?, attempts = ?, failed_attempts = ?, consecutive_lost = ?, status = ?, entries = ?, first = ?, version = ?,
 cancel_requested = 0 WHERE n = ?`)
	markCancel = db.NewStatement(`UPDATE jobs SET cancel_requested = 1, version = ?, entries = ?, first = ? WHERE n = ?`)
	replaceJob = db.NewStatement(`UPDATE jobs SET due = ?, version = ?, entries = ?, first = ?, first_due = ?, expires = ?, ` + ttlAnew + `, url = ?, timeout = ?,
 body_size = ?, spec = ?, body = ? WHERE n = ?`)
	reviveJob = db.NewStatement(`UPDATE jobs SET state = 'scheduled', due = ?, finished = NULL, reason = NULL, version = ?, generation = ?, failed_attempts = 0,
 consecutive_lost = 0, entries = ?, first = ?, first_due = ?, expires = ?, ` + ttlAnew + `, url = ? WHERE n = ?`)
	overdue = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + `, ` + bodyColumn + ` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE finished IS NULL AND ttl_end < ? AND state = 'scheduled' ORDER BY ttl_end, jobs.n`)
	firstTTL     = db.NewStatement(`SELECT min(ttl_end) FROM jobs WHERE finished IS NULL AND ttl_end IS NOT NULL`)
	updateTTL    = db.NewStatement(`UPDATE jobs SET ttl_end = ? WHERE n = ?`)
	stepped      = db.NewStatement(`SELECT n, q, due FROM jobs WHERE n <= ? AND n > ? AND state = 'scheduled' AND finished IS NULL`)
	stepJob      = db.NewStatement(`UPDATE jobs SET due = due + ?, first_due = first_due + ?, created = created + ? WHERE n = ?`)
	firstWaiting = db.NewStatement(`SELECT due, n FROM jobs WHERE q = ? AND state = 'scheduled' AND finished IS NULL AND (due, n) >= (?, ?)
 ORDER BY due, n`)
	waitingAt = db.NewStatement(`SELECT due, n FROM jobs WHERE q = ?1 AND state = 'scheduled' AND finished IS NULL
 AND due = ?2 AND n > ?3 AND due <= ?4 ORDER BY n LIMIT ?5`)
	waitingAfter = db.NewStatement(`SELECT due, n FROM jobs WHERE q = ?1 AND state = 'scheduled' AND finished IS NULL
 AND due > ?2 AND due <= ?3 ORDER BY due, n LIMIT ?4`)
	updateQueue = db.NewStatement(`UPDATE queues SET waiting = ?, rows = ? WHERE q = ?`)
	updateTopic = db.NewStatement(`UPDATE topics SET registered = ?, delivered = ?, dead = ?, cancelled = ?, kept_done = ?, kept_done_bytes = ?,
 kept_dead = ?, kept_dead_bytes = ?, ids = ? WHERE t = ?`)
	updateThrottle     = db.NewStatement(`UPDATE queues SET throttle = ? WHERE q = ?`)
	updateGrants       = db.NewStatement(`UPDATE topics SET grants = ?, alarm = ? WHERE t = ?`)
	updatePolicy       = db.NewStatement(`UPDATE topics SET policy = ?, revision = ? WHERE t = ?`)
	updateMeta         = db.NewStatement(`UPDATE meta SET value = ? WHERE key = ?`)
	deleteJob          = db.NewStatement(`DELETE FROM jobs WHERE n = ?`)
	deleteBody         = db.NewStatement(`DELETE FROM bodies WHERE n = ?`)
	deleteAttempts     = db.NewStatement(`DELETE FROM attempts WHERE n = ?`)
	deleteID           = db.NewStatement(`DELETE FROM ids WHERE namespace = ? AND id = ?`)
	deleteLane         = db.NewStatement(`DELETE FROM lanes WHERE namespace = ? AND topic = ? AND lane = ?`)
	deleteOutbox       = db.NewStatement(`DELETE FROM outbox WHERE namespace = ? AND id = ?`)
	deleteFirstAttempt = db.NewStatement(`DELETE FROM first_attempts WHERE a = ?`)
	deleteLeases       = db.NewStatement(`DELETE FROM leases WHERE c = ?`)
	deleteQueue        = db.NewStatement(`DELETE FROM queues WHERE q = ?`)
	deleteTopic        = db.NewStatement(`DELETE FROM topics WHERE t = ?1
 AND NOT EXISTS (SELECT 1 FROM queues WHERE namespace = ?2 AND topic = ?3)
 AND NOT EXISTS (SELECT 1 FROM lanes WHERE namespace = ?2 AND topic = ?3)`)
	unusedQueues = db.NewStatement(`DELETE FROM queues WHERE rows = 0 AND throttle IS NULL`)
	oldestEnded  = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + ` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ? AND state = ? AND finished IS NOT NULL ORDER BY finished, jobs.n LIMIT ?`)
	knownID = db.NewStatement(`SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND namespace = ?2)
 OR EXISTS (SELECT 1 FROM ids WHERE id = ?1 AND namespace = ?2)`)
	findTopic        = db.NewStatement(`SELECT t FROM topics WHERE namespace = ? AND name = ?`)
	oldestIDs        = db.NewStatement(`SELECT namespace, id, finished FROM ids WHERE t = ? ORDER BY finished LIMIT ?`)
	readOutbox       = db.NewStatement(`SELECT seq, entry FROM outbox WHERE seq > ? ORDER BY seq LIMIT ? OFFSET ?`)
	readLeases       = db.NewStatement(`SELECT c, claimed, jobs FROM leases`)
	isLeased         = db.NewStatement(`SELECT EXISTS (SELECT 1 FROM leases WHERE instr(jobs, ',' || ? || ']'))`)
	readFirstAttempt = db.NewStatement(`SELECT entry FROM first_attempts WHERE a = ?`)
	readAttempts     = db.NewStatement(`SELECT entry FROM attempts WHERE n = ? ORDER BY seq`)
	listQueues       = db.NewStatement(`SELECT q, lane FROM queues INDEXED BY queues_pending
 WHERE namespace = ? AND topic = ? AND lane >= ? AND waiting > 0 ORDER BY lane LIMIT ?`)
	countLanes = db.NewStatement(`SELECT q, lane, waiting FROM queues INDEXED BY queues_pending
 WHERE namespace = ? AND topic = ? AND lane > ? AND waiting > 0 ORDER BY lane LIMIT ?`)
	topicQueues = db.NewStatement(`SELECT q FROM queues INDEXED BY queues_pending
 WHERE namespace = ? AND topic = ? AND waiting > 0 LIMIT ?`)
	openAt = db.NewStatement(`SELECT ` + columns + ` FROM jobs WHERE q = ?1 AND state = ?2 AND finished IS NULL
 AND due = ?4 AND n > ?5 AND due < ?3 ORDER BY n LIMIT ?6`)
	openAfter = db.NewStatement(`SELECT ` + columns + ` FROM jobs WHERE q = ?1 AND state = ?2 AND finished IS NULL
 AND due > ?4 AND due < ?3 ORDER BY due, n LIMIT ?5`)
	endedAt = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + ` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ?1 AND state = ?2 AND finished IS NOT NULL
 AND finished = ?4 AND jobs.n > ?5 AND finished < ?3 ORDER BY jobs.n LIMIT ?6`)
	endedAfter = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + ` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ?1 AND state = ?2 AND finished IS NOT NULL
 AND finished > ?4 AND finished < ?3 ORDER BY finished, jobs.n LIMIT ?5`)
	pageTopics = db.NewStatement(`SELECT name FROM topics WHERE namespace = ?1 AND name > ?2 AND registered > 0 ORDER BY name LIMIT ?3`)
	allTopics  = db.NewStatement(`SELECT t, namespace, name, policy, revision, registered, delivered, dead, cancelled, kept_done, kept_done_bytes,
 kept_dead, kept_dead_bytes, ids, alarm, grants FROM topics`)
	pendingQueues = db.NewStatement(loadedQueue + ` FROM queues INDEXED BY queues_pending LEFT JOIN lanes USING (namespace, topic, lane)
 WHERE waiting > 0`)
	throttledQueues = db.NewStatement(loadedQueue + ` FROM queues INDEXED BY queues_throttled LEFT JOIN lanes USING (namespace, topic, lane)
 WHERE throttle IS NOT NULL`)
	anyLane     = db.NewStatement(`SELECT EXISTS (SELECT 1 FROM lanes)`)
	readMeta    = db.NewStatement(`SELECT value FROM meta WHERE key = ?`)
	countOutbox = db.NewStatement(`SELECT count(*) FROM outbox`)
	lastNumbers = db.NewStatement(`SELECT (SELECT max(n) FROM jobs), (SELECT max(q) FROM queues), (SELECT max(t) FROM topics),
 (SELECT max(a) FROM first_attempts)`)
	probe = db.NewStatement(`INSERT INTO outbox (seq, namespace, id, entry) VALUES (-1, '', '', zeroblob(16384))`)
)
