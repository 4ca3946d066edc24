package dispatcher_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// changePolicy changes the policy of the topic orders.
func changePolicy(t *testing.T, r *fixture, change func(p *policy.Topic)) {
	t.Helper()
	_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
		func(p *policy.Topic) error {
			change(p)
			return nil
		})
	require.NoError(t, err)
}

// laneOfOrders is a lane of the topic orders.
func laneOfOrders(name string) job.Queue {
	return job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: name}
}

// A job without a URL follows that of its topic or lane; what it keeps secret does not.
func TestEdit_BindsSecretHeadersToTheOrigin(t *testing.T) {
	type move struct {
		before, after func(t *testing.T, r *fixture)
		lane          string
	}
	topicTo := func(url string) func(*testing.T, *fixture) {
		return func(t *testing.T, r *fixture) { changePolicy(t, r, func(p *policy.Topic) { p.URL = url }) }
	}
	laneTo := func(lane, url string) func(*testing.T, *fixture) {
		return func(t *testing.T, r *fixture) {
			changeLane(t, r, laneOfOrders(lane), func(l *policy.Lane) { l.URL = url })
		}
	}
	both := func(all ...func(*testing.T, *fixture)) func(*testing.T, *fixture) {
		return func(t *testing.T, r *fixture) {
			for _, do := range all {
				do(t, r)
			}
		}
	}
	const home, away = "https://home.example/x", "https://away.example/x"
	for name, m := range map[string]move{
		"its topic moves":                {before: topicTo(home), after: topicTo(away), lane: "a"},
		"its lane moves":                 {before: laneTo("a", home), after: laneTo("a", away), lane: "a"},
		"its lane gets a URL":            {before: topicTo(home), after: laneTo("a", away), lane: "a"},
		"the lane of the URL gets a URL": {before: topicTo(home), after: laneTo("home.example:443", away)},
		"its lane loses its URL": {
			before: both(topicTo(away), laneTo("a", home)), after: laneTo("a", ""), lane: "a",
		},
		"its topic loses its scheme": {before: topicTo(home), after: topicTo("http://home.example/x"), lane: "a"},
		"its lane moves, not its topic": {
			before: both(topicTo("https://third.example/"), laneTo("a", home)), after: laneTo("a", away), lane: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := &receiver{answer: status(200)}
				r := start(t, dispatcher.Options{Deliverer: rec})
				m.before(t, r)
				add := func(n job.New) job.Job {
					n.Topic, n.Lane, n.Delay = "orders", m.lane, time.Minute
					got := r.Register(t.Context(), []job.New{n})[0]
					require.NoError(t, got.Err)
					return got.Job
				}
				registered := add(job.New{Spec: job.Spec{Header: secretHeaders()}})
				edited := add(job.New{})
				_, err := r.Edit(t.Context(), edited.Ref(), headersOf(secretHeaders()))
				require.NoError(t, err)
				plain := add(job.New{Spec: job.Spec{Header: map[string][]string{"X-A": {"1"}}}})
				early := add(job.New{Spec: job.Spec{Header: secretHeaders()}})
				_, err = r.RunNow(t.Context(), early.Ref(), 0, "jan")
				require.NoError(t, err)
				time.Sleep(time.Second)
				require.Len(t, rec.calls(), 1)
				require.Equal(t, home, rec.calls()[0].URL)
				require.Equal(t, secretHeaders(), rec.calls()[0].Header)

				m.after(t, r)
				anew := add(job.New{})
				_, err = r.Edit(t.Context(), anew.Ref(), headersOf(secretHeaders()))
				require.NoError(t, err)
				time.Sleep(2 * time.Minute)
				for _, j := range []job.Job{registered, edited} {
					got := r.get(t, j.Ref())
					require.Equal(t, job.Dead, got.State)
					require.Equal(t, policy.ReasonInvalid, got.Reason)
					require.Contains(t, got.History[len(got.History)-1].Error,
						"the secret header Authorization was set for another origin")
				}
				require.Equal(t, job.Delivered, r.get(t, plain.Ref()).State)
				require.Equal(t, job.Delivered, r.get(t, anew.Ref()).State, "it was set for the new one")
				for _, c := range rec.calls()[1:] {
					require.NotEqual(t, home, c.URL)
					if c.Ref.ID != anew.ID {
						require.NotContains(t, fmt.Sprint(c.Header), "hunter2")
					}
				}
			})
		})
	}
}

func TestSettings_BindSecretHeadersToTheirURLs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		const home, away, third = "https://home.example/", "https://away.example/", "https://third.example/"
		changePolicy(t, r, func(p *policy.Topic) {
			p.URL, p.Headers = home, map[string][]string{"X-Topic-Key": {"topic"}, "X-Topic": {"1"}}
		})
		changeLane(t, r, laneOfOrders("own"), func(l *policy.Lane) {
			l.URL, l.Headers = third, map[string][]string{"X-Lane-Key": {"lane"}}
		})
		changeLane(t, r, laneOfOrders("former"), func(l *policy.Lane) {
			l.URL, l.Headers = third, map[string][]string{"X-Lane-Key": {"lane"}}
		})
		changeLane(t, r, laneOfOrders("topics"),
			func(l *policy.Lane) { l.Headers = map[string][]string{"X-Lane-Key": {"lane"}} })
		sends := func(lane, url string) map[string][]string {
			t.Helper()
			got := r.Register(t.Context(),
				[]job.New{{Spec: job.Spec{Queue: job.Queue{Topic: "orders", Lane: lane}, URL: url}}})[0]
			require.NoError(t, got.Err)
			time.Sleep(time.Second)
			all := rec.calls()
			require.Equal(t, got.Job.ID, all[len(all)-1].Ref.ID)
			return all[len(all)-1].Header
		}
		plain := map[string][]string{"X-Topic": {"1"}}
		whole := map[string][]string{"X-Topic": {"1"}, "X-Topic-Key": {"topic"}}
		laned := map[string][]string{"X-Topic": {"1"}, "X-Lane-Key": {"lane"}}
		require.Equal(t, whole, sends("none", ""))
		require.Equal(t, whole, sends("none", home+"other"))
		require.Equal(t, plain, sends("none", away), "who registers a job does not learn them")
		require.Equal(t, laned, sends("own", ""))
		require.Equal(t, laned, sends("own", third+"x"))
		require.Equal(t, whole, sends("own", home))
		require.Equal(t, plain, sends("own", away))
		require.Equal(t, map[string][]string{"X-Topic": {"1"}, "X-Topic-Key": {"topic"}, "X-Lane-Key": {"lane"}},
			sends("topics", ""))

		// By whatever way they were moved.
		changePolicy(t, r, func(p *policy.Topic) { p.URL = away })
		changeLane(t, r, laneOfOrders("own"), func(l *policy.Lane) { l.URL = away })
		changeLane(t, r, laneOfOrders("former"), func(l *policy.Lane) { l.URL = "" })
		for _, lane := range []string{"none", "own", "topics", "former"} {
			require.Equal(t, plain, sends(lane, ""), lane)
		}
		require.Equal(t, laned, sends("former", third), "they stay bound to the URL that was removed")
		changePolicy(t, r, func(p *policy.Topic) { p.URL = "" })
		require.Equal(t, plain, sends("topics", away))
		require.Equal(t, map[string][]string{"X-Topic": {"1"}, "X-Topic-Key": {"topic"}, "X-Lane-Key": {"lane"}},
			sends("topics", home), "they stay bound")

		// Those of a topic that leads nowhere are for all its jobs.
		changePolicy(t, r, func(p *policy.Topic) { p.Headers = map[string][]string{"X-Topic-Key": {"all"}} })
		require.Equal(t, map[string][]string{"X-Topic-Key": {"all"}}, sends("none", away))
		require.Equal(t, map[string][]string{"X-Topic-Key": {"all"}}, sends("none", third))
	})
}

// However late a callback with headers is configured, and wherever it is sent later.
func TestCallbacks_ContainNoSecretHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: func(_ context.Context, r job.Request) policy.Result {
			if r.Queue.Topic == job.CallbackTopic {
				return policy.Result{Status: 500}
			}
			return policy.Result{Status: 500, Header: map[string][]string{"Set-Cookie": {"hunter2"}, "X-Answer": {"1"}}}
		}}
		r := start(t, dispatcher.Options{Deliverer: rec})
		n := inAnHour("https://home.example/", secretHeaders())
		n.Delay, n.Retries = 2*time.Second, new(0)
		r.register(t, n)
		changePolicy(t, r, func(p *policy.Topic) {
			p.OnDead = &policy.Callback{
				URL: "https://callback.example/", Headers: map[string][]string{"X-Callback-Key": {"mine"}},
				Retries: new(0), Include: []string{policy.IncludeHeaders, policy.IncludeBody},
			}
		})
		time.Sleep(time.Minute)
		sent := rec.calls()[1]
		require.Equal(t, "https://callback.example/", sent.URL)
		require.Equal(t, map[string][]string{"X-Callback-Key": {"mine"}}, sent.Header)
		require.NotContains(t, string(sent.Body), "hunter2")
		require.Contains(t, string(sent.Body),
			`"headers":{"Authorization":"[redacted]","Cookie":"[redacted]","X-A":"1"}`)
		require.Contains(t, string(sent.Body), `"X-Answer":"1"`)

		changePolicy(t, r, func(p *policy.Topic) { p.OnDead = nil })
		w := r.work(t, store.WorkOrder{
			Action: store.WorkRevive, Filter: store.Filter{Topic: job.CallbackTopic},
			URL: "https://away.example/",
		})
		require.Zero(t, w.Done)
		require.Len(t, w.Failures, 1)
		require.Contains(t, w.Failures[0].Reason, "is for a different origin than url")
		_, err := r.Edit(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: w.Failures[0].ID},
			editOf("https://away.example/"))
		require.Error(t, err)
	})
}

// secretsEverywhere registers and puts headers that carry secrets in every place that takes some.
func secretsEverywhere(t *testing.T, r *fixture) {
	t.Helper()
	header := func(text string) map[string][]string {
		return map[string][]string{"Authorization": {"Bearer hunter2-" + text}, "X-Plain": {text}}
	}
	sent := func(text string) *policy.Callback {
		return &policy.Callback{URL: "https://callback.example/", Headers: header(text), Retries: new(0)}
	}
	changePolicy(t, r, func(p *policy.Topic) {
		p.URL, p.Headers, p.OnDelivered, p.OnDead = "https://home.example/", header("topic"), sent("topic-delivered"),
			sent("topic-dead")
		p.OnBacklog = &policy.Backlog{Callback: *sent("backlog"), MoreThan: 1}
		p.Retries = new(0)
	})
	changeLane(t, r, laneOfOrders("a"), func(l *policy.Lane) { l.Headers = header("lane") })
	jobs := make([]job.New, 6)
	for i := range jobs {
		jobs[i].Spec = job.Spec{
			ID:    fmt.Sprint("job-", i),
			Queue: job.Queue{Topic: "orders", Lane: "a"}, Header: header("job"),
		}
		if i%2 == 1 {
			jobs[i].OnDelivered, jobs[i].OnDead = sent("own-delivered"), sent("own-dead")
		}
		if i >= 4 {
			jobs[i].Delay = time.Hour
		}
	}
	for _, got := range r.Register(t.Context(), jobs) {
		require.NoError(t, got.Err)
		require.Equal(t, store.Created, got.Outcome)
	}
	_, err := r.Edit(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: "job-5"}, headersOf(header("edited")))
	require.NoError(t, err)
	for _, got := range r.Register(t.Context(), jobs[:4]) {
		require.NoError(t, got.Err)
		require.Equal(t, store.Existing, got.Outcome, "a repeated request is compared as it was sent")
	}
}

// headerRecorder records the headers that the store receives.
type headerRecorder struct {
	store.Store
	mu   sync.Mutex
	text strings.Builder
}

func (w *headerRecorder) Shards() []store.Shard {
	return storetest.WrapShards(w.Store,
		func(_ int, next store.Shard) store.Shard { return headerRecorderShard{next, w} })
}

type headerRecorderShard struct {
	store.Shard
	*headerRecorder
}

func (w *headerRecorder) note(what ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	raw, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	w.text.Write(raw)
}

func (s headerRecorderShard) Insert(
	ctx context.Context, token store.Token, entries []store.NewJob,
) ([]store.InsertResult, error) {
	s.note(entries)
	return s.Shard.Insert(ctx, token, entries)
}

func (s headerRecorderShard) Replace(
	ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement,
) (job.Job, error) {
	s.note(replacement)
	return s.Shard.Replace(ctx, token, ref, replacement)
}

func (s headerRecorderShard) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	s.note(items)
	return s.Shard.Settle(ctx, token, items, next)
}

func (s headerRecorderShard) Alarm(ctx context.Context, token store.Token, alarm store.Alarm) (bool, error) {
	s.note(alarm)
	return s.Shard.Alarm(ctx, token, alarm)
}

func (w *headerRecorder) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	w.note(string(doc.Value))
	return w.Store.PutDocument(ctx, token, doc, limits)
}

func (s headerRecorderShard) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	s.note(string(doc.Value))
	return s.Shard.PutDocument(ctx, token, doc, limits)
}

func TestSeal_LeavesNoSecretHeaderForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &headerRecorder{Store: model()}
		rec := &receiver{answer: func(_ context.Context, r job.Request) policy.Result {
			return policy.Result{Status: map[bool]int{true: 200, false: 500}[r.Ref.ID < "job-2" ||
				r.Queue.Topic == job.CallbackTopic]}
		}}
		r := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		secretsEverywhere(t, r)
		time.Sleep(2 * time.Minute)
		require.NoError(t, r.stop())
		require.Contains(t, s.text.String(), "X-Plain")
		require.Contains(t, s.text.String(), "x1:"+keyID(t, 1)+":")
		require.NotContains(t, s.text.String(), "hunter2")
		require.NotContains(t, s.text.String(), base64.StdEncoding.EncodeToString([]byte("hunter2"))[:8])

		seen := map[string]bool{}
		for _, c := range rec.calls() {
			seen[c.Queue.Topic+" "+c.Header["Authorization"][0]] = true
		}
		require.Equal(t, map[string]bool{
			"orders Bearer hunter2-job":                 true,
			"_callbacks Bearer hunter2-topic-delivered": true, "_callbacks Bearer hunter2-topic-dead": true,
			"_callbacks Bearer hunter2-own-delivered": true, "_callbacks Bearer hunter2-own-dead": true,
			"_callbacks Bearer hunter2-backlog": true,
		}, seen, "the receivers get them as they were sent")
	})
}

func TestSeal_JobsWaitForTheKeyOfTheirHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		with := func(numbers ...byte) (*fixture, *receiver) {
			rec := &receiver{answer: status(200)}
			o := dispatcher.Options{Store: s, Deliverer: rec}
			if len(numbers) > 0 {
				o.Seal = box(t, numbers...)
			}
			return start(t, o), rec
		}
		first, _ := with(1)
		changePolicy(t, first, func(p *policy.Topic) { p.Headers = map[string][]string{"X-Topic-Key": {"topic"}} })
		late := first.register(t,
			job.New{Spec: job.Spec{Queue: job.Queue{Topic: "orders"}, Header: secretHeaders()}, Delay: time.Minute})
		require.NoError(t, first.stop())

		second, rec := with()
		time.Sleep(2 * time.Minute)
		require.Empty(t, rec.calls(), "no job is attempted without its headers")
		require.Equal(t, 0, second.get(t, late.Ref()).Attempts)
		_, err := second.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
			func(p *policy.Topic) error {
				p.Headers = map[string][]string{"X-Topic-Key": {"another"}}
				return nil
			})
		require.ErrorIs(t, err, store.ErrUnavailable, "a sealed secret is not replaced by plain text")
		require.NoError(t, second.stop())

		// The key is changed: settings are sealed under the new one, jobs are opened with the old.
		third, rec := with(2, 1)
		time.Sleep(time.Minute)
		require.Len(t, rec.calls(), 1)
		require.Equal(t, "hunter2", rec.calls()[0].Header["Cookie"][0])
		require.Equal(t, "topic", rec.calls()[0].Header["X-Topic-Key"][0])
		topic, err := third.Topic(t.Context(), job.DefaultNamespace, "orders")
		require.NoError(t, err)
		require.Contains(t, topic.Policy.Headers["X-Topic-Key"][0], "x1:"+keyID(t, 2))
		require.NoError(t, third.stop())
	})
}

func TestReseal_SealsHeadersOfSettings(t *testing.T) {
	for name, before := range map[string][]byte{"what was in plain text": nil, "what was under another key": {1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := model()
				o := dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}}
				if before != nil {
					o.Seal = box(t, before...)
				}
				first := start(t, o)
				secretsEverywhere(t, first)
				require.NoError(t, first.stop())
				require.NotContains(t, storedSettings(t, s), "x1:"+keyID(t, 2))

				o.Seal = box(t, append([]byte{2}, before...)...)
				rec := &receiver{answer: status(200)}
				o.Deliverer = rec
				second := start(t, o)
				time.Sleep(time.Minute)
				kept := storedSettings(t, s)
				require.NotContains(t, kept, "hunter2")
				require.NotContains(t, kept, "x1:"+keyID(t, 1))
				require.Equal(t, 10, strings.Count(kept, "x1:"+keyID(t, 2)),
					"two of each: topic, lane, three callbacks")
				require.NoError(t, second.stop())

				o.Seal = box(t, 2)
				o.Deliverer = rec
				third := start(t, o)
				got := third.register(t, job.New{Spec: job.Spec{
					Queue: job.Queue{Topic: "orders", Lane: "a"},
					URL:   "https://home.example/x",
				}})
				time.Sleep(time.Minute)
				require.Equal(t, job.Delivered, third.get(t, got.Ref()).State,
					"the old key is needed for settings no more")
				require.NoError(t, third.stop())
			})
		})
	}
}
