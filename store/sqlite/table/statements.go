package table

import (
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/sqlite/db"
)

// InlineBody is the size in bytes above which a body lies in its own table: an update rewrites a row whole.
const InlineBody = 2048

// columns are the columns of a job, in the order in which Cells.Row reads them.
const columns = `jobs.n, state, due, finished, reason, version, generation, attempts, failed_attempts, ` +
	`consecutive_lost, cancel_requested, answer, entries, first,
 created, first_due, expires, jobs.namespace, id, fingerprint, url, timeout, body_size, spec`

// bodyColumn is the body, from either table.
const bodyColumn = `CASE WHEN body_size > 2048 THEN (SELECT body FROM bodies WHERE bodies.n = jobs.n) ELSE body END`

// nameColumns need a join with queues.
const nameColumns = `queues.topic, queues.lane`

// setTTLEnd sets the end of the time to live of a job whose first due time and expiry are given; NULL: it never ends.
const setTTLEnd = `ttl_end = nullif(min(ifnull(? + max_age, 0x7fffffffffffffff), ifnull(nullif(?, 0), ` +
	`0x7fffffffffffffff)), 0x7fffffffffffffff)`

// laneLimits joins the limits of lanes.
const laneLimits = `LEFT JOIN settings ON kind = 'lane' AND settings.namespace = queues.namespace
 AND name = topic AND settings.lane = queues.lane`

// JobExists begins what KnownID reads of a job that was not removed.
const JobExists = "+"

// notInternal is whether a topic's name is not of store.GroupInternal.
const notInternal = `(name NOT GLOB '_*' OR name = '` + job.CallbackTopic + `')`

// keptInState is whether a topic keeps jobs that count as the state ?2 does.
const keptInState = `iif(?2 = '` + string(job.Dead) + `', kept_dead, kept_done) > 0`

// loadedQueue begins what Open reads of lanes.
const loadedQueue = `SELECT q, queues.namespace, queues.topic, queues.lane, unfinished, rows, throttle, ` +
	`health, revision, limits`

// historyNumbers are the columns of store.HistoryCounts.Numbers.
var historyNumbers = strings.Fields(
	"delivered failed dead released late_5ms late_20ms late_100ms late_500ms late_2s late_10s late_1m late_10m " +
		"late_more",
)

func sumHistory() string {
	var sums []string
	for _, column := range historyNumbers {
		sums = append(sums, column+" = "+column+" + excluded."+column)
	}
	return strings.Join(sums, ", ")
}

var (
	InsertJob = db.NewStatement(`INSERT INTO jobs (n, q, t, state, due, version, generation, attempts, ` +
		`failed_attempts, consecutive_lost, cancel_requested, entries, created, first_due, expires,
 max_age, ttl_end, ordered, namespace, id, fingerprint, url, timeout, body_size, spec, body)
 VALUES (?, ?, ?, 'scheduled', ?, 1, 0, 0, 0, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT DO NOTHING`)
	// PutJob inserts a job with its progress.
	PutJob = db.NewStatement(`INSERT INTO jobs (n, q, t, state, due, finished, reason, version, generation, ` +
		`attempts, failed_attempts, consecutive_lost, cancel_requested,
 answer, entries, created, first_due, expires, max_age, ttl_end, ordered, namespace, id, fingerprint, url, timeout, ` +
		`body_size, spec, body)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	InsertBody         = db.NewStatement(`INSERT OR REPLACE INTO bodies (n, body) VALUES (?, ?)`)
	InsertAttempt      = db.NewStatement(`INSERT OR REPLACE INTO attempts (n, slot, seq, entry) VALUES (?, ?, ?, ?)`)
	InsertOutbox       = db.NewStatement(`INSERT OR IGNORE INTO outbox (namespace, id, entry) VALUES (?, ?, ?)`)
	InsertFirstAttempt = db.NewStatement(`INSERT INTO first_attempts (a, n, entry) VALUES (?, ?, ?)`)
	InsertLeases       = db.NewStatement(`INSERT OR REPLACE INTO leases (c, claimed, jobs) VALUES (?, ?, ?)`)
	InsertReplies      = db.NewStatement(`INSERT INTO replies (r, answers) VALUES (?, ?)`)
	InsertID           = db.NewStatement(`INSERT OR REPLACE INTO ids (namespace, id, t, fingerprint, state, ` +
		`finished, reason) VALUES (?, ?, ?, ?, ?, ?, ?)`)
	InsertDocument = db.NewStatement(`INSERT OR REPLACE INTO settings (kind, namespace, name, lane, revision, ` +
		`limits, value)
 VALUES (?, ?, ?, ?, ?, ?, ?)`)
	InsertQueue = db.NewStatement(`INSERT INTO queues (q, namespace, topic, lane) VALUES (?, ?, ?, ?)`)
	InsertTopic = db.NewStatement(`INSERT INTO topics (t, namespace, name) VALUES (?, ?, ?)`)
	FindJob     = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + `, ` + bodyColumn +
		` FROM jobs JOIN queues ON queues.q = jobs.q WHERE id = ? AND jobs.namespace = ?`)
	FindRecord = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + `, ` + bodyColumn +
		`, max_age FROM jobs JOIN queues ON queues.q = jobs.q WHERE id = ? AND jobs.namespace = ?`)
	FindJobWithoutBody = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns +
		` FROM jobs JOIN queues ON queues.q = jobs.q WHERE id = ? AND jobs.namespace = ?`)
	FindDocument = db.NewStatement(`SELECT revision, limits, value FROM settings WHERE kind = ? AND namespace = ? ` +
		`AND name = ? AND lane = ?`)
	LanesAfter = db.NewStatement(`SELECT namespace, name, lane, revision, value FROM settings
 WHERE kind = 'lane' AND namespace = ? AND name = ? AND lane > ? ORDER BY lane LIMIT ?`)
	ScanLanes = db.NewStatement(`SELECT namespace, name, lane, revision, value FROM settings
 WHERE kind = 'lane' AND (namespace, name, lane) > (?, ?, ?) ORDER BY namespace, name, lane LIMIT ?`)
	DocumentsAfter = db.NewStatement(`SELECT namespace, name, lane, revision, value FROM settings
 WHERE kind = ? AND (namespace, name) > (?, ?) ORDER BY namespace, name LIMIT ?`)
	// ChangesSince includes the change of the revision itself.
	ChangesSince = db.NewStatement(`SELECT revision, namespace, name, lane FROM changes
 WHERE kind = ? AND revision >= ?`)
	AllReplies = db.NewStatement(`SELECT answers FROM replies ORDER BY r`)
	FindID     = db.NewStatement(`SELECT fingerprint, state, finished, reason FROM ids WHERE namespace = ? AND id = ?`)
	FindQueue  = db.NewStatement(`SELECT q, unfinished, rows, throttle, health FROM queues WHERE namespace = ? ` +
		`AND topic = ? AND lane = ?`)
	// ClaimableJobs reads jobs by their numbers, a JSON array, in its order, each after its index in the array.
	ClaimableJobs = db.NewStatement(`SELECT place, ` + columns + `, ` + bodyColumn + `, ttl_end
 FROM (SELECT key AS place, value AS number FROM json_each(?)) CROSS JOIN jobs ON jobs.n = number`)
	JobByN = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + `, ` + bodyColumn +
		` FROM jobs JOIN queues ON queues.q = jobs.q WHERE jobs.n = ?`)
	JobWithoutBodyByN = db.NewStatement(`SELECT ` + columns + ` FROM jobs WHERE n = ?`)
	MoveJob           = db.NewStatement(`UPDATE jobs SET state = 'scheduled', due = ?, attempts = ?, failed_attempts ` +
		`= ?, consecutive_lost = ?, answer = ?, entries = ?, first = ?
 WHERE n = ?`)
	EndJob = db.NewStatement(`UPDATE jobs SET state = ?, finished = ?, reason = ?, attempts = ?, failed_attempts = ` +
		`?, consecutive_lost = ?, answer = ?, entries = ?, first = ?, version = ?,
 cancel_requested = 0 WHERE n = ?`)
	MarkCancel = db.NewStatement(`UPDATE jobs SET cancel_requested = 1, version = ?, entries = ?, first = ? WHERE ` +
		`n = ?`)
	ReplaceJob = db.NewStatement(`UPDATE jobs SET due = ?, version = ?, entries = ?, first = ?, first_due = ?, ` +
		`expires = ?, ordered = ?, ` + setTTLEnd + `, url = ?, timeout = ?,
 body_size = ?, spec = ?, body = ? WHERE n = ?`)
	ReplaceBody = db.NewStatement(`UPDATE jobs SET body_size = ?, body = ? WHERE n = ?`)
	ReviveJob   = db.NewStatement(`UPDATE jobs SET state = 'scheduled', due = ?, finished = NULL, reason = NULL, ` +
		`version = ?, generation = ?, failed_attempts = 0,
 consecutive_lost = 0, entries = ?, first = ?, first_due = ?, expires = ?, ordered = ?, ` + setTTLEnd +
		`, url = ?, spec = ? WHERE n = ?`)
	Overdue = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + `, ` + bodyColumn +
		` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE finished IS NULL AND ttl_end < ? AND state = 'scheduled' ORDER BY ttl_end, jobs.n`)
	FirstTTL  = db.NewStatement(`SELECT min(ttl_end) FROM jobs WHERE finished IS NULL AND ttl_end IS NOT NULL`)
	UpdateTTL = db.NewStatement(`UPDATE jobs SET ttl_end = ? WHERE n = ?`)
	Stepped   = db.NewStatement(`SELECT n, q, due FROM jobs WHERE n <= ? AND n > ? AND state = 'scheduled' AND ` +
		`finished IS NULL`)
	StepJob = db.NewStatement(`UPDATE jobs SET due = due + ?1, first_due = first_due + ?1, created = created + ?1, ` +
		`ordered = iif(ordered > 0, ordered + ?1, ordered)
 WHERE n = ?2`)
	FirstWaiting = db.NewStatement(`SELECT due, n FROM jobs WHERE q = ? AND state = 'scheduled' AND finished IS NULL ` +
		`AND (due, n) >= (?, ?)
 ORDER BY due, n`)
	// Unordered reads jobs of a lane behind a key that are to be put in order, and SetOrder does so.
	Unordered = db.NewStatement(`SELECT due, n, first_due, ordered IS NULL FROM jobs WHERE q = ? AND state = ` +
		`'scheduled' AND finished IS NULL AND (due, n) > (?, ?)
 ORDER BY due, n LIMIT ?`)
	SetOrder = db.NewStatement(`UPDATE jobs SET ordered = ? WHERE n = ?`)
	// TakeTurn gives the jobs of an ordered lane whose first due time has come their turn. FirstInTurn reads those that
	// have it, in order, and NextTurn when the next will.
	TakeTurn = db.NewStatement(`UPDATE jobs SET ordered = 0 WHERE n IN
 (SELECT n FROM jobs WHERE q = ? AND finished IS NULL AND ordered > 0 AND ordered <= ? LIMIT ?)`)
	FirstInTurn = db.NewStatement(`SELECT due, n FROM jobs WHERE q = ? AND finished IS NULL AND ordered = 0 ORDER BY n`)
	NextTurn    = db.NewStatement(`SELECT ordered, n FROM jobs WHERE q = ? AND finished IS NULL AND ordered > 0 ` +
		`ORDER BY ordered`)
	WaitingAt = db.NewStatement(`SELECT due, n FROM jobs WHERE q = ?1 AND state = 'scheduled' AND finished IS NULL
 AND due = ?2 AND n > ?3 AND due <= ?4 ORDER BY n LIMIT ?5`)
	WaitingAfter = db.NewStatement(`SELECT due, n FROM jobs WHERE q = ?1 AND state = 'scheduled' AND finished IS NULL
 AND due > ?2 AND due <= ?3 ORDER BY due, n LIMIT ?4`)
	UpdateQueue = db.NewStatement(`UPDATE queues SET unfinished = ?, rows = ? WHERE q = ?`)
	UpdateTopic = db.NewStatement(`UPDATE topics SET registered = ?, delivered = ?, dead = ?, cancelled = ?, bytes = ` +
		`?, kept_done = ?, kept_done_bytes = ?,
 kept_dead = ?, kept_dead_bytes = ?, ids = ? WHERE t = ?`)
	UpdateThrottle = db.NewStatement(`UPDATE queues SET throttle = ? WHERE q = ?`)
	UpdateHealth   = db.NewStatement(`UPDATE queues SET health = ? WHERE q = ?`)
	// AddHistory adds counts in the order of store.HistoryCounts.Numbers.
	AddHistory = db.NewStatement(`INSERT INTO history VALUES (?, ?, ?, ?` + strings.Repeat(", ?", len(historyNumbers)) +
		`) ON CONFLICT DO UPDATE SET ` + sumHistory())
	ReadHistory = db.NewStatement(`SELECT span, at, ` + strings.Join(historyNumbers, ", ") +
		` FROM history WHERE namespace = ? AND topic = ? ORDER BY span, at`)
	DropHistory = db.NewStatement(`DELETE FROM history WHERE (namespace, topic, span, at) IN
 (SELECT namespace, topic, span, at FROM history WHERE span = ? AND at < ? LIMIT ?)`)
	UpdateGrants   = db.NewStatement(`UPDATE topics SET grants = ?, alarm = ? WHERE t = ?`)
	UpdateMeta     = db.NewStatement(`INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)`)
	DeleteJob      = db.NewStatement(`DELETE FROM jobs WHERE n = ?`)
	DeleteBody     = db.NewStatement(`DELETE FROM bodies WHERE n = ?`)
	DeleteAttempts = db.NewStatement(`DELETE FROM attempts WHERE n = ?`)
	DropReplies    = db.NewStatement(`DELETE FROM replies WHERE r IN (SELECT r FROM replies WHERE r <= ? LIMIT ?)`)
	DeleteID       = db.NewStatement(`DELETE FROM ids WHERE namespace = ? AND id = ?`)
	DeleteDocument = db.NewStatement(`DELETE FROM settings WHERE kind = ? AND namespace = ? AND name = ? AND ` +
		`lane = ?`)
	InsertChange = db.NewStatement(`INSERT INTO changes (kind, revision, namespace, name, lane) VALUES ` +
		`(?, ?, ?, ?, ?)`)
	// DeleteChanges deletes those of a kind before its newest ones, of which it keeps a number.
	DeleteChanges = db.NewStatement(`DELETE FROM changes WHERE kind = ?1 AND revision <= (SELECT revision FROM changes
 WHERE kind = ?1 ORDER BY revision DESC LIMIT 1 OFFSET ?2)`)
	DeleteOutbox       = db.NewStatement(`DELETE FROM outbox WHERE namespace = ? AND id = ?`)
	DeleteFirstAttempt = db.NewStatement(`DELETE FROM first_attempts WHERE a = ?`)
	DeleteLeases       = db.NewStatement(`DELETE FROM leases WHERE c = ?`)
	DeleteQueue        = db.NewStatement(`DELETE FROM queues WHERE q = ?`)
	DeleteTopic        = db.NewStatement(`DELETE FROM topics WHERE t = ?1
 AND NOT EXISTS (SELECT 1 FROM queues WHERE namespace = ?2 AND topic = ?3)
 AND NOT EXISTS (SELECT 1 FROM settings WHERE kind IN ('lane', 'topic') AND namespace = ?2 AND name = ?3)`)
	UnusedQueues = db.NewStatement(`DELETE FROM queues WHERE rows = 0 AND throttle IS NULL AND health IS NULL`)
	OldestEnded  = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns +
		` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ? AND state = ? AND finished IS NOT NULL ORDER BY finished, jobs.n LIMIT ?`)
	// KnownID reads the state in which the job of an id has ended, and JobExists before that if it was not removed. For
	// an unknown id it reads nothing.
	KnownID = db.NewStatement(`SELECT coalesce((SELECT '` + JobExists +
		`' || iif(finished IS NULL, '', state) FROM jobs WHERE id = ?1 AND namespace = ?2),
 (SELECT state FROM ids WHERE id = ?1 AND namespace = ?2), '')`)
	FindTopic        = db.NewStatement(`SELECT t FROM topics WHERE namespace = ? AND name = ?`)
	OldestIDs        = db.NewStatement(`SELECT namespace, id, finished FROM ids WHERE t = ? ORDER BY finished LIMIT ?`)
	ReadOutbox       = db.NewStatement(`SELECT seq, entry FROM outbox WHERE seq > ? ORDER BY seq LIMIT ? OFFSET ?`)
	ReadLeases       = db.NewStatement(`SELECT c, claimed, jobs FROM leases`)
	IsLeased         = db.NewStatement(`SELECT EXISTS (SELECT 1 FROM leases WHERE instr(jobs, ',' || ? || ']'))`)
	ReadFirstAttempt = db.NewStatement(`SELECT entry FROM first_attempts WHERE a = ?`)
	ReadAttempts     = db.NewStatement(`SELECT entry FROM attempts WHERE n = ? ORDER BY seq`)
	// UnfinishedTopic and UnfinishedLanes read the names of topics and of lanes with unfinished jobs, from a name on.
	UnfinishedTopic = db.NewStatement(`SELECT topic FROM queues INDEXED BY queues_pending
 WHERE namespace = ? AND topic >= ? AND unfinished > 0 ORDER BY topic LIMIT 1`)
	UnfinishedLanes = db.NewStatement(`SELECT q, lane FROM queues INDEXED BY queues_pending
 WHERE namespace = ? AND topic = ? AND lane >= ? AND unfinished > 0 ORDER BY lane LIMIT ?`)
	CountLanes = db.NewStatement(`SELECT q, lane, unfinished FROM queues INDEXED BY queues_pending
 WHERE namespace = ? AND topic = ? AND lane > ? AND unfinished > 0 ORDER BY lane LIMIT ?`)
	TopicQueues = db.NewStatement(`SELECT q FROM queues INDEXED BY queues_pending
 WHERE namespace = ? AND topic = ? AND unfinished > 0 LIMIT ?`)
	// The next eight read the jobs of a lane by due time, or those of a topic and a state by their end: those of one
	// millisecond after a number, and those after a millisecond; newest first: before them.
	UnfinishedAt = db.NewStatement(`SELECT ` + columns + ` FROM jobs WHERE q = ?1 AND state = ?2 AND finished IS NULL
 AND due = ?3 AND n > ?4 ORDER BY n LIMIT ?5`)
	UnfinishedAfter = db.NewStatement(`SELECT ` + columns + ` FROM jobs WHERE q = ?1 AND state = ?2 AND finished IS NULL
 AND due > ?3 AND due < ?4 ORDER BY due, n LIMIT ?5`)
	UnfinishedAtNewest = db.NewStatement(`SELECT ` + columns +
		` FROM jobs WHERE q = ?1 AND state = ?2 AND finished IS NULL
 AND due = ?3 AND n < ?4 ORDER BY n DESC LIMIT ?5`)
	UnfinishedBefore = db.NewStatement(`SELECT ` + columns +
		` FROM jobs WHERE q = ?1 AND state = ?2 AND finished IS NULL
 AND due < ?3 AND due >= ?4 ORDER BY due DESC, n DESC LIMIT ?5`)
	EndedAt = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + ` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ?1 AND state = ?2 AND finished = ?3 AND jobs.n > ?4 ORDER BY jobs.n LIMIT ?5`)
	EndedAfter = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns + ` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ?1 AND state = ?2 AND finished > ?3 AND finished < ?4 ORDER BY finished, jobs.n LIMIT ?5`)
	EndedAtNewest = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns +
		` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ?1 AND state = ?2 AND finished = ?3 AND jobs.n < ?4 ORDER BY jobs.n DESC LIMIT ?5`)
	EndedBefore = db.NewStatement(`SELECT ` + columns + `, ` + nameColumns +
		` FROM jobs JOIN queues ON queues.q = jobs.q
 WHERE t = ?1 AND state = ?2 AND finished < ?3 AND finished >= ?4 ORDER BY finished DESC, jobs.n DESC LIMIT ?5`)
	// FirstEnds and LastEnds read the topics of a namespace that keep jobs which ended as a state says, each with the
	// first end from a millisecond on, or the last up to one, of its jobs in the state; NULL: there is no such job.
	FirstEnds = db.NewStatement(`SELECT t, name, (SELECT finished FROM jobs WHERE jobs.t = topics.t AND state = ?2
 AND finished >= ?3 ORDER BY finished LIMIT 1) FROM topics WHERE namespace = ?1 AND ` + keptInState)
	LastEnds = db.NewStatement(`SELECT t, name, (SELECT finished FROM jobs WHERE jobs.t = topics.t AND state = ?2
 AND finished <= ?3 ORDER BY finished DESC LIMIT 1) FROM topics WHERE namespace = ?1 AND ` + keptInState)
	PageTopics = db.NewStatement(`SELECT name FROM topics WHERE namespace = ?1 AND name > ?2 AND registered > 0 AND ` +
		notInternal + `
 ORDER BY name LIMIT ?3`)
	AllTopics = db.NewStatement(`SELECT t, namespace, name, limits, coalesce(revision, 0), registered, delivered, ` +
		`dead, cancelled, bytes, kept_done, kept_done_bytes,
 kept_dead, kept_dead_bytes, ids, alarm, grants
 FROM topics LEFT JOIN (SELECT namespace, name, revision, limits FROM settings WHERE kind = 'topic') USING ` +
		`(namespace, name)`)
	PendingQueues = db.NewStatement(loadedQueue + ` FROM queues INDEXED BY queues_pending ` + laneLimits + `
 WHERE unfinished > 0`)
	ThrottledQueues = db.NewStatement(loadedQueue + ` FROM queues INDEXED BY queues_throttled ` + laneLimits + `
 WHERE throttle IS NOT NULL`)
	UnhealthyQueues = db.NewStatement(loadedQueue + ` FROM queues INDEXED BY queues_unhealthy ` + laneLimits + `
 WHERE health IS NOT NULL`)
	AllMeta     = db.NewStatement(`SELECT key, value FROM meta`)
	ReadMeta    = db.NewStatement(`SELECT value FROM meta WHERE key = ?`)
	CountOutbox = db.NewStatement(`SELECT count(*) FROM outbox`)
	LastNumbers = db.NewStatement(`SELECT (SELECT max(n) FROM jobs), (SELECT max(q) FROM queues), (SELECT max(t) ` +
		`FROM topics),
 (SELECT max(a) FROM first_attempts), (SELECT max(r) FROM replies)`)
	Probe = db.NewStatement(`INSERT INTO outbox (seq, namespace, id, entry) VALUES (-1, '', '', zeroblob(16384))`)
)
