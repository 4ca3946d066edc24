package sqlite

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
)

// fillLists inserts a million jobs: two fifths that have ended in 200 topics, two that wait in one lane of the topic
// long, and one in 10,000 lanes of the topic lanes.
const fillLists = `
DELETE FROM jobs; DELETE FROM queues; DELETE FROM topics;
WITH RECURSIVE some(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM some WHERE n < 200)
 INSERT INTO topics (t, namespace, name, registered, kept_dead, dead) SELECT n, 'default', 'topic-' || n, 2000, ` +
	`2000, 2000 FROM some;
INSERT INTO topics (t, namespace, name, registered) VALUES (201, 'default', 'long', 400000), (202, 'default', ` +
	`'lanes', 200000);
WITH RECURSIVE some(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM some WHERE n < 200)
 INSERT INTO queues (q, namespace, topic, lane, rows) SELECT n, 'default', 'topic-' || n, 'l', 2000 FROM some;
INSERT INTO queues (q, namespace, topic, lane, rows, unfinished) VALUES (201, 'default', 'long', 'l', 400000, 400000);
WITH RECURSIVE some(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM some WHERE n < 10000)
 INSERT INTO queues (q, namespace, topic, lane, rows, unfinished) SELECT 300 + n, 'default', 'lanes', ` +
	`printf('lane-%%05d', n), 20, 20 FROM some;
WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 1000000)
 INSERT INTO jobs (n, q, t, state, due, finished, reason, answer, version, generation, attempts, failed_attempts, ` +
	`consecutive_lost, cancel_requested,
  entries, created, first_due, expires, namespace, id, url, timeout, body_size, spec)
 SELECT 10 + n,
  CASE WHEN n <= 400000 THEN 1 + n %% 200 WHEN n <= 800000 THEN 201 ELSE 301 + n %% 10000 END,
  CASE WHEN n <= 400000 THEN 1 + n %% 200 WHEN n <= 800000 THEN 201 ELSE 202 END,
  CASE WHEN n > 400000 THEN 'scheduled' WHEN n %% 2 THEN 'dead' ELSE 'delivered' END,
  4102444800000 + n / 3, CASE WHEN n <= 400000 THEN 1772366400000 + n / 3 END, CASE WHEN n <= 400000 AND n %% 2 THEN ` +
	`'exhausted' END, 500, 1, 0, 1, 1, 0, 0,
  0, 1772366400000, 1772366400000, 0, 'default', 'job-' || n, 'http://127.0.0.1:9999/hooks/close', 10000, 0, x'%x' ` +
	`FROM many`

// BenchmarkList reads pages of lists of a million jobs, one after the other, and reports the time of a page.
func BenchmarkList(b *testing.B) {
	o := options(b)
	o.driver = nil
	s, err := Open(b.Context(), o)
	require.NoError(b, err)
	e := benchEntries(1, "first", time.Hour)[0]
	e.Labels = map[string]string{"customer": "42", "tier": "gold"}
	insert(b, s, e)
	require.NoError(b, s.Close())
	var spec []byte
	c := dial(b, o.Path)
	rows, err := c.QueryContext(b.Context(), "SELECT spec FROM jobs", nil)
	require.NoError(b, err)
	row := make([]driver.Value, 1)
	require.NoError(b, rows.Next(row))
	spec = slices.Clone(db.Blob(row[0]))
	require.NoError(b, rows.Close())
	require.NoError(b, c.Close())
	shell(b, o.Path, fmt.Sprintf(fillLists, spec))
	s, err = Open(b.Context(), o)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	dead, waiting := []job.State{job.Dead}, []job.State{job.Scheduled}
	for _, bench := range []struct {
		name   string
		filter store.Filter
	}{
		{"all jobs", store.Filter{}},
		{"dead letters of all topics, newest first", store.Filter{States: dead}},
		{"dead letters of one topic, oldest first", store.Filter{States: dead, Topic: "topic-8", Oldest: true}},
		{"ended jobs of all topics, oldest " +
			"first", store.Filter{States: []job.State{job.Dead, job.Delivered, job.Cancelled}, Oldest: true}},
		{"one long lane, newest first", store.Filter{Topic: "long", States: waiting}},
		{"one long lane, oldest first", store.Filter{Topic: "long", Lane: "l", Oldest: true}},
		{"many lanes", store.Filter{Topic: "lanes"}},
		{"many lanes, running jobs", store.Filter{Topic: "lanes", States: []job.State{job.Running}}},
		{"a lane of any topic", store.Filter{Lane: "lane-05000"}},
		{"label of no job", store.Filter{Labels: []store.Label{{Key: "customer", Value: "none"}}}},
		{"label of no dead " +
			"letter", store.Filter{States: dead, Labels: []store.Label{{Key: "customer", Value: "none"}}}},
		{"prefix of no id", store.Filter{IDPrefix: "none"}},
		{"status of no job", store.Filter{Status: 404}},
		{"kind of no job", store.Filter{Kind: job.KindCallback}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			f := bench.filter
			f.Namespace, f.Limit, f.ScanLimit = job.DefaultNamespace, 100, 5000
			var times []time.Duration
			found, scanned, used := 0, 0, processorTime(b)
			for b.Loop() {
				began := time.Now()
				page, err := s.List(b.Context(), f)
				times = append(times, time.Since(began))
				require.NoError(b, err)
				found, scanned = found+len(page.Jobs), scanned+page.Scanned
				if f.After = page.Reached; !page.More {
					f.After = store.Position{}
				}
			}
			used = processorTime(b) - used
			slices.Sort(times)
			n := float64(len(times))
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(used.Microseconds())/1000/n, "cpu-ms/page")
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "median-ms")
			b.ReportMetric(float64(times[len(times)-1].Microseconds())/1000, "max-ms")
			b.ReportMetric(float64(found)/n, "jobs/page")
			b.ReportMetric(float64(scanned)/n, "scanned/page")
		})
	}
}
