package sqlite

import (
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// openCopy copies a database as it lies on the disk while it is open, and opens the copy.
func openCopy(t *testing.T, o Options) *Store {
	t.Helper()
	copied := o
	copied.Path = filepath.Join(t.TempDir(), "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(o.Path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(copied.Path+suffix, content, 0o600))
	}
	return openStore(t, copied)
}

func TestOpen_RecordsAttemptsOfADeadProcessAsLost(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	child := newJob("child", 0)
	child.Fingerprint = []byte("print of the child")
	insert(t, s, newJob("later", time.Hour))
	insert(t, s, newJob("a", 0), newJob("b", 0), newJob("c", 0), newJob("d", 0))
	_, err := store.PutTopic(t.Context(), s, store.Topic{
		Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Timeout: time.Second},
	})
	require.NoError(t, err)
	jobs := claimJobs(t, s, 3)
	require.Len(t, jobs, 3)
	_, err = s.Cancel(t.Context(), store.NewToken(), jobs[2].Ref(), store.Cancellation{})
	require.NoError(t, err)
	delivered := settlementOf(jobs[0], policy.Verdict{Kind: policy.Delivered})
	delivered.Outbox = []store.NewJob{child}
	settle(t, s, delivered)

	second := openCopy(t, o)
	require.Equal(t, job.Delivered, get(t, second, jobs[0].ID).State)
	require.Equal(t, job.Scheduled, get(t, second, "later").State)
	require.Equal(t, job.Ready, get(t, second, "d").State)
	lost := get(t, second, jobs[1].ID)
	require.Equal(t, job.Ready, lost.State)
	require.Equal(t, []int{1, 0, 1}, []int{lost.Attempts, lost.FailedAttempts, lost.ConsecutiveLost})
	require.Len(t, lost.History, 1)
	require.Equal(t, job.KindLost, lost.History[0].Kind)
	require.False(t, lost.History[0].StartedAt.IsZero())
	require.Equal(t, job.Cancelled, get(t, second, jobs[2].ID).State, "an expired lease applies the cancellation")

	carried := carry(t, second)
	require.Equal(t, []store.NewJob{child}, carried.Outbox)
	topics, _, err := storetest.ListTopics(t.Context(), second)
	require.NoError(t, err)
	require.Len(t, topics, 1)
	require.Equal(t, time.Second, topics[0].Policy.Timeout)
	stats, err := second.TopicStats(t.Context(),
		store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.NoError(t, err)
	require.Len(t, stats, 1)
	require.Equal(t, []int64{5, 1, 1, 0},
		[]int64{stats[0].Registered, stats[0].Delivered, stats[0].Cancelled, stats[0].Running})
	require.EqualValues(t, 3, stats[0].Scheduled+stats[0].Ready)
	require.Len(t, claimJobs(t, second, 10), 2)
}

func TestOpen_CountsLostAttemptsFromTheThirdOn(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	insert(t, s, newJob("poison", 0))
	for lost, tries := range []int{0, 0, 1, 2} {
		require.Len(t, claimJobs(t, s, 1), 1)
		require.NoError(t, s.Close())
		s = openStore(t, o)
		found := get(t, s, "poison")
		require.Equal(t, []int{lost + 1, tries, lost + 1},
			[]int{found.Attempts, found.FailedAttempts, found.ConsecutiveLost})
	}
}

func TestOpen_EndsLeasesOfManyLanesTogetherWithoutFsync(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	const lanes, perLane = 30, 70
	request := store.ClaimRequest{Max: perLane, MaxBytes: 1 << 20, Margin: time.Minute}
	for l := range lanes {
		entries := newJobs(fmt.Sprint(l), perLane, 0)
		for i := range entries {
			entries[i].Lane = fmt.Sprint(l)
		}
		insert(t, s, entries...)
		request.Queues = []store.QueueClaim{{Queue: entries[0].Queue, Max: perLane, Timeout: time.Minute}}
		claimed, err := s.Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		require.NotEmpty(t, claimed.Jobs)
	}
	running := 0
	inWriter(t, s, func() { running = len(s.mem.Leases) })
	require.NoError(t, s.Close())
	faults := faultsOf(s.db.Path())
	faults.fsync.Store(false)
	before := faults.commits.Load()
	s = openStore(t, o)
	commits, still := faults.commits.Load()-before, 0
	require.False(t, faults.fsync.Load())
	inWriter(t, s, func() { still = len(s.mem.Leases) })
	require.Zero(t, still)
	require.LessOrEqual(t, commits, int64(running/expireBatch+2))
	require.Equal(t, 1, get(t, s, "0-0000").ConsecutiveLost)
}

func TestOpen_ServesPastAnUnreadableLeasedJob(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	insert(t, s, newJobs("job", 3, 0)...)
	require.Len(t, claimJobs(t, s, 3), 3)
	require.NoError(t, s.Close())
	shell(t, o.Path, "UPDATE jobs SET "+unreadableSpec+" WHERE id = 'job-0001'")
	s = openStore(t, o)
	require.Len(t, claimJobs(t, s, 3), 2)
}

func TestSweep_RemovesUnreadableJobs(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	insert(t, s, newJobs("job", 3, 0)...)
	for _, e := range newJobs("job", 3, 0) {
		_, err := s.Cancel(t.Context(), store.NewToken(), e.Ref(), store.Cancellation{})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	shell(t, o.Path, "UPDATE jobs SET "+unreadableSpec+" WHERE id = 'job-0001'")
	o.Limits.KeepDelivered.Max = new(int64(0))
	s = openStore(t, o)
	swept, err := s.Sweep(t.Context(), store.NewToken(), 10)
	require.NoError(t, err)
	require.Equal(t, 3, swept.Jobs)
}

func TestOpen_RefusesASecondProcess(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	_, err := Open(t.Context(), o)
	require.ErrorContains(t, err, "another process uses the database "+o.Path)
	require.ErrorContains(t, err, o.Path+".lock")
	require.NotContains(t, err.Error(), "\n")
	insert(t, s, newJob("a", 0))
	require.NoError(t, s.Close())
	openStore(t, o)
}

func TestOpen_RefusesWhatItCannotUse(t *testing.T) {
	unwritable := filepath.Join(t.TempDir(), "locked")
	require.NoError(t, os.Mkdir(unwritable, 0o500))
	if os.Geteuid() == 0 {
		unwritable = "/sys" // nobody makes files there
	}
	cases := map[string]struct {
		path string
		make func(path string)
		says string
	}{
		"a newer schema": {make: func(path string) {
			shell(t, path, "PRAGMA user_version=10")
		}, says: "has schema 10, made by a newer version"},
		"an older schema": {make: func(path string) {
			shell(t, path, "PRAGMA user_version=1")
		}, says: "has schema 1, made by an older version"},
		"another program's database": {make: func(path string) {
			shell(t, path, "CREATE TABLE theirs (x)")
		}, says: "belongs to another program"},
		"a file that is no database": {make: func(path string) {
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600))
		}, says: "damaged, or not a database"},
		"a folder": {
			make: func(path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
			says: "is a folder",
		},
		"a missing folder":     {path: filepath.Join(t.TempDir(), "missing", "jobs.db"), says: "does not exist"},
		"an unwritable folder": {path: filepath.Join(unwritable, "jobs.db"), says: "is not writable"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			if c.path != "" {
				o.Path = c.path
			}
			if c.make != nil {
				c.make(o.Path)
			}
			_, err := Open(t.Context(), o)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, filepath.Dir(o.Path))
			require.NotContains(t, err.Error(), "\n")
		})
	}
	_, err := Open(t.Context(), Options{})
	require.ErrorContains(t, err, "the path is empty")
}

func TestOpen_PausesATopicWhoseLimitsCannotBeRead(t *testing.T) {
	o := options(t)
	log := captureLog(&o)
	s := openStore(t, o)
	put := store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{LaneConcurrency: 9}}
	put, err := store.PutTopic(t.Context(), s, put)
	require.NoError(t, err)
	other := newJob("other", 0)
	other.Topic = "other"
	insert(t, s, newJob("a", 0), other)
	require.NoError(t, s.Close())
	shell(t, o.Path, "UPDATE settings SET limits = 'no JSON'")

	s = openStore(t, o)
	require.Contains(t, log.String(), "level=ERROR")
	request := claimRequest(2)
	request.Queues = append(request.Queues, store.QueueClaim{Queue: other.Queue, Max: 1, Timeout: time.Minute})
	claimed, err := s.Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	require.Equal(t, "other", claimed.Jobs[0].ID)
	_, err = store.PutTopic(t.Context(), s, put)
	require.NoError(t, err)
	require.Len(t, claimJobs(t, s, 1), 1)
}

func TestOpen_AcceptsAnyCharacterInThePath(t *testing.T) {
	o := options(t)
	o.Path = filepath.Join(t.TempDir(), "a b?c#d%41.db")
	s := openStore(t, o)
	insert(t, s, newJob("a", 0))
	info, err := os.Stat(o.Path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestOverview_ShowsAJob(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	e := newJob("close-4711", 0)
	insert(t, s, e)
	var row []string
	inWriter(t, s, func() {
		err := s.db.Conn().QueryText(t.Context(), `SELECT id, state, topic, url FROM `+
			`overview`, func(v []driver.Value) error {
			for _, column := range v {
				row = append(row, column.(string))
			}
			return nil
		})
		require.NoError(t, err)
	})
	require.Equal(t, []string{"close-4711", "scheduled", "orders", "https://shop.example/hooks"}, row)
}

func TestListChanges_AreCompleteAfterARestoredBackup(t *testing.T) {
	o := options(t)
	s, c := openWithClock(t, o)
	put := func(name string) int64 {
		doc, err := s.PutDocument(t.Context(), store.NewToken(), store.Document{
			Key: store.DocumentKey{Kind: "number", Namespace: "n", Name: name}, Value: []byte("1"),
		}, policy.Limits{})
		require.NoError(t, err)
		return doc.Revision
	}
	saved := put("saved")
	backup := filepath.Join(t.TempDir(), "backup.db")
	_, err := Backup(t.Context(), o.Path, backup)
	require.NoError(t, err)
	lost := put("lost")
	require.NoError(t, s.Close())
	_, err = Restore(t.Context(), backup, o.Path, o.Logger)
	require.NoError(t, err)

	s, _ = openWithClockAt(t, o, c.ms.Load()+time.Second.Milliseconds())
	last := put("new")
	for since, wanted := range map[int64][]string{saved: {"new"}, lost: {"new", "saved"}} {
		changes, err := s.ListChanges(t.Context(), "number", since)
		require.NoError(t, err)
		require.Equal(t, []any{since == lost, last}, []any{changes.IsComplete, changes.Revision})
		var names []string
		for _, doc := range changes.Documents {
			names = append(names, doc.Key.Name)
		}
		require.Equal(t, wanted, names)
	}
}
