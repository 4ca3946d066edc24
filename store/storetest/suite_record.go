package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// source returns a suite on a model with the clock of s, from which records come.
func (s *suite) source() *suite {
	model := NewModel(ModelOptions{Defaults: s.Defaults, Now: s.now})
	return &suite{
		T: s.T, Engine: Engine{Store: model, Advance: s.Advance, Now: s.Now, Defaults: s.Defaults},
		router: router.New(model), queue: s.queue, open: s.open,
	}
}

// records reads the records of jobs.
func (s *suite) records(ids ...string) []store.Record {
	s.Helper()
	refs := make([]job.Ref, len(ids))
	for i, id := range ids {
		refs[i] = s.ref(id)
	}
	records, err := s.shard().GetRecords(s.Context(), refs)
	require.NoError(s, err)
	require.Len(s, records, len(ids))
	return records
}

// putRecords stores records.
func (s *suite) putRecords(records ...store.Record) []store.Outcome {
	s.Helper()
	outcomes, err := s.shard().PutRecords(s.Context(), store.NewToken(), records)
	require.NoError(s, err)
	return outcomes
}

// normalRecord returns a record as two engines store it alike.
func normalRecord(r store.Record) store.Record {
	r.Spec = normal(r.Spec)
	r.Number = 0
	if r.State == job.Ready {
		r.State = job.Scheduled
	}
	if len(r.History) == 0 {
		r.History = nil
	}
	if len(r.Events) == 0 {
		r.Events = nil
	}
	return r
}

// manyRecords brings jobs with all kinds of progress about, and returns their ids. None is running in the end.
func (s *suite) manyRecords() []string {
	s.Helper()
	full := s.entry("full", delayed(long), expires(2*long))
	full.Spec, full.MaxAge = fullSpec("full", s.queue), 90*time.Minute
	generated := s.entry("generated", delayed(long))
	generated.Fingerprint = nil
	s.endJob("delivered", delivered, body("text"))
	s.endJob("dead", dead)
	s.insertNew(full, generated, s.entry("cancelled",
		delayed(long)), s.entry("large", delayed(long), func(e *store.NewJob) {
		e.Body, e.BodyKind = bytes.Repeat([]byte("b"), 5000), job.BodyBase64
	}))
	_, err := s.cancel("cancelled")
	require.NoError(s, err)
	s.insertNew(s.entry("retried"))
	s.settleOne(s.claimAll("retried")[0], retry(long))
	s.endJob("revived", dead)
	_, err = s.revive("revived", long)
	require.NoError(s, err)
	s.insertNew(s.entry("edited", delayed(long)))
	for i := range job.MaxEvents + 3 {
		_, err = s.edit("edited", func(spec *job.Spec) { spec.URL = fmt.Sprintf("http://%s/%d", s.queue.Lane, i) })
		require.NoError(s, err)
	}
	s.insertNew(s.entry("often"))
	for range job.MaxAttempts + 3 {
		s.settleOne(s.claimAll("often")[0], released)
		s.settleOne(s.claimAll("often")[0], retry(0))
	}
	return []string{
		"full", "generated", "large", "retried", "revived", "edited", "often",
		"delivered", "dead", "cancelled",
	}
}

var recordCases = []testCase{
	{"jobs are stored as they are", func(s *suite) {
		source := s.source()
		ids := source.manyRecords()
		wanted := source.records(ids...)
		outcomes := s.putRecords(wanted...)
		require.Equal(s, slices.Repeat([]store.Outcome{store.Created}, len(ids)), outcomes)
		for i, got := range s.records(ids...) {
			require.Equal(s, normalRecord(wanted[i]), normalRecord(got))
			read := s.get(ids[i])
			require.Equal(s, normalRecord(wanted[i]).History, normalRecord(store.Record{Job: read}).History)
			require.Equal(s, normalRecord(wanted[i]).Progress, normalRecord(store.Record{Job: read}).Progress)
		}
		before, after := source.stats(), s.stats()
		require.Equal(s, before.Registered, after.Registered)
		require.Equal(s, before.Scheduled+before.Ready, after.Scheduled+after.Ready)
		require.Equal(s, []int64{before.Delivered, before.Dead, before.Cancelled},
			[]int64{after.Delivered, after.Dead, after.Cancelled})
	}},
	{"jobs are read as they are", func(s *suite) {
		ids := s.manyRecords()
		records := s.records(ids...)
		other := s.source()
		require.Equal(s, slices.Repeat([]store.Outcome{store.Created}, len(ids)), other.putRecords(records...))
		for i, got := range other.records(ids...) {
			require.Equal(s, normalRecord(records[i]), normalRecord(got))
			require.Equal(s, normalRecord(store.Record{Job: s.get(ids[i])}).Job,
				normalRecord(store.Record{Job: got.Job}).Job)
		}
		require.NotEmpty(s, records[0].Fingerprint)
		require.Nil(s, records[1].Fingerprint)
		require.Equal(s, 90*time.Minute, records[0].MaxAge)
	}},
	{"stored jobs go on where they were", func(s *suite) {
		source := s.source()
		ids := source.manyRecords()
		s.putRecords(source.records(ids...)...)
		s.waitNotified(s.queue)
		h := s.claimAll("often")[0]
		require.Equal(s, job.MaxAttempts+3, h.Attempts)
		s.settleOne(h, retry(0))
		s.settleOne(s.claimAll("often")[0], released)
		again := s.get("often")
		require.Len(s, again.History, 2*job.MaxAttempts)
		require.Equal(s, job.MaxAttempts+4, again.History[len(again.History)-2].N)
		_, err := s.edit("edited", func(spec *job.Spec) { spec.Timeout = time.Second })
		require.NoError(s, err)
		require.Len(s, s.get("edited").Events, job.MaxEvents)
		_, err = s.revive("dead", long)
		require.NoError(s, err)
		require.Equal(s, 1, s.get("dead").Generation)
		_, err = s.cancel("large")
		require.NoError(s, err)
		require.NoError(s, purgeOne(s, "delivered"))
		require.Equal(s, store.Existing, s.insert(s.entry("delivered", body("text")))[0].Outcome,
			"an id chosen by a client stays known")
	}},
	{"a known id changes nothing", func(s *suite) {
		source := s.source()
		source.endJob("b", dead)
		source.insertNew(source.entry("a"))
		first := source.records("a", "b")
		require.Equal(s, []store.Outcome{store.Created, store.Existing, store.Created},
			s.putRecords(first[0], first[0], first[1]))
		s.waitNotified(s.queue)
		s.settleOne(s.claimAll("a")[0], delivered)
		require.Equal(s, []store.Outcome{store.Existing, store.Existing}, s.putRecords(first...))
		require.Equal(s, job.Delivered, s.get("a").State)
		other := first[0]
		other.CreatedAt = other.CreatedAt.Add(time.Millisecond)
		require.Equal(s, []store.Outcome{store.Conflict}, s.putRecords(other))
		other = first[0]
		other.Queue = s.laneQueue(1)
		require.Equal(s, []store.Outcome{store.Conflict}, s.putRecords(other))
		other = first[0]
		other.Fingerprint = []byte("another")
		require.Equal(s, []store.Outcome{store.Conflict}, s.putRecords(other))
		require.NoError(s, purgeOne(s, "b"))
		other = first[1]
		require.Equal(s, []store.Outcome{store.Existing}, s.putRecords(other), "removed, and its id is remembered")
		other.Fingerprint = []byte("another")
		require.Equal(s, []store.Outcome{store.Conflict}, s.putRecords(other))
		require.EqualValues(s, 2, s.stats().Registered)
	}},
	{"a repeated token returns the first result", func(s *suite) {
		source := s.source()
		source.insertNew(source.entry("a"))
		token, records := store.NewToken(), source.records("a")
		for range 2 {
			outcomes, err := s.shard().PutRecords(s.Context(), token, records)
			require.NoError(s, err)
			require.Equal(s, []store.Outcome{store.Created}, outcomes)
		}
		require.EqualValues(s, 1, s.stats().Registered)
	}},
	{"times to live go on", func(s *suite) {
		source := s.source()
		e := source.entry("a", delayed(long), expires(2*long))
		source.insertNew(e)
		records := source.records("a")
		records[0].DueAt, records[0].FirstDueAt = records[0].CreatedAt.Add(-2*long), records[0].CreatedAt.Add(-2*long)
		records[0].ExpiresAt = records[0].CreatedAt.Add(-long)
		s.putRecords(records...)
		claimed, err := s.shard().ClaimExpired(s.Context(), store.NewToken(),
			store.ClaimExpiredRequest{Max: 10, MaxBytes: 1 << 20, Lease: time.Minute})
		require.NoError(s, err)
		require.Equal(s, []string{"a"}, idsOf(claimed))
		s.settleOne(claimed[0], dead)
	}},
	{"an ordered queue keeps the order of the records", func(s *suite) {
		source := s.source()
		source.ordered("c", "b", "a")
		source.insertNew(source.entry("0", delayed(long)))
		records := source.records("c", "b", "a", "0")
		require.True(s, slices.IsSortedFunc(records, func(a, b store.Record) int { return int(a.Number - b.Number) }))
		s.put(policy.Topic{Ordered: true})
		s.putRecords(records...)
		s.waitNotified(s.queue)
		s.deliverInTurn("c", "b", "a")
		s.ordered("e", "d")
		numbered := s.records("0", "e", "d")
		require.True(s, slices.IsSortedFunc(numbered, func(a, b store.Record) int { return int(a.Number - b.Number) }))
	}},
	{"ScanLanes finds the settings of all lanes", func(s *suite) {
		wanted := make(map[job.Queue]int64)
		for i, topic := range []string{"orders", "mails", "unused"} {
			for n := range 3 {
				q := s.queueOf(job.DefaultNamespace, topic, n)
				wanted[q] = s.putLane(q, policy.Lane{LaneConcurrency: i + n + 1}).Revision
			}
		}
		found, cursor := make(map[job.Queue]int64), ""
		for {
			docs, next, err := s.shard().ScanLanes(s.Context(), cursor)
			require.NoError(s, err)
			for _, doc := range docs {
				lane, err := doc.Lane()
				require.NoError(s, err)
				require.Positive(s, lane.Settings.LaneConcurrency)
				found[doc.Key.Queue()] = doc.Revision
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		require.Equal(s, wanted, found)
	}},
	{"records are bounded by bytes, and unknown ones are zero", func(s *suite) {
		if s.number(0, 1) == 0 {
			return // megabytes are slow, too
		}
		for i := range 3 {
			s.insertNew(s.entry(fmt.Sprint(i), delayed(long),
				func(e *store.NewJob) { e.Body, e.BodyKind = make([]byte, 5<<20), job.BodyBase64 }))
		}
		records, err := s.shard().GetRecords(s.Context(),
			[]job.Ref{s.ref("unknown"), s.ref("0"), s.ref("1"), s.ref("2")})
		require.NoError(s, err)
		require.Len(s, records, 2)
		require.Zero(s, records[0])
		require.Equal(s, "0", records[1].ID)
		records, err = s.shard().GetRecords(s.Context(), []job.Ref{s.ref("1"), s.ref("2")})
		require.NoError(s, err)
		require.Len(s, records, 1)
	}},
}

// purgeOne removes an ended job.
func purgeOne(s *suite, id string) error {
	s.Helper()
	errs, err := s.shard().Purge(s.Context(), store.NewToken(), []store.Removal{{Ref: s.ref(id)}})
	require.NoError(s, err)
	return errs[0]
}
