package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
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
	{"Read", readCases},
	{"Retention", retentionCases},
	{"Topics", topicCases},
	{"Bell", bellCases},
	{"Carry", carryCases},
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
	shard  int
	router *store.Router
	queue  job.Queue
}

func newSuite(t *testing.T, e Engine) *suite {
	s := &suite{T: t, Engine: e, router: store.NewRouter(e.Store)}
	t.Cleanup(func() { _ = s.Store.Close() })
	// Tests spread over the shards by their names.
	for _, r := range t.Name() {
		s.shard = (s.shard*31 + int(r)) % e.Store.Shards()
	}
	s.queue = s.lane(0)
	return s
}

// sound holds what a test left against Check.
func (s *suite) sound() {
	s.Helper()
	if !s.Failed() && s.Store.Ping(s.Context()) == nil {
		require.NoError(s, Check(s.Context(), s.Store))
	}
}

// lane is the n-th queue of the test's topic that lives on the test's shard.
func (s *suite) lane(n int) job.Queue { return s.queueOf(job.DefaultNamespace, "orders", n) }

func (s *suite) queueOf(namespace, topic string, n int) job.Queue {
	for i := 0; ; i++ {
		q := job.Queue{Namespace: namespace, Topic: topic, Lane: fmt.Sprintf("lane-%04d", i)}
		if s.router.ShardOf(q) != s.shard {
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

type option func(*store.Entry)

// entry is a job due now, under a client's id.
func (s *suite) entry(id string, options ...option) store.Entry {
	e := store.Entry{New: job.New{Spec: job.Spec{
		ID: id, Queue: s.queue, URL: "http://shop.example/hooks", Method: "POST",
	}}}
	for _, o := range options {
		o(&e)
	}
	e.Print = e.Fingerprint()
	return e
}

func in(q job.Queue) option          { return func(e *store.Entry) { e.Queue = q } }
func delayed(d time.Duration) option { return func(e *store.Entry) { e.Delay = d } }
func body(text string) option {
	return func(e *store.Entry) { e.Body, e.BodyKind = []byte(text), job.BodyText }
}
func timeout(d time.Duration) option { return func(e *store.Entry) { e.Timeout = d } }
func expires(d time.Duration) option { return func(e *store.Entry) { e.ExpiresIn = d } }
func labelled(key, value string) option {
	return func(e *store.Entry) { e.Labels = map[string]string{key: value} }
}

func (s *suite) ref(id string) job.Ref { return job.Ref{Namespace: s.queue.Namespace, ID: id} }

// send inserts, and answers what came of it.
func (s *suite) send(entries ...store.Entry) []store.Inserted {
	s.Helper()
	results, err := s.Store.Insert(s.Context(), s.shard, store.NewToken(), entries)
	require.NoError(s, err)
	require.Len(s, results, len(entries))
	return results
}

// add inserts jobs that must be new.
func (s *suite) add(entries ...store.Entry) {
	s.Helper()
	for i, r := range s.send(entries...) {
		require.Equal(s, store.Created, r.Outcome, "outcome of %s", entries[i].ID)
	}
}

// want asks for everything of the queues, under a lease that outlives the test.
func want(queues ...job.Queue) store.ClaimRequest {
	r := store.ClaimRequest{Max: store.MaxBatch, MaxBytes: 1 << 30}
	for _, q := range queues {
		r.Wants = append(r.Wants, store.Want{Queue: q, Max: store.MaxBatch, Timeout: long})
	}
	return r
}

// wantFor is want with a short lease, unless the job has its own timeout.
func wantFor(lease time.Duration, queues ...job.Queue) store.ClaimRequest {
	r := want(queues...)
	for i := range r.Wants {
		r.Wants[i].Timeout = lease
	}
	return r
}

func (s *suite) claim(r store.ClaimRequest) store.Claimed {
	s.Helper()
	c, err := s.Store.Claim(s.Context(), s.shard, store.NewToken(), r)
	require.NoError(s, err)
	require.Len(s, c.Queues, len(r.Wants), "a line for each Want")
	return c
}

// hold claims everything of the test's queue, which must be exactly these jobs in any order.
func (s *suite) hold(ids ...string) []store.Held {
	s.Helper()
	held := s.claim(want(s.queue)).Jobs
	require.ElementsMatch(s, ids, idsOf(held))
	slices.SortFunc(held, func(a, b store.Held) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return held
}

func idsOf(held []store.Held) []string {
	ids := make([]string, len(held))
	for i, h := range held {
		ids[i] = h.ID
	}
	return ids
}

// settlement is the end of an attempt.
func settlement(h store.Held, v policy.Verdict) store.Settlement {
	a := job.Attempt{N: h.Made + 1, Kind: job.KindAttempt, StartedAt: h.DueAt, Verdict: v.Kind.String(), Reason: v.Reason}
	switch v.Kind {
	case policy.Delivered:
		a.Status = 200
	case policy.Released:
		a.Kind = job.KindReleased
	default:
		a.Status = 500
	}
	return store.Settlement{Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease, Verdict: v, Attempt: a}
}

var (
	delivered = policy.Verdict{Kind: policy.Delivered}
	dead      = policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}
	released  = policy.Verdict{Kind: policy.Released}
)

func again(wait time.Duration) policy.Verdict { return policy.Verdict{Kind: policy.Again, Wait: wait} }

// settle ends attempts and answers an error for each.
func (s *suite) settle(items ...store.Settlement) []error {
	s.Helper()
	errs, _, err := s.Store.Settle(s.Context(), s.shard, store.NewToken(), items, nil)
	require.NoError(s, err)
	require.Len(s, errs, len(items))
	return errs
}

// end ends an attempt that must still be held.
func (s *suite) end(h store.Held, v policy.Verdict) {
	s.Helper()
	require.NoError(s, s.settle(settlement(h, v))[0])
}

// finish brings a new job to its end.
func (s *suite) finish(id string, v policy.Verdict, options ...option) {
	s.Helper()
	s.add(s.entry(id, options...))
	s.end(s.hold(id)[0], v)
}

func (s *suite) get(id string) job.Job {
	s.Helper()
	j, err := s.Store.Get(s.Context(), s.shard, s.ref(id))
	require.NoError(s, err)
	return j
}

func (s *suite) gone(id string) bool {
	s.Helper()
	_, err := s.Store.Get(s.Context(), s.shard, s.ref(id))
	if err != nil {
		require.ErrorIs(s, err, store.ErrNotFound)
	}
	return err != nil
}

func (s *suite) cancel(id string) (job.Job, error) {
	return s.Store.Cancel(s.Context(), s.shard, store.NewToken(), s.ref(id))
}

func (s *suite) edit(id string, e store.Edit) (job.Job, error) {
	if e.Kind == "" {
		e.Kind = job.KindEdited
	}
	return s.Store.Edit(s.Context(), s.shard, store.NewToken(), s.ref(id), e)
}

func (s *suite) revive(id string, delay time.Duration) (job.Job, error) {
	return s.Store.Revive(s.Context(), s.shard, store.NewToken(), s.ref(id), delay)
}

// inState fails unless the error says that the job's state forbids what was asked.
func (s *suite) inState(err error, state job.State) {
	s.Helper()
	stateErr, ok := errors.AsType[*store.StateError](err)
	require.True(s, ok, "want a StateError, got %v", err)
	require.Equal(s, state, stateErr.State)
}

func (s *suite) carry(r store.Round) store.Carried {
	s.Helper()
	c, err := s.Store.Carry(s.Context(), s.shard, store.NewToken(), r)
	require.NoError(s, err)
	return c
}

// await takes what is on the bell within the time.
func (s *suite) await(wait time.Duration) store.Rung {
	s.Helper()
	rung, err := s.Store.Await(s.Context(), s.shard, store.Watch{Group: store.GroupPush, Wait: wait})
	require.NoError(s, err)
	return rung
}

// hears waits until the bell has rung for a queue; a carrier works all the while.
func (s *suite) hears(q job.Queue) {
	s.Helper()
	s.eventually("a ring for "+q.String(), func() bool {
		s.carry(store.Round{})
		return slices.Contains(s.await(time.Millisecond).Queues, q)
	})
}

// quiet empties the bell and the wake.
func (s *suite) quiet() {
	s.Helper()
	s.eventually("silence", func() bool {
		rung, err := s.Store.Await(s.Context(), s.shard, store.Watch{Group: store.GroupPush, Wake: true, Wait: time.Millisecond})
		require.NoError(s, err)
		return len(rung.Queues) == 0 && !rung.Wake
	})
}

func (s *suite) put(p policy.Topic) store.Topic {
	s.Helper()
	t, err := s.Store.PutTopic(s.Context(), store.Topic{Namespace: s.queue.Namespace, Name: s.queue.Topic, Policy: p})
	require.NoError(s, err)
	return t
}

// sweep removes all that retention does not keep.
func (s *suite) sweep() {
	s.Helper()
	for more := true; more; {
		swept, err := s.Store.Sweep(s.Context(), s.shard, store.NewToken(), 100)
		require.NoError(s, err)
		require.LessOrEqual(s, swept.Jobs, 100)
		require.LessOrEqual(s, swept.IDs, 100)
		more = swept.More
	}
}

// stats are those of the test's topic.
func (s *suite) stats() store.TopicStats {
	s.Helper()
	rows, err := s.Store.Stats(s.Context(), s.shard, s.queue.Namespace, s.queue.Topic)
	require.NoError(s, err)
	require.Len(s, rows, 1)
	require.Equal(s, s.queue.Topic, rows[0].Topic)
	return rows[0]
}

// list reads all pages.
func (s *suite) list(f store.Filter) []job.Job {
	s.Helper()
	jobs, err := listAll(s.Context(), s.Store, s.shard, f)
	require.NoError(s, err)
	return jobs
}

func listAll(ctx context.Context, st store.Store, shard int, f store.Filter) ([]job.Job, error) {
	if f.Limit == 0 {
		f.Limit = 500
	}
	var all []job.Job
	for {
		page, err := st.List(ctx, shard, f)
		if err != nil {
			return nil, err
		}
		if len(page.Jobs) > f.Limit {
			return nil, fmt.Errorf("a page of %d jobs, limit %d", len(page.Jobs), f.Limit)
		}
		all = append(all, page.Jobs...)
		if page.Cursor == "" {
			return all, nil
		}
		f.Cursor = page.Cursor
	}
}

// names are the ids of listed jobs.
func names(jobs []job.Job) []string {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}

// kinds are those of a job's record.
func kinds(j job.Job) []job.AttemptKind {
	var all []job.AttemptKind
	for _, a := range j.Attempts {
		all = append(all, a.Kind)
	}
	return all
}
