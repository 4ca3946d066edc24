package sqlite

import (
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
)

// A check finds the rows of a table that violate an invariant, and may repair them.
type check struct {
	kind   store.RepairKind
	detail string
	// find reads the key, the name of the queue and the id of each wrong row, of those with keys above ?1 and up to ?2.
	find db.Statement
	// mend are the statements that repair the row with the key ?1. ?2 is the time in ms.
	mend []db.Statement
}

// jobName is a job's id, with its namespace before it outside the default one. queueName is its queue's name.
const (
	jobName   = `iif(jobs.namespace = '` + job.DefaultNamespace + `', id, jobs.namespace || '/' || id)`
	queueName = `(SELECT queues.namespace || '/' || topic || '/' || lane FROM queues WHERE queues.q = jobs.q)`
	// findJobs begins the finding of jobs.
	findJobs = `SELECT n, ` + queueName + `, ` + jobName + ` FROM jobs WHERE n > ?1 AND n <= ?2 AND `
	// jobSize is table.Row.Size.
	jobSize = `max(body_size, 0) + length(CAST(url AS BLOB)) + length(spec)`
	// ended are the states of jobs that have ended.
	ended = `('` + string(job.Delivered) + `', '` + string(job.Dead) + `', '` + string(job.Cancelled) + `')`
	// topicOfQueue is the topic of a job's queue.
	topicOfQueue = `(SELECT topics.t FROM queues JOIN topics ON topics.namespace = queues.namespace AND topics.name ` +
		`= queues.topic
 WHERE queues.q = jobs.q)`
)

// spans read the last of the next ?2 keys above ?1, and their number.
var (
	spanOfJobs = db.NewStatement(`SELECT max(n), count(*) FROM (SELECT n FROM jobs WHERE n > ?1 ORDER BY n ` +
		`LIMIT ?2)`)
	spanOfBodies = db.NewStatement(`SELECT max(n), count(*) FROM (SELECT n FROM bodies WHERE n > ?1 ORDER BY n ` +
		`LIMIT ?2)`)
	spanOfFirst = db.NewStatement(`SELECT max(a), count(*) FROM (SELECT a FROM first_attempts WHERE a > ?1 ORDER ` +
		`BY a LIMIT ?2)`)
	spanOfAttempts = db.NewStatement(`SELECT max(n), count(*) FROM (SELECT DISTINCT n FROM attempts WHERE n > ?1 ` +
		`ORDER BY n LIMIT ?2)`)
	spanOfQueues = db.NewStatement(`SELECT max(q), count(*) FROM (SELECT q FROM queues WHERE q > ?1 ORDER BY q ` +
		`LIMIT ?2)`)
)

// checksOfQueues come first: a job's topic is that of its queue.
var checksOfQueues = []check{{
	store.RepairQueue, "its topic does not exist",
	db.NewStatement(`SELECT q, namespace || '/' || topic || '/' || lane, '' FROM queues WHERE q > ?1 AND q <= ?2
 AND NOT EXISTS (SELECT 1 FROM topics WHERE topics.namespace = queues.namespace AND name = topic)`),
	[]db.Statement{db.NewStatement(`INSERT OR IGNORE INTO topics (namespace, name) SELECT namespace, topic FROM ` +
		`queues WHERE q = ?1`)},
}}

var checksOfJobs = []check{
	{
		store.RepairUnplaced, "its lane does not exist, so that nothing claims or lists it",
		db.NewStatement(findJobs + `NOT EXISTS (SELECT 1 FROM queues WHERE queues.q = jobs.q)`),
		[]db.Statement{db.NewStatement(`INSERT OR IGNORE INTO queues (q, namespace, topic, lane)
 SELECT q, topics.namespace, name, 'lost-' || q FROM jobs JOIN topics USING (t) WHERE n = ?1`)},
	},
	{
		store.RepairMisplaced, "it is counted under another topic than its lane's",
		db.NewStatement(findJobs + `t <> ` + topicOfQueue),
		[]db.Statement{db.NewStatement(`UPDATE jobs SET t = ` + topicOfQueue + ` WHERE n = ?1`)},
	},
	{
		store.RepairUnplaced,
		"it has an end without the state of one; a repair makes it dead, so that it can be revived",
		db.NewStatement(findJobs + `finished IS NOT NULL AND state NOT IN ` + ended),
		[]db.Statement{db.NewStatement(`UPDATE jobs SET state = '` + string(job.Dead) +
			`', reason = 'exhausted', cancel_requested = 0 WHERE n = ?1`)},
	},
	{
		store.RepairUnplaced, "it has the state of an ended job, and no end",
		db.NewStatement(findJobs + `finished IS NULL AND state IN ` + ended),
		[]db.Statement{db.NewStatement(`UPDATE jobs SET finished = ?2, cancel_requested = 0 WHERE n = ?1`)},
	},
	{
		store.RepairUnplaced,
		"it has an unknown state, and waits for nothing; a repair makes it dead, so that it can be revived",
		db.NewStatement(findJobs + `finished IS NULL AND state NOT IN ` + ended + ` AND state <> '` +
			string(job.Scheduled) + `'`),
		[]db.Statement{db.NewStatement(`UPDATE jobs SET state = '` +
			string(job.Dead) + `', reason = 'exhausted', finished = ?2, cancel_requested = 0 WHERE n = ?1`)},
	},
	{
		store.RepairLifetime, "it expires, and is missing from the index of expiries",
		db.NewStatement(findJobs + `finished IS NULL AND ttl_end IS NULL AND expires > ?3`),
		[]db.Statement{db.NewStatement(`UPDATE jobs SET ttl_end = expires WHERE n = ?1`)},
	},
	{
		store.FaultBody, "its body is lost",
		db.NewStatement(findJobs + `body_size > 2048 AND NOT EXISTS (SELECT 1 FROM bodies WHERE bodies.n = jobs.n)`),
		nil,
	},
}

var checksOfBodies = []check{{
	store.RepairLeftover, "a body without a job",
	db.NewStatement(`SELECT n, 'bodies', 'number ' || n FROM bodies WHERE n > ?1 AND n <= ?2
 AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.n = bodies.n AND body_size > 2048)`),
	[]db.Statement{db.NewStatement(`DELETE FROM bodies WHERE n = ?1`)},
}}

var checksOfFirst = []check{{
	store.RepairLeftover, "an attempt without a job",
	db.NewStatement(`SELECT a, 'first_attempts', 'number ' || n FROM first_attempts WHERE a > ?1 AND a <= ?2
 AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.n = first_attempts.n AND first = a)`),
	[]db.Statement{db.NewStatement(`DELETE FROM first_attempts WHERE a = ?1`)},
}}

var checksOfAttempts = []check{{
	store.RepairLeftover, "attempts without a job",
	db.NewStatement(`SELECT n, 'attempts', 'number ' || n FROM attempts WHERE n > ?1 AND n <= ?2
 AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.n = attempts.n) GROUP BY n`),
	[]db.Statement{db.NewStatement(`DELETE FROM attempts WHERE n = ?1`)},
}}

var (
	readSpecs = db.NewStatement(`SELECT ` + queueName + `, ` + jobName + `, spec FROM jobs WHERE n > ?1 AND n <= ?2`)
	sumJobs   = db.NewStatement(`SELECT q, t, state, finished IS NULL, count(*), sum(` + jobSize + `) FROM jobs
 WHERE n > ?1 AND n <= ?2 GROUP BY 1, 2, 3, 4`)
	readLeases = db.NewStatement(`SELECT c, claimed, jobs FROM leases WHERE c > ?1 ORDER BY c LIMIT ?2`)
	// findMark reads a job of a lease: its queue, whether it has ended, its queue's name and its id.
	findMark = db.NewStatement(`SELECT q, finished IS NOT NULL, ` + queueName + `, ` + jobName +
		` FROM jobs WHERE n = ?`)
	updateLease = db.NewStatement(`UPDATE leases SET jobs = ?2 WHERE c = ?1`)
	deleteLease = db.NewStatement(`DELETE FROM leases WHERE c = ?`)
	readQueues  = db.NewStatement(`SELECT q, namespace || '/' || topic || '/' || lane, unfinished, rows FROM queues
 WHERE q > ?1 ORDER BY q LIMIT ?2`)
	updateQueue = db.NewStatement(`UPDATE queues SET unfinished = ?2, rows = ?3 WHERE q = ?1`)
	readTopics  = db.NewStatement(`SELECT t, namespace || '/' || name, registered, delivered, dead, cancelled, ` +
		`bytes, kept_done, kept_done_bytes,
 kept_dead, kept_dead_bytes, ids FROM topics WHERE t > ?1 ORDER BY t LIMIT ?2`)
	countIDs    = db.NewStatement(`SELECT count(*) FROM ids WHERE t = ?`)
	updateTopic = db.NewStatement(`UPDATE topics SET registered = ?2, delivered = ?3, dead = ?4, cancelled = ?5, ` +
		`bytes = ?6, kept_done = ?7,
 kept_done_bytes = ?8, kept_dead = ?9, kept_dead_bytes = ?10, ids = ?11 WHERE t = ?1`)
	readOutbox   = db.NewStatement(`SELECT seq, namespace, id, entry FROM outbox WHERE seq > ?1 ORDER BY seq LIMIT ?2`)
	updateOutbox = db.NewStatement(`UPDATE OR REPLACE outbox SET namespace = ?2, id = ?3 WHERE seq = ?1`)
)
