package sqlite

// statement names a prepared statement.
type statement int

const (
	insertJob statement = iota
	insertBody
	insertAttempt
	insertBirth
	insertFirst
	insertHeld
	insertID
	insertLane
	insertQueue
	insertTopic
	findJob
	findHead
	findLane
	lanesAfter
	findID
	findQueue
	claimable
	claimableJob
	jobByN
	headByN
	moveJob
	endJob
	markCancel
	editJob
	reviveJob
	stepped
	stepJob
	overdue
	firstTTL
	updateTTL
	firstWaiting
	waitingAt
	waitingAfter
	updateQueue
	updateGate
	updateTopic
	updateGrants
	updatePolicy
	updateMeta
	updateMark
	deleteJob
	deleteBody
	deleteAttempts
	deleteID
	deleteLane
	deleteBirth
	deleteFirst
	deleteHeld
	deleteQueue
	deleteTopic
	unusedQueues
	oldestEnded
	knownID
	findTopic
	oldestIDs
	readOutbox
	readFirst
	readAttempts
	readHeld
	isHeld
	listQueues
	countLanes
	topicQueues
	pageTopics
	openAt
	openAfter
	endedAt
	endedAfter
	allTopics
	pendingQueues
	gatedQueues
	anyLane
	readMeta
	countOutbox
	lastNumbers
	probe
	begin
	commit
	rollback
	snapshot

	statements
)

// inlineBody is the size in bytes above which a body lies in its own table: an update rewrites a row whole.
const inlineBody = 2048

// anyLimit is a bound that SQLite does not look at when it plans: where it does, it plans anew whenever another is given.
const anyLimit = ` LIMIT ?+0`

// bodyColumn is the body, wherever it lies.
const bodyColumn = `CASE WHEN body_size > 2048 THEN (SELECT body FROM bodies WHERE bodies.n = jobs.n) ELSE body END`

// nameColumns need a join with queues.
const nameColumns = `queues.topic, queues.lane`

// ttlAnew is the end of a time to live, of a job whose since and expiry are given: NULL where there is none.
const ttlAnew = `ttl_end = nullif(min(ifnull(? + max_age, 0x7fffffffffffffff), ifnull(nullif(?, 0), 0x7fffffffffffffff)), 0x7fffffffffffffff)`

// recalled begins what Open reads of lanes.
const recalled = `SELECT q, queues.namespace, queues.topic, queues.lane, waiting, rows, gate, lanes.revision, settings`

var statementText = [statements]string{
	insertJob: `INSERT INTO jobs (n, q, t, state, due, version, round, made, tries, lost, cancel, entries, created, since, expires,
 max_age, ttl_end, namespace, id, print, url, timeout, body_size, spec, body)
 VALUES (?, ?, ?, 'scheduled', ?, 1, 0, 0, 0, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT DO NOTHING`,
	insertBody:    `INSERT OR REPLACE INTO bodies (n, body) VALUES (?, ?)`,
	insertAttempt: `INSERT OR REPLACE INTO attempts (n, slot, seq, entry) VALUES (?, ?, ?, ?)`,
	insertBirth:   `INSERT OR IGNORE INTO outbox (namespace, id, entry) VALUES (?, ?, ?)`,
	insertFirst:   `INSERT INTO firsts (a, n, entry) VALUES (?, ?, ?)`,
	insertHeld:    `INSERT OR REPLACE INTO held (c, claimed, jobs) VALUES (?, ?, ?)`,
	insertID:      `INSERT OR REPLACE INTO ids (namespace, id, t, print, state, finished, reason) VALUES (?, ?, ?, ?, ?, ?, ?)`,
	insertLane:    `INSERT OR REPLACE INTO lanes (namespace, topic, lane, revision, settings) VALUES (?, ?, ?, ?, ?)`,
	insertQueue:   `INSERT INTO queues (q, namespace, topic, lane) VALUES (?, ?, ?, ?)`,
	insertTopic:   `INSERT INTO topics (t, namespace, name) VALUES (?, ?, ?)`,

	findJob: `SELECT ` + columns + `, ` + nameColumns + `, ` + bodyColumn +
		` FROM jobs JOIN queues ON queues.q = jobs.q WHERE id = ? AND jobs.namespace = ?`,
	findHead: `SELECT ` + columns + `, ` + nameColumns +
		` FROM jobs JOIN queues ON queues.q = jobs.q WHERE id = ? AND jobs.namespace = ?`,
	findLane: `SELECT revision, settings FROM lanes WHERE namespace = ? AND topic = ? AND lane = ?`,
	lanesAfter: `SELECT lane, revision, settings FROM lanes WHERE namespace = ? AND topic = ? AND lane > ?
 ORDER BY lane LIMIT ?`,
	findID:    `SELECT print, state, finished, reason FROM ids WHERE namespace = ? AND id = ?`,
	findQueue: `SELECT q, waiting, rows, gate FROM queues WHERE namespace = ? AND topic = ? AND lane = ?`,
	claimable: `SELECT ` + columns + `, ` + bodyColumn +
		` FROM jobs WHERE q = ? AND state = 'scheduled' AND finished IS NULL AND (due, n) >= (?, ?) ORDER BY due, n` + anyLimit,
	claimableJob: `SELECT ` + columns + `, ` + bodyColumn + ` FROM jobs WHERE n = ?`,
	jobByN: `SELECT ` + columns + `, ` + nameColumns + `, ` + bodyColumn +
		` FROM jobs JOIN queues ON queues.q = jobs.q WHERE jobs.n = ?`,
	headByN: `SELECT ` + columns + ` FROM jobs WHERE n = ?`,
	moveJob: `UPDATE jobs SET state = 'scheduled', due = ?, made = ?, tries = ?, lost = ?, status = ?, entries = ?, first = ?
 WHERE n = ?`,
	endJob: `UPDATE jobs SET state = ?, finished = ?, reason = ?, made = ?, tries = ?, lost = ?, status = ?, entries = ?, first = ?, version = ?,
 cancel = 0 WHERE n = ?`,
	markCancel: `UPDATE jobs SET cancel = 1, version = ?, entries = ?, first = ? WHERE n = ?`,
	editJob: `UPDATE jobs SET due = ?, version = ?, entries = ?, first = ?, since = ?, expires = ?, ` + ttlAnew + `, url = ?, timeout = ?,
 body_size = ?, spec = ?, body = ? WHERE n = ?`,
	reviveJob: `UPDATE jobs SET state = 'scheduled', due = ?, finished = NULL, reason = NULL, version = ?, round = ?, tries = 0,
 lost = 0, entries = ?, first = ?, since = ?, expires = ?, ` + ttlAnew + `, url = ? WHERE n = ?`,
	overdue: `SELECT ` + columns + `, ` + nameColumns + `, ` + bodyColumn + ` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE finished IS NULL AND ttl_end < ? AND state = 'scheduled' ORDER BY ttl_end, jobs.n`,
	firstTTL:  `SELECT min(ttl_end) FROM jobs WHERE finished IS NULL AND ttl_end IS NOT NULL`,
	updateTTL: `UPDATE jobs SET ttl_end = ? WHERE n = ?`,
	stepped:   `SELECT n, q, due FROM jobs WHERE n <= ? AND n > ? AND state = 'scheduled' AND finished IS NULL`,
	stepJob:   `UPDATE jobs SET due = due + ?, since = since + ?, created = created + ? WHERE n = ?`,
	firstWaiting: `SELECT due, n FROM jobs WHERE q = ? AND state = 'scheduled' AND finished IS NULL AND (due, n) >= (?, ?)
 ORDER BY due, n`,
	waitingAt: `SELECT due, n FROM jobs WHERE q = ?1 AND state = 'scheduled' AND finished IS NULL
 AND due = ?2 AND n > ?3 AND due <= ?4 ORDER BY n LIMIT ?5`,
	waitingAfter: `SELECT due, n FROM jobs WHERE q = ?1 AND state = 'scheduled' AND finished IS NULL
 AND due > ?2 AND due <= ?3 ORDER BY due, n LIMIT ?4`,
	updateQueue: `UPDATE queues SET waiting = ?, rows = ? WHERE q = ?`,
	updateTopic: `UPDATE topics SET registered = ?, delivered = ?, dead = ?, cancelled = ?, kept_done = ?, kept_done_bytes = ?,
 kept_dead = ?, kept_dead_bytes = ?, ids = ? WHERE t = ?`,
	updateGate:   `UPDATE queues SET gate = ? WHERE q = ?`,
	updateGrants: `UPDATE topics SET grants = ?, alarm = ? WHERE t = ?`,
	updatePolicy: `UPDATE topics SET policy = ?, revision = ? WHERE t = ?`,
	updateMeta:   `UPDATE meta SET value = ? WHERE key = ?`,
	updateMark:   `UPDATE wal_check SET base = mark, mark = ? WHERE one = 1`,

	deleteJob:      `DELETE FROM jobs WHERE n = ?`,
	deleteBody:     `DELETE FROM bodies WHERE n = ?`,
	deleteAttempts: `DELETE FROM attempts WHERE n = ?`,
	deleteID:       `DELETE FROM ids WHERE namespace = ? AND id = ?`,
	deleteLane:     `DELETE FROM lanes WHERE namespace = ? AND topic = ? AND lane = ?`,
	deleteBirth:    `DELETE FROM outbox WHERE namespace = ? AND id = ?`,
	deleteFirst:    `DELETE FROM firsts WHERE a = ?`,
	deleteHeld:     `DELETE FROM held WHERE c = ?`,
	deleteQueue:    `DELETE FROM queues WHERE q = ?`,
	deleteTopic: `DELETE FROM topics WHERE t = ?1
 AND NOT EXISTS (SELECT 1 FROM queues WHERE namespace = ?2 AND topic = ?3)
 AND NOT EXISTS (SELECT 1 FROM lanes WHERE namespace = ?2 AND topic = ?3)`,
	unusedQueues: `DELETE FROM queues WHERE rows = 0 AND gate IS NULL`,

	oldestEnded: `SELECT ` + columns + `, ` + nameColumns + ` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ? AND state = ? AND finished IS NOT NULL ORDER BY finished, jobs.n LIMIT ?`,
	knownID: `SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND namespace = ?2)
 OR EXISTS (SELECT 1 FROM ids WHERE id = ?1 AND namespace = ?2)`,
	findTopic: `SELECT t FROM topics WHERE namespace = ? AND name = ?`,
	oldestIDs: `SELECT namespace, id, finished FROM ids WHERE t = ? ORDER BY finished LIMIT ?`,

	readOutbox:   `SELECT seq, entry FROM outbox WHERE seq > ? ORDER BY seq LIMIT ? OFFSET ?`,
	readHeld:     `SELECT c, claimed, jobs FROM held`,
	isHeld:       `SELECT EXISTS (SELECT 1 FROM held WHERE instr(jobs, ',' || ? || ']'))`,
	readFirst:    `SELECT entry FROM firsts WHERE a = ?`,
	readAttempts: `SELECT entry FROM attempts WHERE n = ? ORDER BY seq`,
	listQueues: `SELECT q, lane FROM queues INDEXED BY queues_pending
 WHERE namespace = ? AND topic = ? AND lane >= ? AND waiting > 0 ORDER BY lane LIMIT ?`,
	countLanes: `SELECT q, lane, waiting FROM queues INDEXED BY queues_pending
 WHERE namespace = ? AND topic = ? AND lane > ? AND waiting > 0 ORDER BY lane LIMIT ?`,
	topicQueues: `SELECT q FROM queues INDEXED BY queues_pending
 WHERE namespace = ? AND topic = ? AND waiting > 0 LIMIT ?`,
	openAt: `SELECT ` + columns + ` FROM jobs WHERE q = ?1 AND state = ?2 AND finished IS NULL
 AND due = ?4 AND n > ?5 AND due < ?3 ORDER BY n LIMIT ?6`,
	openAfter: `SELECT ` + columns + ` FROM jobs WHERE q = ?1 AND state = ?2 AND finished IS NULL
 AND due > ?4 AND due < ?3 ORDER BY due, n LIMIT ?5`,
	endedAt: `SELECT ` + columns + `, ` + nameColumns + ` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ?1 AND state = ?2 AND finished IS NOT NULL
 AND finished = ?4 AND jobs.n > ?5 AND finished < ?3 ORDER BY jobs.n LIMIT ?6`,
	endedAfter: `SELECT ` + columns + `, ` + nameColumns + ` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ?1 AND state = ?2 AND finished IS NOT NULL
 AND finished > ?4 AND finished < ?3 ORDER BY finished, jobs.n LIMIT ?5`,

	pageTopics: `SELECT name FROM topics WHERE namespace = ?1 AND name > ?2 AND registered > 0 ORDER BY name LIMIT ?3`,
	allTopics: `SELECT t, namespace, name, policy, revision, registered, delivered, dead, cancelled, kept_done, kept_done_bytes,
 kept_dead, kept_dead_bytes, ids, alarm, grants FROM topics`,
	pendingQueues: recalled + ` FROM queues INDEXED BY queues_pending LEFT JOIN lanes USING (namespace, topic, lane)
 WHERE waiting > 0`,
	gatedQueues: recalled + ` FROM queues INDEXED BY queues_gated LEFT JOIN lanes USING (namespace, topic, lane)
 WHERE gate IS NOT NULL`,
	anyLane:     `SELECT EXISTS (SELECT 1 FROM lanes)`,
	readMeta:    `SELECT value FROM meta WHERE key = ?`,
	countOutbox: `SELECT count(*) FROM outbox`,
	lastNumbers: `SELECT (SELECT max(n) FROM jobs), (SELECT max(q) FROM queues), (SELECT max(t) FROM topics),
 (SELECT max(a) FROM firsts)`,
	probe: `INSERT INTO outbox (seq, namespace, id, entry) VALUES (-1, '', '', zeroblob(16384))`,

	begin:    `BEGIN IMMEDIATE`,
	commit:   `COMMIT`,
	rollback: `ROLLBACK`,
	snapshot: `BEGIN`,
}
