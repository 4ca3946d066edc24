package job_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

func TestNewID_ContainsItsShard(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	form := regexp.MustCompile(`^[0-9a-v]{21}$`)
	for shard := range job.MaxShards {
		id := job.NewID(now, shard)
		require.Regexp(t, form, id)
		got, ok := job.ShardOf(id)
		require.True(t, ok, id)
		require.Equal(t, shard, got, id)
	}
}

func TestNewID_SortsByTime(t *testing.T) {
	var ids []string
	for _, at := range []time.Time{
		time.UnixMilli(0), time.UnixMilli(1), time.UnixMilli(255), time.UnixMilli(256),
		time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 12, 0, 0, 1e6, time.UTC),
		time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		ids = append(ids, job.NewID(at, 255))
	}
	require.True(t, slices.IsSorted(ids), "%v", ids)
}

func TestNewID_IsUniqueWithinAMillisecond(t *testing.T) {
	now := time.Now()
	seen := make(map[string]bool)
	for range 10_000 {
		id := job.NewID(now, 3)
		require.False(t, seen[id], id)
		seen[id] = true
	}
}

func TestNewID_PanicsForAShardOutOfRange(t *testing.T) {
	for _, shard := range []int{-1, job.MaxShards} {
		require.Panics(t, func() { job.NewID(time.Now(), shard) })
	}
}

func TestShardOf_RejectsOtherForms(t *testing.T) {
	made := job.NewID(time.Now(), 7)
	for _, id := range []string{"", "order-4711", made[:20], made + "0", "z" + made[1:], "V" + made[1:], made[:20] +
		"-", "rb:" + made[3:]} {
		_, ok := job.ShardOf(id)
		require.False(t, ok, "%q", id)
	}
}

// Any id has a shard or none, without a panic.
func FuzzShardOf(f *testing.F) {
	f.Add("")
	f.Add("order-4711")
	f.Add(job.NewID(time.UnixMilli(1), 255))
	f.Add("vvvvvvvvvvvvvvvvvvvvv")
	f.Add("000000000000000000\n00")
	f.Fuzz(func(t *testing.T, id string) {
		shard, ok := job.ShardOf(id)
		if !ok {
			require.Zero(t, shard)
			return
		}
		require.Len(t, id, 21)
		require.GreaterOrEqual(t, shard, 0)
		require.Less(t, shard, job.MaxShards)
	})
}

func TestIsInternalID_IsFalseForCallbacks(t *testing.T) {
	for _, prefix := range []string{"work:", "schedule:"} {
		var j job.Job
		j.ID, j.CreatedAt = prefix+"42", time.Unix(1_800_000_000, 0)
		require.False(t, job.IsInternalID(job.CallbackID(j)))
	}
	require.True(t, job.IsInternalID(job.WorkIDPrefix+job.NewID(time.Now(), 0)))
	require.True(t, job.IsInternalID(job.ScheduleIDPrefix+"daily:a:"+job.NewID(time.Now(), 0)))
}
