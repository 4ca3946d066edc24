package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// manyEnded are 6,000 dead jobs.
const manyEnded = `
INSERT INTO topics (t, namespace, name, registered, kept_dead, dead) VALUES (1, 'default', 'orders', 6000, 6000, 6000);
INSERT INTO queues (q, namespace, topic, lane, rows) VALUES (1, 'default', 'orders', 'l', 6000);
INSERT INTO jobs (n, q, t, state, due, finished, version, generation, attempts, failed_attempts, consecutive_lost, ` +
	`cancel_requested, entries, created, first_due, expires,
  namespace, id, url, body_size, spec)
 WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 6000)
 SELECT n, 1, 1, 'dead', 1, 4102444800000, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 'default', 'job-' || n, '', -1, x'' FROM many;
UPDATE jobs SET reason = 'gave_up' WHERE n = 5500`

func TestList_LooksAtABoundedNumberOfJobsForAPage(t *testing.T) {
	o := options(t)
	require.NoError(t, openStore(t, o).Close())
	shell(t, o.Path, manyEnded)
	s := openStore(t, o)
	for name, filter := range map[string]store.Filter{
		"reason": {Reason: policy.ReasonGaveUp}, "status": {Status: 503},
	} {
		filter.Namespace, filter.Topic, filter.Limit, filter.ScanLimit = lane.Namespace, lane.Topic, 10, 5000
		pages, found := 0, 0
		for more := true; more; pages++ {
			page, err := s.List(t.Context(), filter)
			require.NoError(t, err)
			found += len(page.Jobs)
			require.LessOrEqual(t, page.Scanned, 5000)
			filter.After, more = page.Reached, page.More
		}
		require.GreaterOrEqual(t, pages, 2, name)
		require.Equal(t, int(oneIf(filter.Reason != "")), found, name)
	}
}

func TestList_GoesOnOverManyTopicsAndLanes(t *testing.T) {
	s := openStore(t, options(t))
	var entries []store.NewJob
	for i := range 1100 {
		topic, lane := newJobInLane("l", fmt.Sprintf("topic-%d", i), time.Hour), newJobInLane(fmt.Sprintf("lane-%d", i),
			fmt.Sprintf("lane-%d", i), time.Hour)
		topic.Topic = fmt.Sprintf("topic-%04d", i)
		entries = append(entries, topic, lane)
	}
	last := newJobInLane("z", "last", time.Hour)
	last.Topic, last.Labels = "z", map[string]string{"a": "b"}
	for part := range slices.Chunk(append(entries, last), store.MaxBatch) {
		insert(t, s, part...)
	}
	for _, filter := range []store.Filter{{Lane: "z"}, {Labels: []store.Label{{Key: "a", Value: "b"}}}} {
		filter.Namespace, filter.Limit = lane.Namespace, 10
		pages, found := 0, 0
		for more := true; more; pages++ {
			page, err := s.List(t.Context(), filter)
			require.NoError(t, err)
			require.LessOrEqual(t, page.Scanned, 1000)
			require.True(t, !page.More || page.Reached.Compare(filter.After, false) > 0, "%+v", page.Reached)
			found += len(page.Jobs)
			filter.After, more = page.Reached, page.More
		}
		require.Equal(t, 1, found)
		require.Greater(t, pages, 1)
	}
}

func TestList_LeavesOutAnUnreadableJobAndLogsIt(t *testing.T) {
	for state, reach := range map[job.State]func(*testing.T, *Store){
		job.Ready:   func(*testing.T, *Store) {},
		job.Running: func(t *testing.T, s *Store) { require.Len(t, claimJobs(t, s, 3), 3) },
		job.Dead: func(t *testing.T, s *Store) {
			for _, h := range claimJobs(t, s, 3) {
				settle(t, s, settlementOf(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}))
			}
		},
	} {
		t.Run(string(state), func(t *testing.T) {
			o := options(t)
			log := captureLog(&o)
			s := openStore(t, o)
			insert(t, s, newJobs("job", 3, 0)...)
			reach(t, s)
			shell(t, o.Path, "UPDATE jobs SET "+unreadableSpec+" WHERE id = 'job-0001'")
			filter := store.Filter{
				Namespace: lane.Namespace, Topic: lane.Topic,
				States: []job.State{state}, Limit: 2, Oldest: true,
			}
			var ids []string
			for more := true; more; {
				page, err := s.List(t.Context(), filter)
				require.NoError(t, err)
				for _, j := range page.Jobs {
					ids = append(ids, j.ID)
				}
				filter.After, more = page.Reached, page.More
			}
			filter.After = store.Position{}
			require.Equal(t, []string{"job-0000", "job-0002"}, ids)
			for range 30 {
				_, err := s.List(t.Context(), filter)
				require.NoError(t, err)
			}
			require.Equal(t, 20, strings.Count(log.String(), "level=ERROR"), "for a while: %s", log)
			require.Contains(t, log.String(), "job=job-0001")
		})
	}
}
