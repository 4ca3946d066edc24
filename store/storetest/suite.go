package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// caseGroup is the test cases of one subject.
type caseGroup struct {
	name  string
	cases []testCase
}

type testCase struct {
	name string
	test func(s *suite)
}

var caseGroups = []caseGroup{
	{"Insert", insertCases},
	{"Claim", claimCases},
	{"ClaimAhead", aheadCases},
	{"ClaimOrdered", orderedCases},
	{"Settle", settleCases},
	{"SettleBody", settleBodyCases},
	{"Lease", leaseCases},
	{"Cancel", cancelCases},
	{"Replace", replaceCases},
	{"Revive", reviveCases},
	{"ReviveBatch", reviveBatchCases},
	{"Purge", purgeCases},
	{"Read", readCases},
	{"Record", recordCases},
	{"List", listCases},
	{"Count", countCases},
	{"State", stateCases},
	{"ClaimExpired", expiredCases},
	{"Status", answerCases},
	{"Retention", retentionCases},
	{"Topics", topicCases},
	{"Wakeup", wakeupCases},
	{"Group", groupCases},
	{"Carry", carryCases},
	{"Cooldown", cooldownCases},
	{"Breaker", breakerCases},
	{"Health", healthCases},
	{"History", historyCases},
	{"Settings", settingsCases},
	{"Documents", documentCases},
	{"Changes", changesCases},
	{"Rate", rateCases},
	{"Permit", permitCases},
	{"Outbox", relayCases},
	{"OutboxBounds", outboxCases},
	{"Alarm", alarmCases},
	{"Tail", tailCases},
	{"Clock", clockCases},
	{"Concurrent", togetherCases},
}

const (
	// long outlives every test.
	long = time.Hour
	// timeLimit bounds every wait for something that must come. It costs nothing when it comes.
	timeLimit = 3 * time.Minute
	// shortWait bounds a wait for something that must not come.
	shortWait = 30 * time.Millisecond
)

// suite is one test on one engine: a shard, a topic on it, and helpers for the calls.
type suite struct {
	*testing.T
	Engine
	shardNumber int
	router      *router.Router
	queue       job.Queue
	open        func(t *testing.T) Engine
	isFakeOnly  bool // no engine with a real clock runs the case
}

func newSuite(t *testing.T, open func(t *testing.T) Engine) *suite {
	e := open(t)
	s := &suite{T: t, Engine: e, router: router.New(e.Store), open: open}
	t.Cleanup(func() { _ = s.Store.Close() })
	// The test's name picks its shard.
	for _, r := range t.Name() {
		s.shardNumber = (s.shardNumber*31 + int(r)) % len(e.Store.Shards())
	}
	s.queue = s.laneQueue(0)
	return s
}

// shard returns the test's shard.
func (s *suite) shard() store.Shard { return s.Store.Shards()[s.shardNumber] }

// checkInvariants runs Check on what the test left. It takes longer than most tests: make test runs it after every
// third on an engine without Recheck, which has another check, or shares its scripts with one that is checked after
// all.
func (s *suite) checkInvariants() {
	s.Helper()
	if s.Recheck == nil && len(s.Name())%testkit.Of(3, 1) != 0 && !s.isFakeOnly {
		return
	}
	if !s.Failed() && s.Store.Ping(s.Context()) == nil {
		require.NoError(s, Check(s.Context(), s.Store))
		s.recheck()
	}
}

// recheck makes the engine check the test's shard.
func (s *suite) recheck() {
	s.Helper()
	if s.Recheck != nil {
		require.Empty(s, s.Recheck(s.T, s.shardNumber), "a check of an intact shard repairs nothing")
	}
}

// laneQueue returns the n-th queue of the test's topic on the test's shard.
func (s *suite) laneQueue(n int) job.Queue { return s.queueOf(job.DefaultNamespace, "orders", n) }

// queueOf returns the n-th queue of a topic on the test's shard. Its lane is the host of its jobs' URLs, so that
// engines may store only the path.
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

// now returns the store's clock.
func (s *suite) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// advance lets time pass on the store's clock.
func (s *suite) advance(d time.Duration) {
	if s.Advance != nil {
		s.Advance(d)
		return
	}
	<-time.After(d)
}

// withMovedClock is a case for engines whose clock the test moves. It needs two calls within a short time, and a slow
// machine takes longer by the real clock.
func withMovedClock(test func(s *suite)) func(s *suite) {
	return func(s *suite) {
		if s.Advance != nil {
			s.isFakeOnly = true
			test(s)
		}
	}
}

// number returns all, or some on a slow engine in make test.
func (s *suite) number(some, all int) int {
	if s.IsSlow {
		return testkit.Of(some, all)
	}
	return all
}

// shortTime returns a duration for advance: 200 ms when the test has to wait for it. Then it may be over before the
// next call.
func (s *suite) shortTime() time.Duration {
	if s.Advance != nil {
		return 10 * time.Second
	}
	return 200 * time.Millisecond
}

// sameTime compares an instant of the store's clock with one that was read here.
func (s *suite) sameTime(want, got time.Time, what string) {
	s.Helper()
	require.WithinDuration(s, want, got, s.tolerance(), what)
	require.Equal(s, job.Millis(got), got, "%s is not in whole milliseconds, UTC", what)
}

// tolerance is the allowed difference of two times: minutes by the real clock, as calls may take long on a busy
// machine. It is much shorter than long.
func (s *suite) tolerance() time.Duration {
	if s.Advance != nil {
		return time.Millisecond
	}
	return 2 * time.Minute
}

// eventually calls cond until it is true, and advances the clock a little in between.
func (s *suite) eventually(what string, cond func() bool) {
	s.Helper()
	for end := time.Now().Add(timeLimit); !cond(); s.advance(s.shortTime() / 40) {
		if time.Now().After(end) {
			require.FailNow(s, "timed out waiting for "+what)
		}
	}
}
