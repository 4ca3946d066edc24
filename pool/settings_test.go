package pool_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// fakeSettings is a set of policies and credentials that can change.
type fakeSettings struct {
	mu     sync.Mutex
	topics map[string]policy.Topic
	proofs map[string]job.Credentials
	fails  map[string]error // by topic, or by "topic/lane" for the lane's own secrets
}

func (b *fakeSettings) Topic(_, name string) policy.Topic {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.topics[name].WithDefaults(policy.Builtin())
}

func (b *fakeSettings) Sync(context.Context, int64) bool { return true }

func (*fakeSettings) Refresh(context.Context) {}

func (b *fakeSettings) Credentials(_, name string) (job.Credentials, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.proofs[name], b.fails[name]
}

func (b *fakeSettings) Signer(lane store.Lane) (job.Signer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.fails[lane.Queue.Topic+"/"+lane.Queue.Lane]; err != nil {
		return nil, err
	}
	return signer("lane " + string(lane.Settings.Secrets[0].Value)), nil
}

func (b *fakeSettings) OpenHeader(_ job.Queue, name, sealed string) (job.HeaderSecret, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return job.ParseHeaderSecret(sealed), b.fails[name]
}

func (b *fakeSettings) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// signer signs with its name.
type signer string

func (s signer) Sign(string, time.Time, []byte) string { return string(s) }

// signedBy is what a request is signed with; empty: nothing.
func signedBy(r job.Request) string {
	if r.Signer == nil {
		return ""
	}
	return r.Signer.Sign("", time.Time{}, nil)
}

// insert registers due jobs.
func insert(t *testing.T, s store.Store, specs ...job.Spec) {
	t.Helper()
	entries := make([]store.NewJob, len(specs))
	for i, spec := range specs {
		spec.Namespace, spec.Method = "default", "POST"
		entries[i].Spec = spec
	}
	_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), entries)
	require.NoError(t, err)
}

func queueOf(topic, lane string) job.Queue {
	return job.Queue{Namespace: "default", Topic: topic, Lane: lane}
}

// putLane writes a lane's settings, whatever they were.
func putLane(t *testing.T, s store.Store, topic, lane string, settings policy.Lane) {
	t.Helper()
	_, err := store.PutLane(t.Context(), s.Shards()[0], store.NewToken(),
		store.Lane{Queue: queueOf(topic, lane), Settings: settings})
	require.NoError(t, err)
}

func get(t *testing.T, s store.Store, id string) job.Job {
	t.Helper()
	j, err := s.Shards()[0].Get(t.Context(), job.Ref{Namespace: "default", ID: id})
	require.NoError(t, err)
	return j
}

func TestSettings_JobOverridesLaneOverridesTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(0)
		policies := &fakeSettings{topics: map[string]policy.Topic{
			"full": {
				URL:     "https://topic.example/",
				Headers: map[string][]string{"X-A": {"topic"}, "X-B": {"topic"}, "X-C": {"topic"}},
			},
		}}
		putLane(t, s, "full", "own", policy.Lane{
			URL:     "https://lane.example/",
			Headers: map[string][]string{"X-B": {"lane"}, "X-C": {"lane"}, "X-D": {"lane", "twice"}},
		})
		putLane(t, s, "bare", "own", policy.Lane{URL: "https://lane.example/"})
		header := map[string][]string{"X-C": {"job"}, "X-E": {"job"}}
		insert(
			t, s,
			job.Spec{ID: "all", Queue: queueOf("full", "own"), URL: "https://job.example/", Header: header},
			job.Spec{ID: "lane", Queue: queueOf("full", "own")},
			job.Spec{ID: "topic", Queue: queueOf("full", "none")},
			job.Spec{ID: "lane-only", Queue: queueOf("bare", "own")},
			job.Spec{ID: "job-only", Queue: queueOf("bare", "none"), URL: "https://job.example/"},
			job.Spec{ID: "nothing", Queue: queueOf("bare", "none")},
		)
		run(t, s, g, func(o *pool.Options) { o.Policies = policies })
		time.Sleep(time.Second)
		sent := map[string]job.Request{}
		for _, r := range g.requests() {
			sent[r.Ref.ID] = r
		}
		require.Len(t, sent, 5)
		require.Equal(t, "https://job.example/", sent["all"].URL)
		require.Equal(t, map[string][]string{
			"X-A": {"topic"}, "X-B": {"lane"}, "X-C": {"job"}, "X-D": {"lane", "twice"}, "X-E": {"job"},
		}, sent["all"].Header)
		require.Equal(t, map[string][]string{"X-C": {"job"}, "X-E": {"job"}}, header,
			"what is the job's own was not written to")
		require.Equal(t, "https://lane.example/", sent["lane"].URL)
		require.Equal(t, "https://topic.example/", sent["topic"].URL)
		require.Equal(t,
			map[string][]string{"X-A": {"topic"}, "X-B": {"topic"}, "X-C": {"topic"}}, sent["topic"].Header)
		require.Equal(t, "https://lane.example/", sent["lane-only"].URL)
		require.Equal(t, "https://job.example/", sent["job-only"].URL)
		require.Empty(t, sent["job-only"].Header)

		for id, url := range map[string]string{
			"topic": "https://topic.example/", "lane": "https://lane.example/", "job-only": "",
		} {
			a := get(t, s, id).History[0]
			require.Equal(t, url, a.URL, "%s: only a URL that is not the job's is stored", id)
			require.Regexp(t, "^[^/]+/[A-Z2-7]{10}$", a.Process)
			require.LessOrEqual(t, len(a.Process), pool.MaxProcess)
		}
		nowhere := get(t, s, "nothing")
		require.Equal(t, job.Scheduled, nowhere.State, "its topic may get a URL")
		require.Equal(t, 1, nowhere.FailedAttempts)
		require.Len(t, nowhere.History, 1)
		require.Equal(t, policy.ClassNoURL, nowhere.History[0].ErrorClass)
		require.Equal(t, job.KindAttempt, nowhere.History[0].Kind)
		require.Empty(t, nowhere.History[0].URL)
	})
}

func TestSettings_JobsWithoutAURLShowNothingOfTheReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(0)
		policies := &fakeSettings{topics: map[string]policy.Topic{"bare": {
			LaneConcurrency: 32,
			Breaker:         policy.Breaker{Failures: new(3)},
		}}}
		for i := range 20 {
			insert(t, s, job.Spec{ID: fmt.Sprint(i), Queue: queueOf("bare", "a")})
		}
		run(t, s, g, func(o *pool.Options) { o.Policies = policies })
		time.Sleep(time.Second)
		require.Empty(t, g.requests())
		state, err := s.Shards()[0].QueueState(t.Context(), queueOf("bare", "a"))
		require.NoError(t, err)
		require.False(t, state.BreakerOpen)
		require.Zero(t, state.Ready, "all have failed")
		insert(t, s, job.Spec{ID: "sent", Queue: queueOf("bare", "a"), URL: "https://job.example/"})
		time.Sleep(10 * time.Millisecond)
		require.Len(t, g.requests(), 1, "the lane has no cooldown")
	})
}

func TestSettings_OfALaneApplyFromTheNextClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(100*time.Millisecond)
		carry(t, s)
		putLane(t, s, "orders", "a", policy.Lane{Paused: true})
		fill(t, s, 500, "orders/a")
		fill(t, s, 10, "orders/b")
		run(t, s, g, nil)
		time.Sleep(10 * time.Second)
		require.Zero(t, g.count("orders/a"), "it is paused")
		require.Equal(t, 10, g.count("orders/b"))

		putLane(t, s, "orders", "a", policy.Lane{LaneConcurrency: 3, Headers: map[string][]string{"X-Round": {"one"}}})
		time.Sleep(2 * time.Second)
		require.Equal(t, 3, g.peak("orders/a"))
		first := g.count("orders/a")
		require.InDelta(t, 60, first, 6)

		putLane(t, s, "orders", "a", policy.Lane{LaneConcurrency: 10, Headers: map[string][]string{"X-Round": {"two"}}})
		time.Sleep(2*time.Second + 50*time.Millisecond) // while attempts are in flight, not when they end and begin
		require.Equal(t, 10, g.peak("orders/a"), "more are let in")
		second := g.count("orders/a")
		require.Greater(t, second, first+100)

		putLane(t, s, "orders", "a", policy.Lane{Paused: true})
		time.Sleep(time.Second)
		third := g.count("orders/a")
		require.LessOrEqual(t, third, second+10, "what was claimed is attempted, no more")

		putLane(t, s, "orders", "a", policy.Lane{}) // without settings
		time.Sleep(10 * time.Second)
		require.Equal(t, 500, g.count("orders/a"))
		require.Greater(t, g.peak("orders/a"), 10)
		rounds := []string{}
		for _, r := range g.requests() {
			if r.Queue.Lane != "a" {
				continue
			}
			round := strings.Join(r.Header["X-Round"], "")
			if len(rounds) == 0 || rounds[len(rounds)-1] != round {
				rounds = append(rounds, round)
			}
		}
		// Attempts of two claims of one moment may begin in any order.
		require.Equal(t, "one", rounds[0], "each claim brings the settings of its moment")
		require.Contains(t, rounds, "two")
		require.Empty(t, rounds[len(rounds)-1])
		require.LessOrEqual(t, len(rounds), 7)
	})
}

func TestSigning_LaneSecretsReplaceTheTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, certificate := model(), newGauge(0), &tls.Certificate{}
		policies := &fakeSettings{proofs: map[string]job.Credentials{"orders": {
			Signer:      signer("topic"),
			Certificate: certificate,
		}}}
		carry(t, s)
		run(t, s, g, func(o *pool.Options) { o.Policies = policies })
		last := func() (by string) {
			time.Sleep(time.Second)
			all := g.requests()
			require.Same(t, certificate, all[len(all)-1].Certificate, "it is the topic's in any case")
			return signedBy(all[len(all)-1])
		}
		secret := func(value policy.Sealed) policy.Lane {
			return policy.Lane{Secrets: []policy.Secret{{ID: "x", Value: value}}}
		}
		insertOn(t, s, 0, "1", "orders", "a")
		require.Equal(t, "topic", last())
		putLane(t, s, "orders", "a", secret("first"))
		insertOn(t, s, 0, "2", "orders", "a")
		require.Equal(t, "lane first", last())
		putLane(t, s, "orders", "a", secret("second"))
		insertOn(t, s, 0, "3", "orders", "a")
		require.Equal(t, "lane second", last())
		insertOn(t, s, 0, "4", "orders", "b")
		require.Equal(t, "topic", last(), "another lane is not concerned")
		putLane(t, s, "orders", "a", policy.Lane{})
		insertOn(t, s, 0, "5", "orders", "a")
		require.Equal(t, "topic", last())

		insertOn(t, s, 0, "6", "bills", "a")
		time.Sleep(time.Second)
		require.Empty(t, signedBy(g.requests()[5]), "a topic without secrets signs nothing")
	})
}

func TestSigning_CallbacksUseTheirTopicsSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, certificate := model(), newGauge(0), &tls.Certificate{}
		policies := &fakeSettings{proofs: map[string]job.Credentials{
			"orders": {Signer: signer("orders"), Certificate: certificate}, "_callbacks": {Signer: signer("callbacks")},
		}}
		label := map[string]string{job.LabelTopic: "orders"}
		insert(
			t, s,
			job.Spec{
				ID: "callback", Queue: queueOf("_callbacks", "a"), URL: "https://x.example/",
				Kind: job.KindCallback, Labels: label,
			},
			job.Spec{
				ID: "backlog", Queue: queueOf("_callbacks", "b"),
				URL: "https://x.example/", Kind: job.KindBacklog,
			},
			job.Spec{ID: "plain", Queue: queueOf("bills", "a"), URL: "https://x.example/", Labels: label},
		)
		run(t, s, g, func(o *pool.Options) { o.Policies = policies })
		time.Sleep(time.Second)
		by := map[string]string{}
		for _, r := range g.requests() {
			by[r.Ref.ID] = signedBy(r)
			if r.Ref.ID == "callback" {
				require.Same(t, certificate, r.Certificate)
			}
		}
		require.Equal(t, map[string]string{"callback": "orders", "backlog": "callbacks", "plain": ""}, by)
	})
}

func TestSigning_SendsNothingUnsigned(t *testing.T) {
	for _, whose := range []string{"topic", "lane"} {
		t.Run(whose, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testUnsignedWaits(t, whose == "lane") })
		})
	}
}

func testUnsignedWaits(t *testing.T, ofLane bool) {
	s, g, observed := model(), newGauge(0), &recordingObserver{}
	missing := "orders"
	if ofLane {
		missing = "orders/a"
		putLane(t, s, "orders", "a", policy.Lane{Secrets: []policy.Secret{{ID: "x", Value: "own"}}})
	}
	policies := &fakeSettings{fails: map[string]error{missing: errors.New("no such key")}}
	carry(t, s)
	fill(t, s, 20, "orders/a")
	fill(t, s, 1, "bills/a")
	run(t, s, g, func(o *pool.Options) { o.Policies, o.Observer = policies, observed })
	time.Sleep(5 * time.Second)
	lanes, err := s.Shards()[0].LaneStats(t.Context(), "default", "orders", "", 1)
	require.NoError(t, err)
	require.InDelta(t, 5*time.Second, time.Until(lanes[0].CooldownUntil), float64(time.Second),
		"the lane is kept back for 10 s")
	require.False(t, lanes[0].BreakerOpen, "the receiver has done nothing wrong")

	time.Sleep(55 * time.Second)
	require.Zero(t, g.count("orders"))
	require.Equal(t, 1, g.count("bills"), "others go on")
	require.LessOrEqual(t, observed.count(), 30, "it is tried about every ten seconds, with few jobs")
	for i := range 20 {
		j := get(t, s, fmt.Sprintf("orders-a-%d", i))
		require.Zero(t, j.Attempts)
		require.Zero(t, j.FailedAttempts)
		require.Empty(t, j.History, "nothing of it is in the record")
		require.False(t, j.State.Ended())
	}

	policies.set(func() { delete(policies.fails, missing) })
	if ofLane { // its secrets are opened once for each change of the settings
		putLane(t, s, "orders", "a", policy.Lane{Secrets: []policy.Secret{{ID: "x", Value: "own"}}})
	}
	time.Sleep(15 * time.Second)
	require.Equal(t, 20, g.count("orders"))
	require.Equal(t, 1, get(t, s, "orders-a-7").Attempts)
}

func TestSigning_LaneWithSecretsDoesNotWaitForItsTopics(t *testing.T) {
	certificate := &policy.ClientCert{Chain: "chain", Key: "key"}
	for name, c := range map[string]struct {
		cert   *policy.ClientCert
		opened *tls.Certificate
		goes   bool
	}{
		"no certificate":         {nil, nil, true},
		"one that can be had":    {certificate, &tls.Certificate{}, true},
		"one that cannot be had": {certificate, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, g := model(), newGauge(0)
				policies := &fakeSettings{
					topics: map[string]policy.Topic{"orders": {ClientCert: c.cert}},
					proofs: map[string]job.Credentials{"orders": {Certificate: c.opened}},
					fails:  map[string]error{"orders": errors.New("no such key")},
				}
				putLane(t, s, "orders", "a", policy.Lane{Secrets: []policy.Secret{{ID: "x", Value: "own"}}})
				carry(t, s)
				fill(t, s, 1, "orders/a", "orders/b")
				run(t, s, g, func(o *pool.Options) { o.Policies = policies })
				time.Sleep(time.Minute)
				require.Zero(t, g.count("orders/b"), "it needs its topic's")
				if !c.goes {
					require.Zero(t, g.count("orders/a"))
					return
				}
				require.Equal(t, 1, g.count("orders/a"))
				require.Equal(t, "lane own", signedBy(g.requests()[0]))
				require.Same(t, c.opened, g.requests()[0].Certificate)
			})
		})
	}
}

func TestAttempt_JudgesTheWholeBodyAndRecordsItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		policies := &fakeSettings{topics: map[string]policy.Topic{
			"equals":   {Success: policy.Success{BodyEquals: "success"}, Retries: new(0)},
			"contains": {Success: policy.Success{BodyContains: "SUCCESS"}, Retries: new(0)},
			"status":   {Success: policy.Success{Status: []string{"404"}}, Retries: new(0)},
		}}
		long := strings.Repeat("x", 50_000) + "SUCCESS"
		answers := map[string]policy.Result{
			"good": {Status: 200, Body: []byte(" success\n")},
			"bad":  {Status: 200, Body: []byte("unsuccessful")},
			"long": {Status: 200, Body: []byte(long)},
			"miss": {Status: 200, Body: []byte(strings.ToLower(long))},
			"404":  {Status: 404, Body: []byte("x")},
			"200":  {Status: 200},
		}
		var mu sync.Mutex
		asked := map[string]int{}
		d := delivererFunc(func(_ context.Context, r job.Request) policy.Result {
			mu.Lock()
			defer mu.Unlock()
			asked[r.Ref.ID] = r.KeepBody
			return answers[r.Ref.ID]
		})
		insertOn(t, s, 0, "good", "equals", "a")
		insertOn(t, s, 0, "bad", "equals", "a")
		insertOn(t, s, 0, "long", "contains", "a")
		insertOn(t, s, 0, "miss", "contains", "a")
		insertOn(t, s, 0, "404", "status", "a")
		insertOn(t, s, 0, "200", "status", "a")
		run(t, s, d, func(o *pool.Options) { o.Policies = policies })
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, map[string]int{
			"good": math.MaxInt, "bad": math.MaxInt, "long": math.MaxInt, "miss": math.MaxInt, "404": 0, "200": 0,
		}, asked)
		for id, state := range map[string]job.State{
			"good": job.Delivered, "bad": job.Dead, "long": job.Delivered, "miss": job.Dead,
			"404": job.Delivered, "200": job.Dead,
		} {
			j := get(t, s, id)
			require.Equal(t, state, j.State, id)
			require.Len(t, j.History, 1)
			a := j.History[0]
			require.Equal(t, answers[id].Status, a.Status)
			require.Equal(t, policy.ClassNone, a.ErrorClass)
			require.LessOrEqual(t, len(a.Body), job.MaxAttemptBody)
			switch id {
			case "bad":
				require.Contains(t, a.Error, "success.body_equals")
				require.Equal(t, "unsuccessful", string(a.Body))
			case "miss":
				require.Contains(t, a.Error, "success.body_contains")
				require.Len(t, a.Body, job.MaxAttemptBody)
			default:
				require.Empty(t, a.Error)
			}
		}
	})
}

// A lane begins with two attempts at once. An answer lets twice as many in, one that asks for less half as many.
func TestSlots_GrowWithAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		result policy.Result
		peak   int
	}{
		"200": {policy.Result{Status: 200}, 32}, "404": {policy.Result{Status: 404}, 32},
		"500": {policy.Result{Status: 500}, 32}, "502": {policy.Result{Status: 502}, 32},
		"429": {policy.Result{Status: 429}, 2}, "503": {policy.Result{Status: 503}, 2},
		"a timeout": {policy.Result{Class: policy.ClassTimeoutHeaders}, 2},
		"refused":   {policy.Result{Class: policy.ClassRefused}, 2}, // says nothing about how much the receiver bears
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, g := model(), newGauge(100*time.Millisecond)
				g.result = c.result
				fill(t, s, 300, "orders/a")
				run(t, s, g, func(o *pool.Options) {
					o.Policies = fixedPolicy(policy.Topic{
						Ladder: policy.Ladder{time.Hour}, Breaker: policy.Breaker{Failures: new(0)},
					}.WithDefaults(policy.Builtin()))
				})
				time.Sleep(10 * time.Second)
				require.Equal(t, c.peak, g.peak("orders/a"))
				if c.result.Throttled() || c.result.Class.Timeout() {
					require.InDelta(t, 100, g.count("orders/a"), 5, "one after the other")
				}
			})
		})
	}
}

func TestSlots_GrowAgainAfterThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(100*time.Millisecond)
		fill(t, s, 1000, "orders/a")
		var answer atomic.Int32
		d := delivererFunc(func(ctx context.Context, r job.Request) policy.Result {
			g.Deliver(ctx, r)
			return policy.Result{Status: int(answer.Load())}
		})
		run(t, s, d, withPolicy(policy.Topic{Ladder: policy.Ladder{time.Hour}}))
		level := func(status int32) int {
			answer.Store(status)
			time.Sleep(1030 * time.Millisecond) // not a multiple of what an attempt takes
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.now["orders/a"]
		}
		require.Equal(t, 32, level(200))
		require.Equal(t, 1, level(429))
		require.Equal(t, 32, level(200))
	})
}
