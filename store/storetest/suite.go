package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A part is a group of sentences of behaviour.
type part struct {
	name  string
	cases []sentence
}

type sentence struct {
	name string
	test func(s *suite)
}

var parts = []part{
	{"Insert", insertCases},
	{"Claim", claimCases},
	{"Settle", settleCases},
	{"Lapse", lapseCases},
	{"Cancel", cancelCases},
	{"Edit", editCases},
	{"Revive", reviveCases},
	{"ReviveMany", reviveBatchCases},
	{"Purge", purgeCases},
	{"Read", readCases},
	{"Count", countCases},
	{"Expired", expiredCases},
	{"Answer", answerCases},
	{"Retention", retentionCases},
	{"Topics", topicCases},
	{"Bell", bellCases},
	{"Carry", carryCases},
	{"Hold", holdCases},
	{"Breaker", breakerCases},
	{"Settings", settingsCases},
	{"Rate", rateCases},
	{"Unstarted", unstartedCases},
	{"Permit", permitCases},
	{"Birth", birthCases},
	{"Outbox", outboxCases},
	{"Alarm", alarmCases},
	{"Clock", clockCases},
	{"Together", togetherCases},
}

const (
	// long outlives every test.
	long = time.Hour
	// patience bounds every wait for something that must come.
	patience = 10 * time.Second
	// blink bounds a wait for something that must not come.
	blink = 30 * time.Millisecond
)

// suite is one test on one engine: a shard, a topic on it, and short words for the calls.
type suite struct {
	*testing.T
	Engine
	shardNumber int
	router      *store.Router
	queue       job.Queue
	open        func(t *testing.T) Engine
}

func newSuite(t *testing.T, open func(t *testing.T) Engine) *suite {
	e := open(t)
	s := &suite{T: t, Engine: e, router: store.NewRouter(e.Store), open: open}
	t.Cleanup(func() { _ = s.Store.Close() })
	// Tests spread over the shards by their names.
	for _, r := range t.Name() {
		s.shardNumber = (s.shardNumber*31 + int(r)) % len(e.Store.Shards())
	}
	s.queue = s.lane(0)
	return s
}

// shard is the test's.
func (s *suite) shard() store.Shard { return s.Store.Shards()[s.shardNumber] }

// sound holds what a test left against Check.
func (s *suite) sound() {
	s.Helper()
	if !s.Failed() && s.Store.Ping(s.Context()) == nil {
		require.NoError(s, Check(s.Context(), s.Store))
		s.recheck()
	}
}

// recheck has the engine check the test's shard.
func (s *suite) recheck() {
	s.Helper()
	if s.Recheck != nil {
		require.Empty(s, s.Recheck(s.T, s.shardNumber), "a check repairs nothing where nothing was lost")
	}
}

// lane is the n-th queue of the test's topic that lives on the test's shard.
func (s *suite) lane(n int) job.Queue { return s.queueOf(job.DefaultNamespace, "orders", n) }

// queueOf is the n-th queue of a topic that lives on the test's shard. Its lane is that of jobs for a host: an engine may
// keep less of the URL of such a job.
func (s *suite) queueOf(namespace, topic string, n int) job.Queue {
	for i := 0; ; i++ {
		q := job.Queue{Namespace: namespace, Topic: topic, Lane: fmt.Sprintf("lane-%04d.example:80", i)}
		if s.router.ShardOf(q) != s.shardNumber {
			continue
		}
		if n == 0 {
			return q
		}
		n--
	}
}

// now is the store's clock.
func (s *suite) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// pass lets time pass on the store's clock.
func (s *suite) pass(d time.Duration) {
	if s.Advance != nil {
		s.Advance(d)
		return
	}
	<-time.After(d)
}

// brief is a duration that pass bears: short where it has to be waited for, and yet long enough that a machine which is
// busy with other tests makes a few calls within it.
func (s *suite) brief() time.Duration {
	if s.Advance != nil {
		return 10 * time.Second
	}
	return 200 * time.Millisecond
}

// sameTime compares instants of the store's clock with such as were read here.
func (s *suite) sameTime(want, got time.Time, what string) {
	s.Helper()
	tolerance := time.Second
	if s.Advance != nil {
		tolerance = time.Millisecond
	}
	require.WithinDuration(s, want, got, tolerance, what)
	require.Equal(s, job.Millis(got), got, "%s is not in whole milliseconds, UTC", what)
}

// eventually asks again until it is so, and lets a little time pass in between.
func (s *suite) eventually(what string, so func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !so(); s.pass(s.brief() / 40) {
		if time.Now().After(end) {
			require.FailNow(s, "did not come: "+what)
		}
	}
}
