package sqlite

import (
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// queryValue returns the first column of a query on the writer's connection.
func queryValue(t *testing.T, s *Store, sql string) (value driver.Value) {
	t.Helper()
	var err error
	inWriter(t, s, func() {
		err = s.db.Conn().QueryText(t.Context(), sql, func(v []driver.Value) error {
			value = v[0]
			return nil
		})
	})
	require.NoError(t, err)
	return value
}

func TestClaim_WritesNoJobAndShowsInTheOverview(t *testing.T) {
	s := openStore(t, options(t))
	insert(t, s, newJobs("job", 3, 0)...)
	before := queryValue(t, s, "SELECT json_group_array(state || due || attempts) FROM jobs")
	h := claimJobs(t, s, 2)
	require.Equal(t, before, queryValue(t, s, "SELECT json_group_array(state || due || attempts) FROM jobs"))
	require.Equal(t, "[[1,1],[1,2]]", queryValue(t, s, "SELECT jobs FROM leases"))
	states := "SELECT group_concat(state) FROM (SELECT state FROM overview ORDER BY id)"
	require.Equal(t, "running,running,scheduled", queryValue(t, s, states))
	settle(t, s, settlementOf(h[0], deliveredVerdict))
	require.Equal(t, "[[1,2]]", queryValue(t, s, "SELECT jobs FROM leases"))
	require.Equal(t, "delivered,running,scheduled", queryValue(t, s, states))
	settle(t, s, settlementOf(h[1], againVerdict))
	require.Equal(t, int64(0), queryValue(t, s, "SELECT count(*) FROM leases"))
}

// A shell whose SQLite does not know one word of the schema refuses the whole file.
func TestSchema_SuitsOldShells(t *testing.T) {
	require.NotContains(t, table.Tables, "->", "operators on JSON came with 3.38, in 2022")
}

func TestClaim_ReadsPastLeasedJobs(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJobs("job", 6, 0)...)
	h := claimJobs(t, s, 4)
	require.Len(t, h, 4)
	// A job that is due before the claimed ones, which then lie between it and the rest.
	early := newJob("early", 0)
	early.RunAt = time.UnixMilli(1)
	c.jump(-time.Hour)
	insert(t, s, early)
	c.jump(time.Hour)
	var ids []string
	for _, h := range claimJobs(t, s, 3) {
		ids = append(ids, h.ID)
	}
	require.Equal(t, []string{"early", "job-0004", "job-0005"}, ids)
}

func TestLeases_TakeSeveralRowsWhenThereAreMany(t *testing.T) {
	o := options(t)
	o.Limits.Concurrency = 1000
	s := openStore(t, o)
	insert(t, s, newJobs("job", 2*memory.BatchJobs+1, 0)...)
	jobs := claimJobs(t, s, 2*memory.BatchJobs+1)
	require.Len(t, jobs, 2*memory.BatchJobs+1)
	require.Equal(t, int64(3), queryValue(t, s, "SELECT count(*) FROM leases"))
	settle(t, s, settlementOf(jobs[2*memory.BatchJobs], deliveredVerdict), settlementOf(jobs[7], deliveredVerdict))
	require.Equal(t, int64(2), queryValue(t, s, "SELECT count(*) FROM leases"))
	after := openCopy(t, o)
	require.Equal(t, int64(0), queryValue(t, after, "SELECT count(*) FROM leases"))
	require.Equal(t, 1, get(t, after, "job-0000").ConsecutiveLost)
	require.Equal(t, job.Delivered, get(t, after, "job-0007").State)
}

func TestList_PagesRunningJobsAndShowsThemNotAsReady(t *testing.T) {
	o := options(t)
	o.Limits.Concurrency = 100
	s := openStore(t, o)
	var want []string
	for _, name := range []string{"a", "b"} {
		for i := range 7 {
			insert(t, s, newJobInLane(name, fmt.Sprintf("%s-%d", name, i), 0))
		}
		request := claimRequest(5)
		request.Queues[0].Queue.Lane = name
		claimed, err := s.Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		require.Len(t, claimed.Jobs, 5)
		for i := range 5 {
			want = append(want, fmt.Sprintf("%s-%d", name, i))
		}
	}
	list := func(state job.State) (ids []string) {
		filter := store.Filter{
			Namespace: lane.Namespace, Topic: lane.Topic,
			States: []job.State{state}, Limit: 3, Oldest: true,
		}
		for more := true; more; {
			page, err := s.List(t.Context(), filter)
			require.NoError(t, err)
			for _, j := range page.Jobs {
				require.Equal(t, state, j.State)
				ids = append(ids, j.ID)
			}
			filter.After, more = page.Reached, page.More
		}
		return ids
	}
	require.Equal(t, want, list(job.Running))
	require.Equal(t, []string{"a-5", "a-6", "b-5", "b-6"}, list(job.Ready))
	require.Equal(t, job.Running, get(t, s, "b-4").State)
	lanes, err := s.LaneStats(t.Context(), lane.Namespace, lane.Topic, "", 10)
	require.NoError(t, err)
	require.Equal(t, []int64{5, 2}, []int64{lanes[0].Running, lanes[0].Ready + lanes[0].Scheduled})
}

// A page reads a bounded number of names, here of 499 topics and of the first 500 lanes of one.
func TestList_OfRunningJobsGetsAheadInATopicWithManyLanes(t *testing.T) {
	s := openStore(t, options(t))
	jobs := newJobs("job", 1000, 0)
	for i := range jobs {
		if jobs[i].Topic = fmt.Sprintf("t-%03d", i); i >= 499 {
			jobs[i].Topic, jobs[i].Lane = "z", fmt.Sprintf("lane-%03d", i-499)
		}
	}
	insert(t, s, jobs[:500]...)
	insert(t, s, jobs[500:]...)
	request := claimRequest(1)
	request.Queues[0].Queue = jobs[999].Queue
	claimed, err := s.Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)

	filter := store.Filter{Namespace: lane.Namespace, States: []job.State{job.Running}, Limit: 5}
	page, err := s.List(t.Context(), filter)
	require.NoError(t, err)
	require.True(t, page.More)
	require.Empty(t, page.Jobs)
	require.Equal(t, store.Position{Topic: "z", Lane: "lane-499"}, page.Reached)
	filter.After = page.Reached
	page, err = s.List(t.Context(), filter)
	require.NoError(t, err)
	require.False(t, page.More)
	require.Len(t, page.Jobs, 1)
	require.Equal(t, jobs[999].ID, page.Jobs[0].ID)
}

func TestOpen_SkipsAnUnreadableRowOfLeases(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	insert(t, s, newJobs("job", 2, 0)...)
	require.Len(t, claimJobs(t, s, 2), 2)
	require.NoError(t, s.Close())
	shell(t, o.Path, "UPDATE leases SET jobs = 'no JSON'")
	s = openStore(t, o)
	require.Zero(t, get(t, s, "job-0000").ConsecutiveLost)
	require.Len(t, claimJobs(t, s, 2), 2)
}
