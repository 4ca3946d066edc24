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
	"github.com/ringback/ringback/store/sqlite/table"
)

func TestClaim_ReadsNoMoreRowsThanItTakes(t *testing.T) {
	s := openStore(t, options(t))
	insert(t, s, newJob("a", 0))
	insert(t, s, newJobs("later", 100, time.Hour)...)
	other := newLargeJobs("other", 20, 1000)
	for i := range other {
		other[i].Lane, other[i].Delay = "other", 0
	}
	insert(t, s, other...)
	read := 0
	hookSQL(s, table.ClaimableJobs.Text(),
		&hook{do: func(int, []driver.NamedValue) error { return nil }, read: func() { read++ }})
	claim := func(request store.ClaimRequest) store.ClaimResult {
		read = 0
		claimed, err := s.Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		return claimed
	}
	request := claimRequest(50)
	second := request.Queues[0]
	second.Queue.Lane = "other"
	request.Queues = []store.QueueClaim{second, request.Queues[0]}
	request.MaxBytes = 2000

	claimed := claim(request)
	require.Len(t, claimed.Jobs, 2)
	require.True(t, claimed.Queues[0].More)
	require.True(t, claimed.Queues[1].More)
	require.Equal(t, 2, read, "the two that fit, and nothing of the other queue")

	claimed = claim(claimRequest(50))
	require.Len(t, claimed.Jobs, 1)
	require.False(t, claimed.Queues[0].More)
	require.LessOrEqual(t, read, 2, "the one that is due, and the end of the rows")
}

func TestClaim_ReadsAtMostOneBodyOfAQueueThatDoesNotFit(t *testing.T) {
	s := openStore(t, options(t))
	const lanes, size = 8, 256 << 10
	request := store.ClaimRequest{Max: store.MaxBatch, MaxBytes: 3*size + size/2, Margin: time.Second}
	for lane := range lanes {
		entries := newLargeJobs(fmt.Sprint("lane-", lane), 10, size)
		for i := range entries {
			entries[i].Lane, entries[i].Delay = fmt.Sprint("lane-", lane), 0
		}
		insert(t, s, entries...)
		request.Queues = append(request.Queues,
			store.QueueClaim{Queue: entries[0].Queue, Max: store.MaxBatch, Timeout: time.Second})
	}
	small := newJobInLane("small", "small", 0)
	insert(t, s, small)
	request.Queues = append(request.Queues, store.QueueClaim{Queue: small.Queue, Max: 1, Timeout: time.Second})
	read := 0
	hookSQL(s, table.ClaimableJobs.Text(),
		&hook{do: func(int, []driver.NamedValue) error { return nil }, read: func() { read++ }})
	claimed, err := s.Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 4)
	require.Equal(t, "small", claimed.Jobs[3].ID, "it fits, unlike the next of each other lane")
	require.LessOrEqual(t, read, 3+lanes+2, "the jobs, a body of each lane, and the end of the rows")
	for _, q := range claimed.Queues[:lanes] {
		require.True(t, q.More)
	}

	inWriter(t, s, func() {
		for _, q := range s.mem.Queues {
			require.False(t, q.InClaim)
		}
	})
	const larger = 2 << 20
	for lane := range lanes {
		entries := newLargeJobs(fmt.Sprint("larger-", lane), 1, larger)
		entries[0].Lane, entries[0].Delay = fmt.Sprint("larger-", lane), 0
		insert(t, s, entries...)
		request.Queues[lane].Queue = entries[0].Queue
	}
	insert(t, s, newJobInLane("small", "first", 0), newJobInLane("small", "last", 0))
	request.Queues = append(request.Queues[lanes:], request.Queues...)
	read = 0
	claimed, err = s.Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1, "what does not fit is too much to read on")
	require.LessOrEqual(t, read, 1+1+2, "the job, the end of its rows, and two bodies that do not fit")
	require.True(t, claimed.Queues[lanes+1].More)
	require.False(t, claimed.Queues[lanes].Blocked)
}

func TestClaim_SkipsAnUnreadableJob(t *testing.T) {
	o := options(t)
	log := captureLog(&o)
	s := openStore(t, o)
	insert(t, s, newJobs("job", 4, 0)...)
	shell(t, o.Path, "UPDATE jobs SET "+unreadableSpec+" WHERE id IN ('job-0001', 'job-0002')")
	jobs := claimJobs(t, s, 4)
	require.Len(t, jobs, 2)
	require.Equal(t, job.Running, jobs[0].State)
	require.Contains(t, log.String(), "job=job-0001")
	require.Contains(t, log.String(), "job=job-0002")
}

func TestClaim_TakesFromManyQueuesInOrder(t *testing.T) {
	s := openStore(t, options(t))
	const lanes = 2*claimBatch + 7
	request := store.ClaimRequest{Max: lanes, MaxBytes: 1 << 20, Margin: time.Second}
	var entries []store.NewJob
	var want []string
	for i := range lanes {
		for k := range 2 {
			entries = append(entries, newJobInLane(fmt.Sprintf("lane-%03d", i), fmt.Sprintf("job-%03d-%d", i, k), 0))
		}
		queue := store.QueueClaim{Queue: entries[2*i].Queue, Max: 1, Timeout: time.Second}
		request.Queues, want = append(request.Queues, queue), append(want, entries[2*i].ID)
	}
	request.Queues[1], want[1] = request.Queues[0], entries[1].ID // a queue that is named twice
	for part := range slices.Chunk(entries, store.MaxBatch) {
		insert(t, s, part...)
	}
	claimed, err := s.Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	var ids []string
	for _, h := range claimed.Jobs {
		ids = append(ids, h.ID)
	}
	require.Equal(t, want, ids)
	require.Len(t, claimed.Queues, lanes)
	require.False(t, claimed.Queues[1].More, "its second job is claimed, too")
	require.True(t, claimed.Queues[2].More)
}
