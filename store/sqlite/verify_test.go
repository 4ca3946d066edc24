package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// verifiedLanes bounds how many lanes, at random, verify looks at.
var verifiedLanes = testkit.Of(150, 10_000)

// verify compares each number that an open store keeps in memory with a count of the rows in the database.
func verify(t *testing.T, s *Store) {
	t.Helper()
	if s.db.Usable(context.Background(), "verify") != nil {
		return
	}
	var faults []string
	require.NoError(t, s.db.Submit(context.Background(), &op{Verb: "verify", Run: func(u *unit.Unit) error {
		faults = findFaults(u)
		return nil
	}}))
	require.Empty(t, faults)
}

// findFaults returns the numbers that differ.
func findFaults(u *unit.Unit) (faults []string) {
	ask := func(sql string, args ...any) int64 {
		var n int64
		err := u.Conn.QueryText(context.Background(), fmt.Sprintf(sql, args...), func(v []driver.Value) error {
			n = db.Int(v[0])
			return nil
		})
		if err != nil {
			faults = append(faults, err.Error())
		}
		return n
	}
	same := func(what string, memory, counted int64) {
		if memory != counted {
			faults = append(faults, fmt.Sprintf("%s: %d in memory, %d counted", what, memory, counted))
		}
	}
	m := u.Mem
	leasedBy := make(map[*memory.Queue]int64)
	var marked, entries int64
	for _, h := range m.Leases {
		leasedBy[h.Queue]++
		entries += h.Entries
		if h.Cancel {
			marked++
		}
	}
	same("marked to be cancelled", marked, ask("SELECT count(*) FROM jobs WHERE cancel_requested = 1"))
	const marks = "SELECT value ->> 1 FROM leases, json_each(leases.jobs)"
	same("entries of leased jobs", entries, ask("SELECT coalesce(sum(entries), 0) FROM jobs WHERE n IN (%s)", marks))
	same("leased by number", int64(len(m.Leases)), int64(len(m.LeaseByNumber)))
	same("leased in the database", int64(len(m.Leases)), ask("SELECT count(*) FROM leases, json_each(leases.jobs)"))
	numbers := int64(0)
	for n := range m.LeaseByNumber {
		numbers += n
	}
	const asMarked = " FROM leases, json_each(leases.jobs), jobs WHERE n = value ->> 1 AND q = value ->> 0 AND " +
		"finished IS NULL"
	same("leased in their lane", int64(len(m.Leases)), ask("SELECT count(*)"+asMarked))
	same("their numbers", numbers, ask("SELECT coalesce(sum(n), 0)"+asMarked))
	looked := 0
	for _, q := range m.Queues {
		if looked++; looked > verifiedLanes {
			break
		}
		name := q.Name.String()
		faults = append(faults, throttleFaults(u, q, ask)...)
		same(name+" waiting", q.Waiting,
			ask("SELECT count(*) FROM jobs WHERE q = %d AND state = 'scheduled' AND n NOT IN (%s)", q.Id, marks))
		same(name+" running", q.Running,
			ask("SELECT count(*) FROM jobs WHERE q = %d AND state = 'scheduled' AND n IN (%s)", q.Id, marks))
		same(name+" leased", q.Running, leasedBy[q])
		same(name+" rows", q.Rows, ask("SELECT count(*) FROM jobs WHERE q = %d", q.Id))
		same(name+" ready", q.Ready, ask("SELECT count(*) FROM jobs WHERE q = %d AND state = 'scheduled' AND (due, "+
			"n) <= (%d, %d) AND n NOT IN (%s)",
			q.Id, q.Mark.Due, q.Mark.N, marks))
		if q.Order.Done {
			same(name+" without order", 0,
				ask("SELECT count(*) FROM jobs WHERE q = %d AND state = 'scheduled' AND ordered IS NULL", q.Id))
		}
		switch {
		case q.Waiting == 0 || !q.HeadKnown:
		case !q.Limits().Ordered:
			same(name+" head", q.Head.N, ask(
				"SELECT n FROM jobs WHERE q = %d AND state = 'scheduled' AND n NOT IN (%s) ORDER BY due, n LIMIT 1",
				q.Id, marks))
		case ask("SELECT count(*) FROM jobs WHERE n = %d AND ordered = 0", q.Head.N) > 0: // else it is a moment
			same(name+" first in order", q.Head.N, ask("SELECT min(n) FROM jobs WHERE q = %d AND state = 'scheduled' "+
				"AND ordered = 0 AND n NOT IN (%s)", q.Id, marks))
		}
		for _, column := range []struct {
			name  string
			value int64
		}{{"unfinished", q.Waiting + q.Running}, {"rows", q.Rows}} {
			same(name+" stored "+column.name, column.value,
				ask("SELECT %s FROM queues WHERE q = %d", column.name, q.Id))
		}
	}
	looked = 0
	for _, topic := range m.Topics {
		if looked++; looked > verifiedLanes {
			break
		}
		faults = append(faults, topicFaults(u, topic, ask)...)
	}
	same("lanes with health", int64(len(m.Unhealthy)), ask("SELECT count(*) FROM queues WHERE health IS NOT NULL"))
	same("throttled lanes", int64(len(m.Throttled)), ask("SELECT count(*) FROM queues WHERE throttle IS NOT NULL"))
	same("outbox", m.Outbox, ask("SELECT count(*) FROM outbox"))
	same("remembered ids", m.Ids, ask("SELECT count(*) FROM ids"))
	same("leases on the agenda", int64(len(m.Agenda.Leases)), int64(len(m.Leases)))
	same("jobs without a queue", 0, ask("SELECT count(*) FROM jobs WHERE q NOT IN (SELECT q FROM queues)"))
	same("stray bodies", 0, ask(
		"SELECT count(*) FROM bodies WHERE n NOT IN (SELECT n FROM jobs WHERE body_size > %d)", table.InlineBody))
	same("stray attempts", 0, ask("SELECT count(*) FROM attempts WHERE n NOT IN (SELECT n FROM jobs)"))
	same("stray first entries", 0, ask("SELECT count(*) FROM first_attempts WHERE NOT EXISTS (SELECT 1 FROM jobs "+
		"WHERE jobs.n = first_attempts.n AND first = a)"))
	same("missing first entries", 0, ask(
		"SELECT count(*) FROM jobs WHERE first IS NOT NULL AND NOT EXISTS (SELECT 1 FROM first_attempts WHERE a = "+
			"first AND first_attempts.n = jobs.n)"))
	same("entries", ask("SELECT coalesce(sum(entries), 0) FROM jobs WHERE entries <= 20"),
		ask("SELECT (SELECT count(*) FROM first_attempts JOIN jobs USING (n) WHERE entries <= 20) + "+
			"(SELECT count(*) FROM attempts JOIN jobs USING (n) WHERE entries <= 20)"))
	same("entries without a job", 0, ask("SELECT count(*) FROM attempts WHERE n NOT IN (SELECT n FROM jobs)"))
	same("records that are too long", 0,
		ask("SELECT count(*) FROM (SELECT n FROM attempts GROUP BY n HAVING count(*) > 60)"))
	same("indexes", 1, ask("SELECT integrity_check = 'ok' FROM pragma_integrity_check"))
	return faults
}

func topicFaults(u *unit.Unit, t *memory.Topic, ask func(string, ...any) int64) (faults []string) {
	var waiting, ready, running int64
	for q := range t.Queues {
		waiting, ready, running = waiting+q.Waiting, ready+q.Ready, running+q.Running
	}
	kept := func(column string, states string) int64 {
		return ask("SELECT coalesce(sum(%s), 0) FROM jobs WHERE t = %d AND state IN (%s)", column, t.Id, states)
	}
	done, dead := fmt.Sprintf("'%s', '%s'", job.Delivered, job.Cancelled), fmt.Sprintf("'%s'", job.Dead)
	size := "max(body_size, 0) + length(CAST(url AS BLOB)) + coalesce(length(spec), 0)"
	for _, c := range []struct {
		what            string
		memory, counted int64
	}{
		{"waiting", t.Waiting, waiting},
		{"ready", t.Ready, ready},
		{"running", t.Running, running},
		{"registered", t.Registered, t.Delivered + t.Dead + t.Cancelled + waiting + running},
		{"bytes", t.Bytes, kept(size, "'"+string(job.Scheduled)+"'")},
		{"stored bytes", t.Bytes, ask("SELECT bytes FROM topics WHERE t = %d", t.Id)},
		{"kept done", t.KeptDone.Jobs, kept("1", done)},
		{"kept done bytes", t.KeptDone.Bytes, kept(size, done)},
		{"kept dead", t.KeptDead.Jobs, kept("1", dead)},
		{"kept dead bytes", t.KeptDead.Bytes, kept(size, dead)},
		{"ids", t.Ids, ask("SELECT count(*) FROM ids WHERE t = %d", t.Id)},
		{"stored registered", t.Registered, ask("SELECT registered FROM topics WHERE t = %d", t.Id)},
		{"stored delivered", t.Delivered, ask("SELECT delivered FROM topics WHERE t = %d", t.Id)},
		{"stored dead", t.Dead, ask("SELECT dead FROM topics WHERE t = %d", t.Id)},
		{"stored cancelled", t.Cancelled, ask("SELECT cancelled FROM topics WHERE t = %d", t.Id)},
		{"stored alarm", oneIf(t.Alarm), ask("SELECT coalesce(alarm, 0) FROM topics WHERE t = %d", t.Id)},
		{"stored grants", oneIf(t.Grants != nil), ask("SELECT grants IS NOT NULL FROM topics WHERE t = %d", t.Id)},
		{"stored kept", t.KeptDone.Jobs +
			t.KeptDead.Jobs, ask("SELECT kept_done + kept_dead FROM topics WHERE t = %d", t.Id)},
	} {
		if c.memory != c.counted {
			faults = append(faults,
				fmt.Sprintf("topic %s %s: %d in memory, %d counted", t.Name.Name, c.what, c.memory, c.counted))
		}
	}
	return faults
}

func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// throttleFaults compares the throttle and the settings of a lane.
func throttleFaults(u *unit.Unit, q *memory.Queue, ask func(string, ...any) int64) (faults []string) {
	g := memory.None
	if q.Throttle != nil {
		g = *q.Throttle
	}
	_, throttled := u.Mem.Throttled[q]
	_, open := q.Topic.OpenBreakers[q]
	revision := int64(0)
	if q.LaneConfig != nil {
		revision = q.LaneConfig.Revision
	}
	for _, c := range []struct {
		what            string
		memory, counted int64
	}{
		{"throttled", oneIf(q.Throttle != nil), oneIf(throttled)},
		{"stored throttle", oneIf(q.Throttle != nil), ask(
			"SELECT throttle IS NOT NULL FROM queues WHERE q = %d", q.Id,
		)},
		{"open", oneIf(g.Open), oneIf(open)},
		{"stored open", oneIf(g.Open), ask("SELECT coalesce(throttle ->> 'open', 0) FROM queues WHERE q = %d", q.Id)},
		{"stored starts", int64(len(g.Starts)), ask(
			"SELECT coalesce(json_array_length(throttle, '$.starts'), 0) FROM queues WHERE q = %d", q.Id)},
		{"revision", revision, ask("SELECT coalesce(max(revision), 0) FROM settings WHERE kind = 'lane' AND "+
			"namespace = '%s' AND name = '%s' AND lane = '%s'",
			q.Name.Namespace, q.Name.Topic, q.Name.Lane)},
	} {
		if c.memory != c.counted {
			faults = append(faults, fmt.Sprintf("%s %s: %d in memory, %d found", q.Name, c.what, c.memory, c.counted))
		}
	}
	return faults
}
