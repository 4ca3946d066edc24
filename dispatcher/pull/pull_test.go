package pull_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/carrier"
	"github.com/ringback/ringback/dispatcher/pull"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

const topic = "reports"

// fixture is a store with a pulled topic, a carrier, and any number of processes that lease.
type fixture struct {
	*testing.T

	store  store.Store
	calls  sync.Map // *atomic.Int64 of calls by method
	mu     sync.Mutex
	policy policy.Topic
	events []pool.AttemptEvent
	stops  []func()
	// unsigned is why the topic's secrets are not readable.
	unsigned error
	// unopened is why sealed headers are not readable.
	unopened error
	opened   []string // names of headers
}

// start runs a carrier on a model.
func start(t *testing.T, shards int, p policy.Topic) *fixture {
	t.Helper()
	f := &fixture{T: t}
	f.store = storetest.Faulty(
		storetest.NewModel(storetest.ModelOptions{Shards: shards}), func(method string) storetest.Fault {
			f.count(method).Add(1)
			return storetest.None
		},
	)
	f.put(p)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	carries := carrier.New(router.New(f.store), slog.New(slog.DiscardHandler))
	running.Go(func() { carries.Run(ctx) })
	f.stops = append(f.stops, func() { cancel(); running.Wait() })
	t.Cleanup(func() {
		for _, stop := range f.stops {
			stop()
		}
	})
	return f
}

func (f *fixture) count(method string) *atomic.Int64 {
	n, _ := f.calls.LoadOrStore(method, new(atomic.Int64))
	counter, _ := n.(*atomic.Int64)
	return counter
}

// put changes the topic's policy.
func (f *fixture) put(p policy.Topic) {
	f.Helper()
	if p.Deliver == "" {
		p.Deliver = policy.DeliverPull
	}
	_, err := router.New(f.store).PutTopic(f.Context(),
		store.Topic{Namespace: job.DefaultNamespace, Name: topic, Policy: p})
	require.NoError(f, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy = p.WithDefaults(policy.Builtin())
}

func (f *fixture) Topic(string, string) policy.Topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.policy
}

func (*fixture) Update(context.Context) error     { return nil }
func (*fixture) UpdateNow(context.Context) error  { return nil }
func (*fixture) Sync(context.Context, int64) bool { return true }

func (f *fixture) Credentials(string, string) (job.Credentials, error) {
	return job.Credentials{Signer: signerFunc("topic")}, f.unsigned
}

// OpenHeader opens what the tests have sealed as "sealed:VALUE".
func (f *fixture) OpenHeader(_ job.Queue, name, sealed string) (job.HeaderSecret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, name)
	return job.HeaderSecret{Values: []string{strings.TrimPrefix(sealed, "sealed:")}}, f.unopened
}

func (*fixture) Signer(store.Lane) (job.Signer, error) { return signerFunc("lane"), nil }

func (f *fixture) AttemptEnded(e pool.AttemptEvent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, e)
}

// process runs a Puller until stop is called, or the test ends.
func (f *fixture) process() (p *pull.Puller, stop func()) {
	p = pull.New(pull.Options{
		Store: f.store, Policies: f, Owner: store.NewLeaseOwner(), Process: "here/test", Observer: f,
		Callbacks: func(ended pool.AttemptEvent) []store.NewJob {
			if ended.Terms.OnDead == nil || ended.Verdict.Kind != policy.Dead {
				return nil
			}
			return []store.NewJob{{New: job.New{Spec: job.Spec{
				ID:    "callback-of-" + ended.Job.ID,
				Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: job.CallbackTopic, Lane: "a"},
				Body:  ended.Job.Body, BodyKind: ended.Job.BodyKind, URL: ended.Terms.OnDead.URL,
			}}}}
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	f.stops = append(f.stops, stop)
	return p, stop
}

// insert inserts jobs, named lane/number.
func (f *fixture) insert(names ...string) {
	f.Helper()
	jobs := make([]store.NewJob, len(names))
	for i, name := range names {
		lane, _, _ := strings.Cut(name, "_")
		jobs[i] = store.NewJob{New: job.New{Spec: job.Spec{
			ID: name, Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane},
			BodyKind: job.BodyText, Body: []byte(name),
		}}}
	}
	f.insertJobs(jobs...)
}

func (f *fixture) insertJobs(jobs ...store.NewJob) {
	f.Helper()
	for _, result := range router.New(f.store).Insert(f.Context(), jobs) {
		require.NoError(f, result.Err)
		require.Equal(f, store.Created, result.Outcome)
	}
}

func (f *fixture) get(id string) job.Job {
	f.Helper()
	found, err := router.New(f.store).Get(f.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: id})
	require.NoError(f, err)
	return found
}

func request(limit int, wait time.Duration, lanes ...string) store.LeaseRequest {
	return store.LeaseRequest{
		Namespace: job.DefaultNamespace, Topic: topic, Max: limit, Wait: wait,
		Lease: time.Minute, Lanes: lanes,
	}
}

// lease leases jobs, which must not fail.
func (f *fixture) lease(p *pull.Puller, limit int, wait time.Duration, lanes ...string) []store.LeasedJob {
	f.Helper()
	leased, err := p.Lease(f.Context(), request(limit, wait, lanes...))
	require.NoError(f, err)
	return leased
}

func ids(leased []store.LeasedJob) []string {
	names := make([]string, len(leased))
	for i := range leased {
		names[i] = leased[i].ID
	}
	return names
}

// report returns a report about a lease as its client has it.
func (f *fixture) report(leased store.LeasedJob, result store.LeaseResult) store.LeaseReport {
	f.Helper()
	l, err := store.ParseClientLease(job.DefaultNamespace, leased.ClientLease.String())
	require.NoError(f, err)
	require.Equal(f, leased.ClientLease.Token, l.Token)
	return store.LeaseReport{Lease: l, Result: result, For: time.Hour}
}

// settle settles leases, and returns the error of each.
func (f *fixture) settle(p *pull.Puller, reports ...store.LeaseReport) []error {
	f.Helper()
	errs, leased, err := p.Settle(f.Context(), reports, nil)
	require.NoError(f, err)
	require.Empty(f, leased)
	return errs
}

func TestLease_WaitsForTheFirstJob(t *testing.T) {
	for _, shards := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, shards, policy.Topic{})
			p, _ := f.process()
			time.AfterFunc(10*time.Second, func() { f.insert("a_1", "a_2", "b_1") })
			began := time.Now()
			leased := f.lease(p, 1, 30*time.Second)
			require.Len(t, leased, 1)
			require.Equal(t, 10*time.Second, time.Since(began))
			require.Equal(t, leased[0].ID, string(leased[0].Body))
			require.Equal(t, began.Add(70*time.Second).UTC(), leased[0].Until.UTC())
			require.Equal(t, job.Running, f.get(leased[0].ID).State)
			require.Len(t, append(f.lease(p, 1, time.Second), f.lease(p, 1, time.Second)...), 2)
			require.Empty(t, f.lease(p, 1, 20*time.Second))
			require.Equal(t, 30*time.Second, time.Since(began).Truncate(time.Second))
		})
	}
}

func TestLease_FindsJobsThatWereDueBeforeTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		f.insert("a_1", "a_2")
		time.Sleep(time.Hour)
		p, _ := f.process()
		began := time.Now()
		require.Len(t, f.lease(p, 10, 0), 2)
		require.Zero(t, time.Since(began))
		require.Empty(t, f.lease(p, 10, 0))
		require.Less(t, time.Since(began), time.Second)
	})
}

func TestLease_PassesManyJobsThatAreTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{LaneConcurrency: 1000})
		old := make([]string, 2000)
		for i := range old {
			old[i] = fmt.Sprint("a_", i)
		}
		f.insert(old[:512]...)
		f.insert(old[512:1024]...)
		f.insert(old[1024:1536]...)
		f.insert(old[1536:]...)
		time.Sleep(time.Hour)
		f.put(policy.Topic{LaneConcurrency: 1000, MaxAge: time.Minute})
		f.insert("a_good", "a_better")
		fast := f.store
		f.store = wrapped{fast, func(s store.Shard) store.Shard { return slowReply{s} }}
		p, _ := f.process()
		began := time.Now()
		require.Empty(t, f.lease(p, 1, 3*time.Second))
		require.LessOrEqual(t, time.Since(began), 5*time.Second, "the wait ends between claims")
		require.Len(t, f.lease(p, 1, time.Minute), 1)
		require.LessOrEqual(t, f.count("Claim").Load(), int64(40))
		require.Equal(t, job.Ready, f.get("a_better").State)
	})
}

// slowSome delays the replies to some settlements.
type slowSome struct {
	store.Shard
	isSlow func(first *store.Settlement) bool
}

func (s slowSome) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	errs, claimed, err := s.Shard.Settle(ctx, token, items, next)
	if len(items) > 0 && s.isSlow(&items[0]) {
		time.Sleep(3 * time.Second)
	}
	return errs, claimed, err
}

// slow returns a process for which some settlements are slow.
func (f *fixture) slow(isSlow func(first *store.Settlement) bool) *pull.Puller {
	f.store = wrapped{f.store, func(s store.Shard) store.Shard { return slowSome{s, isSlow} }}
	p, _ := f.process()
	return p
}

func TestLease_ReleasesWhatIsTooLateForItsRateOnceOthersAreRefusedOrReleased(t *testing.T) {
	for limit, slow := range map[int]policy.Kind{10: policy.Dead, 1: policy.Released} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, 1, policy.Topic{LaneConcurrency: 10})
			f.insert("a_old")
			time.Sleep(time.Hour)
			f.put(policy.Topic{
				LaneConcurrency: 10, MaxAge: time.Minute, Rate: policy.Rate{Starts: 10, Per: 10 * time.Second},
			})
			f.insert("a_good", "a_more")
			p := f.slow(func(first *store.Settlement) bool { return first.Verdict.Kind == slow })
			require.Empty(t, f.lease(p, limit, time.Second))
			require.Equal(t, job.Dead, f.get("a_old").State)
			require.Equal(t, job.Ready, f.get("a_good").State)
			require.Len(t, f.lease(p, 1, time.Minute), 1)
		})
	}
}

func TestSettle_ReleasesWhatIsTooLateForItsRateOnceLeasesAreExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{LaneConcurrency: 10, Rate: policy.Rate{Starts: 10, Per: 10 * time.Second}})
		f.insert("a_1", "a_2", "a_3")
		p := f.slow(func(first *store.Settlement) bool { return first.Extend > 0 })
		leased := f.lease(p, 2, time.Minute)
		errs, more, err := p.Settle(t.Context(), []store.LeaseReport{
			f.report(leased[0], store.LeaseDone), f.report(leased[1], store.LeaseExtend),
		}, new(request(1, time.Second)))
		require.NoError(t, err)
		require.Equal(t, []error{nil, nil}, errs)
		require.Equal(t, []string{"a_3"}, ids(more))
		require.EqualValues(t, 3, f.count("Permit").Load(), "the starts of the second were too late")
	})
}

// slowWait delays Waits by 300 ms.
type slowWait struct{ store.Shard }

func (s slowWait) Wait(ctx context.Context, options store.WaitOptions) ([]job.Queue, error) {
	time.Sleep(300 * time.Millisecond)
	return s.Shard.Wait(ctx, options)
}

func TestLease_FindsReadyJobsWithoutAWaitOnASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 4, policy.Topic{})
		f.insert("a_1", "b_1")
		time.Sleep(time.Hour)
		fast := f.store
		f.store = wrapped{fast, func(s store.Shard) store.Shard { return slowWait{s} }}
		p, _ := f.process()
		first, second := f.lease(p, 1, 0), f.lease(p, 1, 0)
		require.Len(t, append(first, second...), 2)
		began := time.Now()
		require.Empty(t, f.lease(p, 1, 0))
		require.Less(t, time.Since(began), time.Second)
	})
}

// Jobs of another topic come every few milliseconds, also while the shards are looked at.
func TestLease_AnswersAtOnceWithoutAWaitWhileAnotherTopicIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		jobs := router.New(f.store)
		_, err := jobs.PutTopic(f.Context(), store.Topic{
			Namespace: job.DefaultNamespace, Name: "busy",
			Policy: policy.Topic{Deliver: policy.DeliverPull},
		})
		require.NoError(t, err)
		p, _ := f.process()
		ctx, cancel := context.WithCancel(f.Context())
		var busy sync.WaitGroup
		defer busy.Wait()
		defer cancel()
		busy.Go(func() {
			for ctx.Err() == nil {
				_, _ = p.Lease(ctx,
					store.LeaseRequest{Namespace: job.DefaultNamespace, Topic: "busy", Max: 100, Wait: time.Second})
			}
		})
		busy.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				jobs.Insert(f.Context(), []store.NewJob{{New: job.New{Spec: job.Spec{ID: fmt.Sprint("busy-",
					n), Queue: job.Queue{
					Namespace: job.DefaultNamespace, Topic: "busy", Lane: fmt.Sprint("lane-", n),
				}}}}})
				time.Sleep(25 * time.Millisecond)
			}
		})
		time.Sleep(time.Second)
		began := time.Now()
		require.Empty(t, f.lease(p, 1, 0))
		require.Less(t, time.Since(began), time.Second)
		f.insert("a_1")
		time.Sleep(time.Minute) // until the topic is not listened to any more
		require.Equal(t, []string{"a_1"}, ids(f.lease(p, 1, 0)))
	})
}

func TestLease_TakesLanesInTurns(t *testing.T) {
	for _, limit := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, 1, policy.Topic{LaneConcurrency: 1000})
			p, _ := f.process()
			for i := range 40 {
				f.insert(fmt.Sprint("busy_", i))
			}
			for lane := range 7 {
				f.insert(fmt.Sprintf("few%d_1", lane))
			}
			time.Sleep(time.Second)
			seen := make(map[string]bool)
			for range 8 / limit {
				leased := f.lease(p, limit, time.Second)
				require.Len(t, leased, limit)
				for _, j := range leased {
					seen[j.Lane] = true
				}
			}
			require.Len(t, seen, 8, "each lane had its turn")
		})
	}
}

func TestLease_TakesLanesInTurnsUnderARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{LaneConcurrency: 1000, Rate: policy.Rate{Starts: 1, Per: 10 * time.Second}})
		p, _ := f.process()
		for i := range 40 {
			f.insert(fmt.Sprint("a_", i), fmt.Sprint("b_", i), fmt.Sprint("c_", i))
		}
		seen := make(map[string]int)
		for range 12 {
			for _, j := range f.lease(p, 10, time.Minute) {
				seen[j.Lane]++
			}
		}
		require.Equal(t, map[string]int{"a": 4, "b": 4, "c": 4}, seen)
	})
}

func TestSettle_TakesLanesOfAllShardsInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 4, policy.Topic{LaneConcurrency: 1000})
		p, _ := f.process()
		for i := range 300 {
			f.insert(fmt.Sprint("busy_", i))
		}
		for lane := range 20 {
			f.insert(fmt.Sprintf("few%d_1", lane))
		}
		next := request(1, time.Second, "*")
		leased := f.lease(p, 1, time.Second, "busy")
		seen := make(map[string]bool)
		for range 250 {
			time.Sleep(10 * time.Millisecond) // its work
			_, more, err := p.Settle(t.Context(), []store.LeaseReport{f.report(leased[0], store.LeaseDone)}, &next)
			require.NoError(t, err)
			require.Len(t, more, 1)
			seen[more[0].Lane] = true
			leased = more
		}
		require.Len(t, seen, 21)
	})
}

func TestLease_TakesOnlyTheLanesThatAClientAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 2, policy.Topic{})
		p, _ := f.process()
		f.insert("customer-1_1", "customer-2_1", "other_1")
		first := f.lease(p, 10, time.Second, "customer-*")
		second := f.lease(p, 10, time.Second, "customer-*", "x")
		require.ElementsMatch(t, []string{"customer-1_1", "customer-2_1"}, append(ids(first), ids(second)...))
		require.Empty(t, f.lease(p, 10, time.Second, "customer-*"))
		require.Equal(t, []string{"other_1"}, ids(f.lease(p, 10, time.Second, "none", "other")))
	})
}

func TestLease_RefusesATopicThatIsNotPulled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{Deliver: policy.DeliverPush, URL: "https://a.example"})
		p, _ := f.process()
		_, err := p.Lease(t.Context(), request(1, time.Minute))
		require.EqualError(t, err, `the topic reports is not pulled: set "deliver": "pull" in its policy`)
		_, _, refused := p.Settle(t.Context(), nil, new(request(1, time.Minute)))
		require.Equal(t, err, refused)
	})
}

func TestLease_AClientThatLeavesWhileItWaitsTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		p, _ := f.process()
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, leave)
		_, err := p.Lease(ctx, request(1, time.Minute))
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, p.Clients())
		f.insert("a_1")
		require.Len(t, f.lease(p, 1, time.Second), 1)
		require.Empty(t, f.get("a_1").History)
	})
}

// slowReply delays the replies to claims.
type slowReply struct{ store.Shard }

func (s slowReply) Claim(ctx context.Context, token store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	claimed, err := s.Shard.Claim(ctx, token, r)
	time.Sleep(time.Second)
	return claimed, err
}

func TestLease_ReleasesWhatAClaimBringsAfterItsClientHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		fast := f.store
		f.store = wrapped{fast, func(s store.Shard) store.Shard { return slowReply{s} }}
		p, _ := f.process()
		f.insert("a_1")
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, func() {
			require.Equal(t, job.Running, f.get("a_1").State)
			leave()
		})
		_, err := p.Lease(ctx, request(1, time.Minute))
		require.Error(t, err)
		require.Equal(t, job.Ready, f.get("a_1").State)
		require.Empty(t, f.get("a_1").History)
		require.Zero(t, f.get("a_1").Attempts)
		require.Len(t, f.lease(p, 1, time.Minute), 1, "the next client gets it")
	})
}

// A wake-up that comes while a settlement claims from a queue that is not runnable is not lost.
func TestSettle_HearsOfAJobWhileItClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		fast := f.store
		f.store = wrapped{fast, func(s store.Shard) store.Shard { return slowSettlement{s} }}
		p, _ := f.process()
		f.insert("a_1")
		leased := f.lease(p, 1, time.Minute)
		next := request(1, time.Minute)
		began := time.Now()
		time.AfterFunc(50*time.Millisecond, func() { f.insert("a_2") })
		_, more, err := p.Settle(t.Context(), []store.LeaseReport{f.report(leased[0], store.LeaseDone)}, &next)
		require.NoError(t, err)
		require.Equal(t, []string{"a_2"}, ids(more))
		require.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}

// A client whose reports are still settled takes no wake-up from one that waits.
func TestSettle_LeavesWakeupsToClientsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		fast := f.store
		f.store = wrapped{fast, func(s store.Shard) store.Shard { return slowSettlement{s} }}
		p, _ := f.process()
		f.store = fast
		f.insert("1")
		report := f.report(f.lease(p, 1, time.Minute)[0], store.LeaseDone)
		var all sync.WaitGroup
		all.Go(func() {
			_, more, err := p.Settle(t.Context(), []store.LeaseReport{report},
				new(request(1, 500*time.Millisecond, "other")))
			require.NoError(t, err)
			require.Equal(t, []string{"other_3"}, ids(more))
		})
		synctest.Wait()
		all.Go(func() {
			began := time.Now()
			require.Equal(t, []string{"other_2"}, ids(f.lease(p, 1, time.Minute, "other")))
			require.Zero(t, time.Since(began))
		})
		synctest.Wait()
		f.insert("other_2")
		synctest.Wait()
		f.insert("other_3")
		all.Wait()
	})
}

// slowSettlement delays the replies to settlements by 100 ms.
type slowSettlement struct{ store.Shard }

func (s slowSettlement) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	errs, claimed, err := s.Shard.Settle(ctx, token, items, next)
	time.Sleep(100 * time.Millisecond)
	return errs, claimed, err
}

// wrapped wraps the shards of a store.
type wrapped struct {
	store.Store
	wrap func(store.Shard) store.Shard
}

func (s wrapped) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return s.wrap(next) })
}

func TestRelease_MakesJobsDueAgainWithoutAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 4, policy.Topic{})
		p, _ := f.process()
		f.insert("a_1", "b_1", "c_1")
		var leased []store.LeasedJob
		for len(leased) < 3 {
			leased = append(leased, f.lease(p, 10, time.Second)...)
		}
		p.Release(t.Context(), leased)
		for _, j := range leased {
			require.Equal(t, job.Ready, f.get(j.ID).State)
			require.Zero(t, f.get(j.ID).Attempts)
			require.Empty(t, f.get(j.ID).History)
			require.Equal(t, []error{store.ErrLeaseLost}, f.settle(p, f.report(j, store.LeaseDone)))
		}
	})
}

func TestLease_KeepsConcurrencyRatesAndPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{LaneConcurrency: 2})
		p, _ := f.process()
		f.insert("a_1", "a_2", "a_3", "a_4", "a_5", "a_6", "a_7", "a_8")
		leased := f.lease(p, 10, time.Second)
		require.Len(t, leased, 2)
		require.Empty(t, f.lease(p, 10, time.Second))
		require.Equal(t, []error{nil}, f.settle(p, f.report(leased[0], store.LeaseDone)))
		require.Len(t, f.lease(p, 10, time.Second), 1, "a settlement makes room")

		f.put(policy.Topic{LaneConcurrency: 100, LaneRate: policy.Rate{Starts: 1, Per: 10 * time.Second}})
		require.Len(t, f.lease(p, 10, time.Second), 1)
		began := time.Now()
		require.Len(t, f.lease(p, 10, time.Minute), 1)
		require.GreaterOrEqual(t, time.Since(began), 8*time.Second)

		f.put(policy.Topic{LaneConcurrency: 100, Rate: policy.Rate{Starts: 1, Per: 20 * time.Second}})
		time.Sleep(time.Minute)
		require.Len(t, f.lease(p, 10, time.Second), 1)
		began = time.Now()
		require.Len(t, f.lease(p, 10, time.Minute), 1)
		require.GreaterOrEqual(t, time.Since(began), 18*time.Second)

		f.put(policy.Topic{LaneConcurrency: 100, Paused: true})
		require.Empty(t, f.lease(p, 10, time.Minute))
		f.put(policy.Topic{LaneConcurrency: 100})
		require.NotEmpty(t, f.lease(p, 10, time.Minute))
	})
}

func TestSettle_RecordsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{Ladder: policy.Ladder{time.Minute, time.Hour}, Jitter: new(0.0)})
		p, _ := f.process()
		f.insert("a_1", "a_2", "a_3", "a_4")
		leased := f.lease(p, 10, time.Second)
		require.Equal(t, []string{"a_1", "a_2", "a_3", "a_4"}, ids(leased))
		time.Sleep(3 * time.Second)
		done, again, later, dead := f.report(leased[0], store.LeaseDone), f.report(leased[1], store.LeaseRetry),
			f.report(leased[2], store.LeaseRetry), f.report(leased[3], store.LeaseDead)
		done.Response = []byte("made report 7")
		again.Error = "no disk"
		later.After = new(5 * time.Hour)
		dead.Error = "no such customer"
		now := time.Now()
		require.Equal(t, []error{nil, nil, nil, nil}, f.settle(p, done, again, later, dead))

		got := f.get("a_1")
		require.Equal(t, job.Delivered, got.State)
		require.Equal(t, []job.Attempt{{
			N: 1, Kind: job.KindAttempt, StartedAt: leased[0].ClientLease.LeasedAt,
			Duration: 3 * time.Second, Process: "here/test", Verdict: "delivered", Body: []byte("made report 7"),
		}}, got.History)
		got = f.get("a_2")
		require.Equal(t, now.Add(time.Minute).UTC(), got.DueAt.UTC(), "the ladder's wait")
		require.Equal(t, "no disk", got.History[0].Error)
		require.Equal(t, policy.ClassConsumer, got.History[0].ErrorClass)
		require.Equal(t, 1, got.FailedAttempts)
		require.Equal(t, now.Add(5*time.Hour).UTC(), f.get("a_3").DueAt.UTC(), "the client's wait")
		got = f.get("a_4")
		require.Equal(t, job.Dead, got.State)
		require.Equal(t, policy.ReasonNonRetryable, got.Reason)
		require.Equal(t, "no such customer", got.History[0].Error)

		require.Len(t, f.events, 4)
		require.True(t, f.events[0].Result.Accepted)
		require.Equal(t, 3*time.Second, f.events[0].Result.Duration)

		retried := f.lease(p, 1, 2*time.Minute)
		require.Equal(t, 1, retried[0].Attempts)
		now = time.Now()
		f.settle(p, f.report(retried[0], store.LeaseRetry))
		require.Equal(t, now.Add(time.Hour).UTC(), f.get("a_2").DueAt.UTC())
		retried = f.lease(p, 1, 2*time.Hour)
		f.settle(p, f.report(retried[0], store.LeaseRetry))
		require.Equal(t, policy.ReasonExhausted, f.get("a_2").Reason)
	})
}

func TestSettle_AppliesTheJobsOwnTermsAndCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{OnDead: &policy.Callback{URL: "https://callbacks.example"}})
		p, _ := f.process()
		spec := job.Spec{
			ID: "own", Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: "a"},
			BodyKind: job.BodyText, Body: []byte("body"),
			Terms: policy.Terms{Ladder: policy.Ladder{7 * time.Hour}, Retries: new(1)},
		}
		f.insertJobs(store.NewJob{New: job.New{Spec: spec}})
		now := time.Now()
		f.settle(p, f.report(f.lease(p, 1, time.Second)[0], store.LeaseRetry))
		require.GreaterOrEqual(t, f.get("own").DueAt.Sub(now), 7*time.Hour)
		time.Sleep(8 * time.Hour)
		f.settle(p, f.report(f.lease(p, 1, time.Second)[0], store.LeaseRetry))
		require.Equal(t, policy.ReasonExhausted, f.get("own").Reason)
		time.Sleep(time.Second)
		require.Equal(t, "body", string(f.get("callback-of-own").Body))
	})
}

// noGet is a shard that jobs must not be read from.
type noGet struct{ store.Shard }

func (noGet) Get(context.Context, job.Ref) (job.Job, error) { return job.Job{}, store.ErrUnavailable }

func TestSettle_AppliesTheJobsOwnLadderWithoutReadingIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{Jitter: new(0.0)})
		whole := f.store
		f.store = wrapped{whole, func(s store.Shard) store.Shard { return noGet{s} }}
		p, _ := f.process()
		f.store = whole
		f.insertJobs(store.NewJob{New: job.New{Spec: job.Spec{
			ID: "own", Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: "a"},
			BodyKind: job.BodyText, Body: []byte("body"),
			Terms: policy.Terms{Ladder: policy.Ladder{time.Minute, 7 * time.Hour}},
		}}})
		for _, wait := range []time.Duration{time.Minute, 7 * time.Hour} {
			require.Equal(t, []error{nil}, f.settle(p, f.report(f.lease(p, 1, time.Second)[0], store.LeaseRetry)))
			require.Equal(t, time.Now().Add(wait).UTC(), f.get("own").DueAt.UTC())
			time.Sleep(wait + time.Second)
		}
		require.Equal(t, []error{nil}, f.settle(p, f.report(f.lease(p, 1, time.Second)[0], store.LeaseRetry)))
		require.Equal(t, policy.ReasonExhausted, f.get("own").Reason)
	})
}

func TestSettle_ReadsNoJobThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{OnDead: &policy.Callback{URL: "https://shop.example/dead"}})
		whole := f.store
		f.store = wrapped{whole, func(s store.Shard) store.Shard { return noGet{s} }}
		p, _ := f.process()
		f.store = whole
		f.insert("a_1")
		require.Equal(t, []error{nil}, f.settle(p, f.report(f.lease(p, 1, time.Second)[0], store.LeaseRetry)))
		time.Sleep(time.Hour)
		_, _, err := p.Settle(t.Context(),
			[]store.LeaseReport{f.report(f.lease(p, 1, time.Second)[0], store.LeaseDead)}, nil)
		require.ErrorIs(t, err, store.ErrUnavailable, "its callback needs the job")
		require.Equal(t, job.Running, f.get("a_1").State)
	})
}

func TestSettle_JobThatExpiresBeforeItsRetryIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		p, _ := f.process()
		queue := job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: "a"}
		f.insertJobs(
			store.NewJob{New: job.New{Spec: job.Spec{ID: "soon", Queue: queue}, ExpiresIn: 30 * time.Second}},
			store.NewJob{New: job.New{
				Spec: job.Spec{ID: "over", Queue: queue}, Delay: 2 * time.Second,
				ExpiresIn: 5 * time.Second,
			}},
		)
		report := f.report(f.lease(p, 1, time.Second)[0], store.LeaseRetry)
		report.After = new(20 * time.Second)
		time.Sleep(11 * time.Second)
		require.Equal(t, []error{nil}, f.settle(p, report))
		require.Equal(t, policy.ReasonExpired, f.get("soon").Reason)
		require.Empty(t, f.lease(p, 1, time.Second))
		require.Equal(t, policy.ReasonExpired, f.get("over").Reason, "it was not attempted")
		require.Zero(t, f.get("over").Attempts)
	})
}

func TestSettle_CountsHowLateAJobWasLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		p, _ := f.process()
		f.insert("a")
		time.Sleep(time.Hour)
		require.Equal(t, []error{nil}, f.settle(p, f.report(f.lease(p, 1, time.Second)[0], store.LeaseDone)))
		all, err := f.store.Shards()[0].ReadHistory(t.Context(), job.DefaultNamespace, []string{store.AllTopics})
		require.NoError(t, err)
		require.Equal(t, store.HistoryCounts{Delivered: 1, Late: [9]int64{8: 1}}, all[0].Hours[0].HistoryCounts)
	})
}

func TestSettle_LateForgedAndForeignLeasesAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 4, policy.Topic{})
		p, stop := f.process()
		f.insert("a_1", "b_1")
		late := f.lease(p, 1, time.Second)[0]
		time.Sleep(2 * time.Minute) // the lease is over, and the carrier has put the job back
		require.Equal(t, job.KindLost, f.get(late.ID).History[0].Kind)
		stop()
		p, _ = f.process() // after a restart
		all := []store.LeaseResult{store.LeaseDone, store.LeaseRetry, store.LeaseDead, store.LeaseExtend}
		for _, result := range all {
			require.Equal(t, []error{store.ErrLeaseLost}, f.settle(p, f.report(late, result)))
		}
		var current []store.LeasedJob
		for len(current) < 2 {
			current = append(current, f.lease(p, 1, time.Second)...)
		}
		before := f.get(current[0].ID)
		for name, forge := range map[string]func(*store.ClientLease){
			"token":     func(l *store.ClientLease) { l.Token = store.NewToken() },
			"job":       func(l *store.ClientLease) { l.ID = current[1].ID },
			"no job":    func(l *store.ClientLease) { l.ID, l.OwnCallbacks = "gone", true },
			"callbacks": func(l *store.ClientLease) { l.Token, l.OwnCallbacks = store.NewToken(), true },
			"lane":      func(l *store.ClientLease) { l.Queue.Lane = "another" },
			"topic":     func(l *store.ClientLease) { l.Queue.Topic = "another" },
			"namespace": func(l *store.ClientLease) { l.Queue.Namespace = "another" },

			"leased at":       func(l *store.ClientLease) { l.LeasedAt = time.UnixMilli(-1 << 62) },
			"age":             func(l *store.ClientLease) { l.Age = 1e6 * time.Hour },
			"lateness":        func(l *store.ClientLease) { l.Late = 1e6 * time.Hour },
			"expiry":          func(l *store.ClientLease) { l.Expires, l.ExpiresIn = true, time.Hour },
			"attempts":        func(l *store.ClientLease) { l.Attempts++ },
			"failed attempts": func(l *store.ClientLease) { l.Attempts, l.FailedAttempts = 7, 7 },
			"own callbacks":   func(l *store.ClientLease) { l.OwnCallbacks = !l.OwnCallbacks },
			"retries":         func(l *store.ClientLease) { l.OwnRetries, l.Retries = true, 1000 },
			"rung": func(l *store.ClientLease) {
				l.OwnRetries, l.Retries, l.Rung = true, 1, time.Millisecond
			},
			"probe": func(l *store.ClientLease) { l.Probe = true },
			"trace": func(l *store.ClientLease) {
				l.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
			},
			"a key of its own": func(l *store.ClientLease) { l.Sign(store.LeaseKey{}) },
			"no lease":         func(l *store.ClientLease) { *l = store.ClientLease{} },
		} {
			for _, result := range all {
				report := f.report(current[0], result)
				forge(&report.Lease)
				require.Equal(t, []error{store.ErrLeaseLost}, f.settle(p, report), name)
			}
		}
		require.Equal(t, before, f.get(current[0].ID))
		for _, j := range current {
			done := f.report(j, store.LeaseDone)
			require.Equal(t, []error{store.ErrLeaseLost, nil, store.ErrLeaseLost},
				f.settle(p, store.LeaseReport{Result: store.LeaseDone}, done, done))
		}
	})
}

func TestSettle_ExtendsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		p, _ := f.process()
		f.insert("a_1")
		leased := f.lease(p, 1, time.Second)[0]
		time.Sleep(50 * time.Second)
		require.Equal(t, []error{nil}, f.settle(p, f.report(leased, store.LeaseExtend)))
		time.Sleep(59 * time.Minute)
		require.Equal(t, job.Running, f.get("a_1").State)
		require.Equal(t, []error{nil}, f.settle(p, f.report(leased, store.LeaseDone)))
		require.Equal(t, job.Delivered, f.get("a_1").State)
	})
}

func TestSettle_TellsThatAJobWasCancelledWhenItsLeaseIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		p, _ := f.process()
		f.insert("a_1")
		leased := f.lease(p, 1, time.Second)[0]
		require.Equal(t, []error{nil}, f.settle(p, f.report(leased, store.LeaseExtend)))
		_, err := router.New(f.store).Cancel(t.Context(), leased.Ref(), store.Cancellation{})
		require.NoError(t, err)
		require.Equal(t, []error{store.ErrCancelRequested}, f.settle(p, f.report(leased, store.LeaseExtend)))
		require.Equal(t, []error{nil}, f.settle(p, f.report(leased, store.LeaseRetry)))
		require.Equal(t, job.Cancelled, f.get("a_1").State)
	})
}

// clockAhead is a store whose clock is five minutes ahead of the processes'.
type clockAhead struct{ store.Shard }

func (s clockAhead) Claim(ctx context.Context, token store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	claimed, err := s.Shard.Claim(ctx, token, r)
	for i := range claimed.Jobs {
		j := &claimed.Jobs[i]
		j.FirstDueAt, j.ExpiresAt = j.FirstDueAt.Add(5*time.Minute), j.ExpiresAt.Add(5*time.Minute)
	}
	return claimed, err
}

func TestSettle_JudgesByTheStoresClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{Ladder: policy.Ladder{time.Minute}, Jitter: new(0.0)})
		fast := f.store
		f.store = wrapped{fast, func(s store.Shard) store.Shard { return clockAhead{s} }}
		p, _ := f.process()
		other, _ := f.process()
		expiring := func(id string) store.NewJob {
			return store.NewJob{New: job.New{Spec: job.Spec{
				ID: id, Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: "a"},
				BodyKind: job.BodyText, Body: []byte(id),
			}, ExpiresIn: 4 * time.Minute}}
		}
		f.insertJobs(expiring("a_1"), expiring("a_2"))
		leased := f.lease(p, 2, time.Second)
		require.Equal(t, time.Now().Add(5*time.Minute).UTC(), leased[0].ClientLease.LeasedAt)
		time.Sleep(3 * time.Second)
		f.settle(p, f.report(leased[0], store.LeaseRetry))
		f.settle(other, f.report(leased[1], store.LeaseRetry))
		require.Equal(t, 3*time.Second, f.get("a_1").History[0].Duration)
		require.Zero(t, f.get("a_2").History[0].Duration, "it is never negative")
		require.Equal(t, job.Scheduled, f.get("a_1").State)
	})
}

func TestSettle_LeasesTheNextJobsInTheSameCall(t *testing.T) {
	for _, shards := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, shards, policy.Topic{LaneConcurrency: 2})
			p, _ := f.process()
			for i := range 20 {
				f.insert(fmt.Sprint("a_", i+10))
			}
			next := request(2, time.Second)
			leased := f.lease(p, 2, time.Second)
			claims, settles := f.count("Claim").Load(), f.count("Settle").Load()
			for n := 0; len(leased) > 0; n++ {
				require.Len(t, leased, 2)
				reports := []store.LeaseReport{f.report(leased[0], store.LeaseDone), f.report(leased[1],
					store.LeaseDone)}
				var errs []error
				var err error
				errs, leased, err = p.Settle(t.Context(), reports, &next)
				require.NoError(t, err)
				require.Equal(t, []error{nil, nil}, errs)
				if n < 9 {
					require.Len(t, leased, 2)
				}
			}
			require.Equal(t, settles+10, f.count("Settle").Load())
			// Only the last client looks for more, and once more for each wake-up that comes while it does.
			require.LessOrEqual(t, f.count("Claim").Load(), claims+3, "not with each of ten settlements")
			for i := range 20 {
				require.Equal(t, job.Delivered, f.get(fmt.Sprint("a_", i+10)).State)
			}
		})
	}
}

func TestSettle_RecordsResultsWhenTheTopicIsNotPulledAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		p, _ := f.process()
		f.insert("a_1", "a_2")
		leased := f.lease(p, 1, time.Second)[0]
		f.put(policy.Topic{Deliver: policy.DeliverPush, URL: "https://a.example"})
		next := request(1, time.Minute)
		errs, more, err := p.Settle(t.Context(), []store.LeaseReport{f.report(leased, store.LeaseDone)}, &next)
		require.NoError(t, err)
		require.Equal(t, []error{nil}, errs)
		require.Empty(t, more)
	})
}

func TestLease_WaitingClientsMakeNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 2, policy.Topic{})
		p, _ := f.process()
		var clients sync.WaitGroup
		var leased atomic.Int64
		for range 1000 {
			clients.Go(func() { leased.Add(int64(len(f.lease(p, 1, 50*time.Second)))) })
		}
		time.Sleep(time.Second)
		require.Equal(t, 1000, p.Clients())
		waits := f.count("Wait").Load()
		time.Sleep(40 * time.Second)
		require.LessOrEqual(t, f.count("Wait").Load()-waits, int64(2*9), "one for each shard, every 5 s")
		require.Zero(t, f.count("Claim").Load())
		for i := range 10 {
			f.insert(fmt.Sprintf("lane%d_1", i))
		}
		clients.Wait()
		require.EqualValues(t, 10, leased.Load())
		require.LessOrEqual(t, f.count("Claim").Load(), int64(20))
		time.Sleep(20 * time.Second)
		waits = f.count("Wait").Load()
		time.Sleep(time.Minute)
		require.Equal(t, waits, f.count("Wait").Load(), "nobody waits")
	})
}

func TestLease_EachJobOnceFromSeveralProcesses(t *testing.T) {
	for _, shards := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			f := start(t, shards, policy.Topic{LaneConcurrency: 1000})
			const jobs = 300
			var mu sync.Mutex
			seen := make(map[string]int)
			var clients sync.WaitGroup
			for n := range 3 {
				p, _ := f.process()
				for c := range 8 {
					clients.Go(func() {
						var lanes []string
						if c%2 == 0 {
							lanes = []string{fmt.Sprintf("l%d*", c/2)}
						}
						for {
							leased := f.lease(p, 5, 5*time.Second, lanes...)
							if len(leased) == 0 {
								return
							}
							for _, j := range leased {
								mu.Lock()
								seen[j.ID]++
								mu.Unlock()
								time.Sleep(time.Duration(n+1) * time.Millisecond)
								require.Equal(t, []error{nil}, f.settle(p, f.report(j, store.LeaseDone)))
							}
						}
					})
				}
			}
			for i := range jobs {
				f.insert(fmt.Sprintf("l%d_%d", i%10, i))
			}
			clients.Wait()
			require.Len(t, seen, jobs)
			for id, n := range seen {
				require.Equal(t, 1, n, id)
			}
		})
	}
}

func TestRun_EndsWaitsAndPassesQueuesOnWhenItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		p, stop := f.process()
		other, _ := f.process()
		time.AfterFunc(10*time.Second, stop)
		began := time.Now()
		require.Empty(t, f.lease(p, 1, time.Minute))
		require.Equal(t, 10*time.Second, time.Since(began))
		_, err := p.Lease(t.Context(), request(1, time.Minute))
		require.ErrorIs(t, err, store.ErrStopping)
		_, _, err = p.Settle(t.Context(), nil, new(request(1, time.Minute)))
		require.ErrorIs(t, err, store.ErrStopping, "so a consumer does not ask again at once")
		f.insert("a_1")
		leased := f.lease(other, 1, time.Second)
		require.Len(t, leased, 1)
		require.Equal(t, []error{nil}, f.settle(p, f.report(leased[0], store.LeaseDone)),
			"results are recorded while the process stops")
	})
}

// slowNotify delays Notify by a second.
type slowNotify struct {
	store.Shard
	inFlight *atomic.Int64
}

func (s slowNotify) Notify(ctx context.Context, queues []job.Queue) error {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	time.Sleep(time.Second)
	return s.Shard.Notify(ctx, queues)
}

func TestRun_WaitsUntilOthersAreNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		fast := f.store
		var inFlight atomic.Int64
		f.store = wrapped{fast, func(s store.Shard) store.Shard { return slowNotify{s, &inFlight} }}
		p, stop := f.process()
		f.insert("a_1")
		stopped := make(chan struct{})
		time.AfterFunc(500*time.Millisecond, func() {
			defer close(stopped)
			assert.EqualValues(t, 1, inFlight.Load())
			stop()
		})
		require.Empty(t, f.lease(p, 1, time.Minute, "another"))
		<-stopped
		require.Zero(t, inFlight.Load(), "the store may be closed now")
	})
}

func TestLease_SurvivesFailedCalls(t *testing.T) {
	for _, method := range []string{"Wait", "Claim", "Settle"} {
		for _, fault := range []storetest.Fault{storetest.Before, storetest.LostReply} {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, 1, policy.Topic{})
				f.store = storetest.Faulty(f.store, storetest.Nth(method, 1, fault))
				p, _ := f.process()
				f.insert("a_1")
				leased := f.lease(p, 1, 10*time.Second)
				require.Len(t, leased, 1)
				require.Equal(t, []error{nil}, f.settle(p, f.report(leased[0], store.LeaseDone)))
				require.Equal(t, 1, f.get("a_1").Attempts)
				require.Equal(t, job.Delivered, f.get("a_1").State)
			})
		}
	}
}

// The store takes a claim, and does not answer for longer than the client waits.
func TestLease_ReleasesWhatAClaimWithoutAnAnswerHasClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		var until atomic.Pointer[time.Time]
		until.Store(new(time.Now().Add(20 * time.Second)))
		f.store = storetest.Faulty(f.store, func(method string) storetest.Fault {
			if method == "Claim" && time.Now().Before(*until.Load()) {
				return storetest.LostReply
			}
			return storetest.None
		})
		p, _ := f.process()
		f.insert("a_1")
		_, err := p.Lease(t.Context(), request(1, time.Second))
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.Equal(t, job.Running, f.get("a_1").State)
		time.Sleep(25 * time.Second)
		require.Equal(t, job.Ready, f.get("a_1").State)
		require.Empty(t, f.get("a_1").History)
	})
}

// failing makes a method of some shards fail while it returns true.
func (f *fixture) failing(method string, fails func(shard int) bool) {
	next := f.store
	f.store = numbered{next, func(n int, s store.Shard) store.Shard {
		return storetest.Faulty(single{next, s}, func(m string) storetest.Fault {
			if m == method && fails(n) {
				return storetest.Before
			}
			return storetest.None
		}).Shards()[0]
	}}
}

// numbered wraps the shards of a store.
type numbered struct {
	store.Store
	wrap func(n int, next store.Shard) store.Shard
}

func (s numbered) Shards() []store.Shard { return storetest.WrapShards(s.Store, s.wrap) }

// single is a store with one shard.
type single struct {
	store.Store
	shard store.Shard
}

func (s single) Shards() []store.Shard { return []store.Shard{s.shard} }

func TestSettle_AnswersWhatWasRecordedWhenNextFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		down := atomic.Bool{}
		f.failing("Claim", func(int) bool { return down.Load() })
		p, _ := f.process()
		f.insert("a_1", "b_1")
		leased := f.lease(p, 1, time.Second)
		down.Store(true)
		reports := []store.LeaseReport{f.report(leased[0], store.LeaseDone)}
		next := request(1, time.Second, "nobody")
		time.AfterFunc(500*time.Millisecond, func() { f.insert("nobody_1") })
		errs, more, err := p.Settle(t.Context(), reports, &next)
		require.NoError(t, err)
		require.Equal(t, []error{nil}, errs)
		require.Empty(t, more)
		_, _, err = p.Settle(t.Context(), nil, &next)
		require.ErrorIs(t, err, store.ErrUnavailable, "there is nothing else to answer")
	})
}

func TestSettle_RecordsReportsOfOtherShardsWhenOneIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 2, policy.Topic{})
		down := make([]atomic.Bool, 2)
		f.failing("Settle", func(n int) bool { return down[n].Load() })
		p, _ := f.process()
		var leased []store.LeasedJob
		for n := 0; len(leased) < 6; n++ {
			lane := fmt.Sprint("l", n)
			if shard := store.ShardOf(2, job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane}); shard ==
				len(leased)/3 {
				f.insert(lane + "_1")
				leased = append(leased, f.lease(p, 1, time.Second, lane)...)
			}
		}
		reports := make([]store.LeaseReport, len(leased))
		for i, j := range leased {
			reports[i] = f.report(j, store.LeaseDone)
		}
		down[0].Store(true)
		down[1].Store(true)
		_, _, err := p.Settle(t.Context(), reports, nil)
		require.ErrorIs(t, err, store.ErrUnavailable, "nothing was recorded")

		down[0].Store(false)
		next := request(1, time.Minute)
		began := time.Now()
		errs, _, err := p.Settle(t.Context(), reports, &next)
		require.NoError(t, err)
		require.Equal(t, []error{nil, nil, nil}, errs[:3])
		for _, err := range errs[3:] {
			require.ErrorIs(t, err, store.ErrUnavailable)
		}
		require.Less(t, time.Since(began), 10*time.Second, "the answer does not wait for the next jobs")

		down[1].Store(false)
		require.Equal(t, make([]error, 6), f.settle(p, reports...))
		for _, j := range leased {
			require.Equal(t, job.Delivered, f.get(j.ID).State)
			require.Len(t, f.get(j.ID).History, 1)
		}
	})
}

func TestSettle_AnswersARepeatAsTheFirstTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{
			OnDead:   &policy.Callback{URL: "https://callbacks.example"},
			KeepDead: policy.Retention{Max: new(int64(0))},
		})
		p, _ := f.process()
		f.insert("a_1", "a_2", "a_3", "a_4", "a_5")
		leased := f.lease(p, 4, time.Second)
		reports := []store.LeaseReport{
			f.report(leased[0], store.LeaseDone), f.report(leased[1], store.LeaseRetry),
			f.report(leased[2], store.LeaseDead), f.report(leased[3], store.LeaseExtend),
		}
		reports[2].Error = "no such customer"
		reports[3].For = time.Minute
		next := request(1, time.Second)
		errs, first, err := p.Settle(t.Context(), reports, &next)
		require.NoError(t, err)
		require.Equal(t, make([]error, 4), errs)
		require.Len(t, first, 1)
		p.Release(t.Context(), first) // the connection broke

		time.Sleep(50 * time.Second)
		other, _ := f.process()
		errs, second, err := other.Settle(t.Context(), reports, &next)
		require.NoError(t, err)
		require.Equal(t, make([]error, 4), errs)
		require.Equal(t, ids(first), ids(second))
		require.NotEqual(t, first[0].ClientLease.Token, second[0].ClientLease.Token)
		require.Len(t, f.get("a_2").History, 1)
		time.Sleep(50 * time.Second)
		require.Equal(t, job.Running, f.get("a_4").State, "the extension was made again")

		changed := reports[0]
		changed.Response = []byte("another")
		require.Equal(t, []error{store.ErrLeaseLost}, f.settle(p, changed))
		require.Equal(t, []error{store.ErrLeaseLost}, f.settle(p, reports[0]), "another request")
	})
}
