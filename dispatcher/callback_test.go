package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert/yaml"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// callbacks returns the received callbacks.
func (r *receiver) callbacks() []call {
	var callbacks []call
	for _, c := range r.calls() {
		if c.Queue.Topic == job.CallbackTopic {
			callbacks = append(callbacks, c)
		}
	}
	return callbacks
}

// statusByTopic responds to callbacks with 200, and to other jobs with the status.
func statusByTopic(code int) func(context.Context, job.Request) policy.Result {
	return func(_ context.Context, r job.Request) policy.Result {
		if r.Queue.Topic == job.CallbackTopic {
			return policy.Result{Status: 200}
		}
		return policy.Result{Status: code}
	}
}

// generationOf returns a callback's id without its last part.
func generationOf(id string) string {
	if !strings.HasPrefix(id, "rb:") {
		return id
	}
	return id[:strings.LastIndex(id, ":")]
}

// callbackTo returns a callback to a URL.
func callbackTo(url string) *policy.Callback { return &policy.Callback{URL: url} }

// decoded is a callback's body.
func decoded(t *testing.T, c call) map[string]any {
	t.Helper()
	var body map[string]any
	require.NoError(t, json.Unmarshal(c.Body, &body))
	return body
}

// process matches the name of the process in a callback, which differs between runs.
var process = regexp.MustCompile(`"process": "[^"]+/[A-Z2-7]{10}"`)

// golden holds a callback's body against a file, byte by byte but for the white space and the name of the process.
func golden(t *testing.T, name string, c call) {
	t.Helper()
	want, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	var got bytes.Buffer
	require.NoError(t, json.Indent(&got, c.Body, "", "  "))
	require.Equal(t, string(want), process.ReplaceAllString(got.String(), `"process": "web-1/7K2QJ7HNTA"`)+"\n")
}

// requireFormOfAPI requires that the job and the attempt in a callback have the members of the API: of the job some, of
// the attempt all.
func requireFormOfAPI(t *testing.T, body map[string]any) {
	t.Helper()
	text, err := os.ReadFile("../api/openapi.yaml")
	require.NoError(t, err)
	var contract struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &contract))
	schemas := contract.Components.Schemas
	subject, _ := body["job"].(map[string]any)
	delete(subject, "body_omitted")
	for name := range subject {
		if _, ok := schemas["JobBody"].Properties[name]; !ok {
			require.Contains(t, schemas["JobItem"].Properties, name)
		}
	}
	attempt, _ := body["attempt"].(map[string]any)
	members := slices.Collect(maps.Keys(schemas["Attempt"].Properties))
	members = slices.AppendSeq(members, maps.Keys(schemas["AttemptSummary"].Properties)) // of its allOf
	require.ElementsMatch(t, members, slices.Collect(maps.Keys(attempt)))
}

func TestGet_NamesOnlyTheCallbackThatIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		r := start(t, dispatcher.Options{Store: shared{s}, Deliverer: &receiver{answer: statusByPath}})
		front := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		_, err := r.PutTopic(t.Context(), store.Topic{
			Namespace: job.DefaultNamespace, Name: "notifying",
			Policy: policy.Topic{OnDead: callbackTo("https://callback.example/")},
		})
		require.NoError(t, err)
		own := policy.Terms{Retries: new(0), OnDelivered: callbackTo("https://callback.example/")}
		for id, c := range map[string]struct {
			topic string
			code  int
			terms policy.Terms
			sent  bool
		}{
			"own":             {"plain", 200, own, true},
			"own-otherwise":   {"plain", 500, own, false},
			"none":            {"plain", 200, policy.Terms{}, false},
			"none-dead":       {"plain", 500, policy.Terms{Retries: new(0)}, false},
			"topic":           {"notifying", 500, policy.Terms{Retries: new(0)}, true},
			"topic-otherwise": {"notifying", 200, policy.Terms{}, false},
		} {
			n := job.New{Spec: job.Spec{
				ID: id, Queue: job.Queue{Topic: c.topic},
				URL: fmt.Sprintf("https://x.example/%d", c.code), Terms: c.terms,
			}}
			made := r.register(t, n)
			require.Empty(t, made.CallbackID)
			time.Sleep(3 * time.Second)
			for _, d := range []*fixture{r, front} {
				ended := d.get(t, made.Ref())
				page, err := d.List(t.Context(), store.Filter{
					Namespace: job.DefaultNamespace, Topic: c.topic,
					States: []job.State{ended.State}, Limit: 100,
				})
				require.NoError(t, err)
				page.Jobs = append(page.Jobs, ended, d.Register(t.Context(), []job.New{n})[0].Job)
				for _, j := range page.Jobs {
					switch {
					case j.ID != id:
					case c.sent:
						require.Equal(t, job.CallbackID(ended), j.CallbackID, id)
						require.Equal(t, job.KindCallback, d.get(t, job.Ref{Namespace: "default", ID: j.CallbackID}).
							Kind)
					default:
						require.Empty(t, j.CallbackID, id)
					}
				}
			}
		}
	})
}

// The body is what receivers are written for: additions are free, nothing else is.
func TestCallback_Body(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: func(_ context.Context, r job.Request) policy.Result {
			if r.Queue.Topic == job.CallbackTopic {
				return policy.Result{Status: 200}
			}
			time.Sleep(1001500 * time.Microsecond)
			return policy.Result{
				Status: 500, Body: []byte("out of <stock>"),
				Header: map[string][]string{"Retry-After": {"1"}},
			}
		}}
		r := start(t, dispatcher.Options{Deliverer: rec, Random: func() float64 { return 0 }})
		r.register(t, job.New{Spec: job.Spec{
			ID: "close-4711", Queue: job.Queue{Topic: "orders"},
			URL: "https://shop.example/hooks/close?token=hidden", Method: "PUT",
			Header: map[string][]string{"X-Hidden": {"hidden"}}, Labels: map[string]string{"customer": "42"},
			BodyKind: job.BodyText, Body: []byte("hidden"),
			Terms: policy.Terms{Ladder: policy.Ladder{59998500 * time.Microsecond}, OnDead: &policy.Callback{
				URL: "https://callback.example/ends?x=1", Method: "PUT", Headers: map[string][]string{"X-Mine": {"1"}},
			}},
		}})
		time.Sleep(2 * time.Minute)
		sent := rec.callbacks()
		require.Len(t, sent, 1)
		c := sent[0]
		golden(t, "job_dead.json", c)
		requireFormOfAPI(t, decoded(t, c))
		require.Equal(t, "rb:close-4711:0", generationOf(c.Ref.ID))
		require.Equal(t, "https://callback.example/ends?x=1", c.URL)
		require.Equal(t, "PUT", c.Method)
		require.Equal(t, "application/json", c.ContentType)
		require.Equal(t, []string{"1"}, c.Header["X-Mine"])
		require.Equal(t, "callback.example:443", c.Queue.Lane)
		require.Equal(t, 10*time.Second, c.Timeout)
		require.Equal(t, 9, c.RetriesLeft)

		made := r.get(t, c.Ref)
		require.Equal(t, job.Delivered, made.State)
		require.Equal(t, job.KindCallback, made.Kind)
		require.Equal(t, "close-4711", made.Origin)
		require.Equal(t, map[string]string{job.LabelTopic: "orders"}, made.Labels)
		require.Len(t, made.History, 1, "it has a history")
	})
}

func TestCallback_IncludesOptionalParts(t *testing.T) {
	for name, c := range map[string]struct {
		kind  job.BodyKind
		body  string
		field string
		want  any
	}{
		"JSON":    {job.BodyJSON, `{"order": [1, 2.50]}`, "body", map[string]any{"order": []any{1.0, 2.5}}},
		"text":    {job.BodyText, "hello", "body_text", "hello"},
		"bytes":   {job.BodyBase64, "\xff\x00", "body_base64", "/wA="},
		"nothing": {job.BodyNone, "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := &receiver{answer: status(200)}
				r := start(t, dispatcher.Options{Deliverer: rec})
				for _, include := range [][]string{
					nil, {policy.IncludeBody, policy.IncludeHeaders, policy.IncludeQuery},
				} {
					r.register(t, job.New{Spec: job.Spec{
						URL: "https://shop.example/x?a=1", BodyKind: c.kind, Body: []byte(c.body),
						Header: map[string][]string{"X-A": {"1"}}, Terms: policy.Terms{
							OnDelivered: &policy.Callback{URL: "https://callback.example/", Include: include},
						},
					}})
					time.Sleep(2 * time.Second)
				}
				sent := rec.callbacks()
				require.Len(t, sent, 2)
				plain, _ := decoded(t, sent[0])["job"].(map[string]any)
				full, _ := decoded(t, sent[1])["job"].(map[string]any)
				require.Equal(t, "https://shop.example/x", plain["url"])
				require.Equal(t, "https://shop.example/x?a=1", full["url"])
				require.Equal(t, map[string]any{"X-A": "1"}, full["headers"])
				for _, field := range []string{"headers", "body", "body_text", "body_base64"} {
					require.Contains(t, plain, field)
					require.Nil(t, plain[field])
					switch field {
					case "headers":
					case c.field:
						require.Equal(t, c.want, full[field])
					default:
						require.Nil(t, full[field])
					}
				}
			})
		})
	}
}

func TestCallback_ChoosesTheReceiverByEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: func(_ context.Context, r job.Request) policy.Result {
			if r.Queue.Topic == job.CallbackTopic || strings.HasPrefix(r.Ref.ID, "good") {
				return policy.Result{Status: 204}
			}
			return policy.Result{Status: 410}
		}}
		r := start(t, dispatcher.Options{Deliverer: rec, CheckURL: func(target string) error {
			if target == "" {
				return errors.New("must not be empty")
			}
			return nil
		}})
		_, err := r.PutTopic(t.Context(), store.Topic{Namespace: "default", Name: "notifying", Policy: policy.Topic{
			OnDelivered: callbackTo("https://topic.example/delivered"),
			OnDead:      callbackTo("https://topic.example/dead"),
		}})
		require.NoError(t, err)
		own := policy.Terms{
			OnDelivered: callbackTo("https://job.example/delivered"),
			OnDead:      callbackTo("https://job.example/dead"),
		}
		none := policy.Terms{OnDelivered: &policy.Callback{Off: true}, OnDead: &policy.Callback{Off: true}}
		var refs []job.Ref
		for _, topic := range []string{"notifying", "silent"} {
			for _, end := range []string{"good", "bad"} {
				r.register(t, job.New{Spec: job.Spec{ID: end + "-" + topic, Queue: job.Queue{Topic: topic}}})
				r.register(t,
					job.New{Spec: job.Spec{ID: end + "-own-" + topic, Queue: job.Queue{Topic: topic}, Terms: own}})
				off := r.register(t,
					job.New{Spec: job.Spec{ID: end + "-off-" + topic, Queue: job.Queue{Topic: topic}, Terms: none}})
				refs = append(refs, off.Ref())
			}
		}
		cancelled := r.register(t, job.New{Spec: job.Spec{ID: "bad-cancelled", Terms: own}, Delay: time.Hour})
		_, err = r.Cancel(t.Context(), cancelled.Ref(), store.Cancellation{})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		sent := map[string]string{}
		for _, c := range rec.callbacks() {
			require.NotContains(t, sent, generationOf(c.Ref.ID), "once")
			sent[generationOf(c.Ref.ID)] = c.URL
		}
		require.Equal(t, map[string]string{
			"rb:good-notifying:0":     "https://topic.example/delivered",
			"rb:bad-notifying:0":      "https://topic.example/dead",
			"rb:good-own-notifying:0": "https://job.example/delivered",
			"rb:bad-own-notifying:0":  "https://job.example/dead",
			"rb:good-own-silent:0":    "https://job.example/delivered",
			"rb:bad-own-silent:0":     "https://job.example/dead",
		}, sent)
		for _, ref := range refs {
			off := r.get(t, ref)
			require.True(t, off.State.Ended(), ref)
			require.Empty(t, off.CallbackID, ref)
		}
	})
}

func TestCallback_IsSignedWithItsJobsTopicsSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec, Seal: box(t, 1)})
		orders, ofCallbacks := sign.NewSecret(), sign.NewSecret()
		for topic, secret := range map[string]sign.Secret{"orders": orders, job.CallbackTopic: ofCallbacks} {
			_, err := r.AddSecret(t.Context(), job.Queue{Namespace: "default", Topic: topic}, secret,
				store.ChangeOptions{})
			require.NoError(t, err)
		}
		terms := policy.Terms{OnDelivered: callbackTo("https://callback.example/")}
		r.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "orders"}, Terms: terms}})
		time.Sleep(2 * time.Second)
		sent := rec.callbacks()
		require.Len(t, sent, 1)
		require.NoError(t, verifies(t, &sent[0].Request, orders.Text()))
		require.Error(t, verifies(t, &sent[0].Request, ofCallbacks.Text()))
	})
}

func TestCallback_IsSentOncePerGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: statusByTopic(410)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		made := r.register(t,
			job.New{Spec: job.Spec{ID: "a", Terms: policy.Terms{OnDead: callbackTo("https://callback.example/")}}})
		for generation := range 3 {
			time.Sleep(time.Minute)
			sent := rec.callbacks()
			require.Len(t, sent, generation+1)
			require.Equal(t, fmt.Sprintf("rb:a:%d", generation), generationOf(sent[generation].Ref.ID))
			body := decoded(t, sent[generation])
			require.EqualValues(t, generation+1, body["job"].(map[string]any)["attempts_made"])
			require.EqualValues(t, generation, body["job"].(map[string]any)["generation"])
			_, err := r.Revive(t.Context(), store.Revival{Ref: made.Ref()})
			require.NoError(t, err)
		}
	})
}

func TestCallback_WithoutARequestHasNoResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: statusByTopic(500)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		pause := func(paused bool) {
			for name, maxAge := range map[string]time.Duration{"default": 0, "old": 30 * time.Second} {
				_, err := r.PutTopic(t.Context(), store.Topic{Namespace: "default", Name: name, Policy: policy.Topic{
					MaxAge: maxAge, OnDead: callbackTo("https://callback.example/"), Paused: paused,
				}})
				require.NoError(t, err)
			}
		}
		terms := policy.Terms{Ladder: policy.Ladder{10 * time.Second}, OnDead: callbackTo("https://callback.example/")}
		r.register(t, job.New{Spec: job.Spec{ID: "expired", Terms: terms}, ExpiresIn: 30 * time.Second})
		r.register(t, job.New{Spec: job.Spec{ID: "aged", Queue: job.Queue{Topic: "old"}, Terms: terms}})
		time.Sleep(5 * time.Second)
		pause(true)
		time.Sleep(time.Minute)
		pause(false)
		time.Sleep(time.Minute)
		reasons := map[string]any{}
		for _, c := range rec.callbacks() {
			require.Contains(t, string(c.Body), `"attempt":null`)
			body := decoded(t, c)
			require.EqualValues(t, 1, body["job"].(map[string]any)["attempts_made"], "there was one before")
			reasons[generationOf(c.Ref.ID)] = body["job"].(map[string]any)["reason"]
		}
		require.Equal(t, map[string]any{"rb:expired:0": "expired", "rb:aged:0": "max_age"}, reasons)
	})
}

func TestCallback_FailureRetriesAndSendsNoCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(500)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		// The API rejects such a policy; as a library it must not loop either.
		_, err := r.PutTopic(
			t.Context(), store.Topic{Namespace: "default", Name: job.CallbackTopic, Policy: policy.Topic{
				Ladder: policy.Ladder{time.Second, 2 * time.Second, 3 * time.Second},
				OnDead: callbackTo("https://loop.example/"), OnDelivered: callbackTo("https://loop.example/"),
			}},
		)
		require.NoError(t, err)
		for id, to := range map[string]*policy.Callback{
			"all": callbackTo("https://callback.example/"),
			"few": {URL: "https://callback.example/", Retries: new(1), Timeout: 3 * time.Second},
		} {
			r.register(t, job.New{Spec: job.Spec{ID: id, Terms: policy.Terms{Retries: new(0), OnDead: to}}})
		}
		time.Sleep(time.Hour)
		times := map[string]int{}
		for _, c := range rec.callbacks() {
			times[generationOf(c.Ref.ID)]++
			require.Equal(t, "https://callback.example/", c.URL)
			if generationOf(c.Ref.ID) == "rb:few:0" {
				require.Equal(t, 3*time.Second, c.Timeout)
			}
		}
		require.Equal(t, map[string]int{"rb:all:0": 4, "rb:few:0": 2}, times)
		stats, err := r.Stats(t.Context(), "default", job.CallbackTopic)
		require.NoError(t, err)
		require.EqualValues(t, 2, stats[0].Registered)
		require.EqualValues(t, 2, stats[0].Dead)
		dead, err := r.List(t.Context(),
			store.Filter{Namespace: "default", Topic: job.CallbackTopic, States: []job.State{job.Dead}, Limit: 10})
		require.NoError(t, err)
		require.Len(t, dead.Jobs, 2, "it can be revived like any")
	})
}

func TestCallback_URLIsCheckedByTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec, CheckURL: func(url string) error {
			if strings.Contains(url, "10.0.0.1") {
				return errors.New("the address 10.0.0.1 is private")
			}
			return nil
		}})
		inside := callbackTo("http://10.0.0.1/")
		for field, terms := range map[string]policy.Terms{
			"/on_delivered/url": {OnDelivered: inside, OnDead: callbackTo("https://x.example/")},
			"/on_dead/url":      {OnDead: inside},
		} {
			got := r.Register(t.Context(), []job.New{{Spec: job.Spec{URL: "https://x.example/", Terms: terms}}})[0]
			require.Equal(t, []job.FieldError{{Field: field, Detail: "the address 10.0.0.1 is private"}},
				requireInvalid(t, got.Err).Errors)
		}
		for field, p := range map[string]policy.Topic{
			"/url": {URL: "http://10.0.0.1/"}, "/on_delivered/url": {OnDelivered: inside},
			"/on_dead/url":    {OnDead: inside},
			"/on_backlog/url": {OnBacklog: &policy.Backlog{Callback: *inside, MoreThan: 1}},
		} {
			_, err := r.PutTopic(t.Context(), store.Topic{Namespace: "default", Name: "orders", Policy: p})
			require.Equal(t, field, requireInvalid(t, err).Errors[0].Field)
		}
		_, err := r.Topic(t.Context(), "default", "orders")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

// crashingStore fails every call from one call on, as after a crash of the process.
type crashingStore struct {
	store.Store
	cut  atomic.Bool
	when func(method string, took bool) bool // cut before (took false) or after a call of the method
}

func (s *crashingStore) decide(method string) storetest.Fault {
	switch {
	case s.cut.Load():
		return storetest.Before
	case s.when(method, false):
		s.cut.Store(true)
		return storetest.Before
	case s.when(method, true):
		s.cut.Store(true)
		return storetest.LostReply
	}
	return storetest.None
}

// After a crash anywhere between the settlement and the callback's delivery, the next process sends one callback.
func TestCallback_IsSentOnceAfterACrash(t *testing.T) {
	cuts := map[string]func(method string, took bool) bool{
		"after the settlement":            func(m string, took bool) bool { return m == "Settle" && took },
		"before it is carried":            nil, // the first Carry after the settlement
		"after it was taken":              nil, // that Carry's reply is lost
		"before it is inserted":           nil,
		"after it was inserted":           nil,
		"before it is called":             nil,
		"never, but every tenth is lost":  nil,
		"never, but every second is lost": nil,
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testSentOnce(t, name, cut) })
		})
	}
}

func testSentOnce(t *testing.T, name string, cut func(string, bool) bool) {
	base := model()
	var settled atomic.Bool
	var mu sync.Mutex
	inserts, n := 0, 0
	d := &crashingStore{Store: base, when: cut}
	if cut == nil {
		d.when = func(m string, took bool) bool {
			if m == "Settle" {
				settled.Store(true)
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			if !settled.Load() {
				return false
			}
			switch name {
			case "before it is carried":
				return m == "Carry" && !took
			case "after it was taken":
				return m == "Carry" && took
			case "before it is inserted":
				return m == "Insert" && !took
			case "after it was inserted":
				return m == "Insert" && took
			case "before it is called":
				if m == "Insert" && !took {
					inserts++
				}
				return m == "Claim" && !took && inserts > 0
			}
			return false
		}
	}
	decide, dies := d.decide, true
	if every, ok := map[string]int{"never, but every tenth is " +
		"lost": 10, "never, but every second is lost": 2}[name]; ok {
		dies = false
		decide = func(string) storetest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if n++; n%every == 0 {
				return storetest.LostReply
			}
			return storetest.None
		}
	}
	rec := &receiver{answer: statusByTopic(410)}
	first := start(t, dispatcher.Options{Store: storetest.Faulty(base, decide), Deliverer: rec, Grace: 2 * time.Second})
	time.Sleep(10 * time.Second)
	front := start(t, dispatcher.Options{Store: base, RegisterOnly: true})
	made := front.register(t,
		job.New{Spec: job.Spec{ID: "a", Terms: policy.Terms{OnDead: callbackTo("https://callback.example/")}}})
	time.Sleep(20 * time.Second)
	require.Equal(t, dies, d.cut.Load())
	_ = first.stop() // it may have to give up
	second := start(t, dispatcher.Options{Store: base, Deliverer: rec})
	time.Sleep(5 * time.Minute)
	require.Equal(t, job.Dead, second.get(t, made.Ref()).State)
	times := map[string]int{}
	for _, c := range rec.calls() {
		times[generationOf(c.Ref.ID)]++
	}
	require.Equal(t, map[string]int{"a": 1, "rb:a:0": 1}, times)
	stats, err := second.Stats(t.Context(), "default", job.CallbackTopic)
	require.NoError(t, err)
	require.EqualValues(t, 1, stats[0].Registered)
	require.EqualValues(t, 1, stats[0].Delivered)
}

// batchLimitStore fails a test whose calls are larger than the contract allows.
type batchLimitStore struct {
	store.Store
	t *testing.T
}

func (b batchLimitStore) Shards() []store.Shard {
	return storetest.WrapShards(b.Store, func(_ int, next store.Shard) store.Shard { return batchLimitShard{next, b} })
}

type batchLimitShard struct {
	store.Shard
	batchLimitStore
}

func (s batchLimitShard) Settle(
	ctx context.Context, tok store.Token, items []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	if len(items) > store.MaxBatch {
		s.t.Errorf("%d settlements at once", len(items))
	}
	return s.Shard.Settle(ctx, tok, items, n)
}

func (s batchLimitShard) Carry(ctx context.Context, tok store.Token, r store.CarryOptions) (store.CarryResult, error) {
	if len(r.Relayed) > store.MaxBatch {
		s.t.Errorf("%d entries relayed in one call", len(r.Relayed))
	}
	return s.Shard.Carry(ctx, tok, r)
}

func TestCallback_IsSentForManyDeathsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 600
		rec := &receiver{answer: statusByTopic(410)}
		r := start(t, dispatcher.Options{Store: batchLimitStore{model(), t}, Deliverer: rec})
		_, err := r.PutTopic(t.Context(), store.Topic{Namespace: "default", Name: "orders", Policy: policy.Topic{
			OnDead: callbackTo("https://callback.example/"),
		}})
		require.NoError(t, err)
		news := make([]job.New, jobs)
		for i := range news {
			news[i].Spec = job.Spec{
				ID: fmt.Sprint("j", i), URL: "https://x.example/",
				Queue: job.Queue{Topic: "orders", Lane: fmt.Sprint("l", i%100)},
			}
		}
		for _, got := range r.Register(t.Context(), news) {
			require.NoError(t, got.Err)
		}
		time.Sleep(5 * time.Minute)
		sent := map[string]int{}
		for _, c := range rec.callbacks() {
			sent[c.Ref.ID]++
		}
		require.Len(t, sent, jobs)
		for id, times := range sent {
			require.Equal(t, 1, times, id)
		}
		require.Len(t, rec.calls(), 2*jobs)
	})
}

func TestCallback_OmitsABodyBeyondItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: statusByTopic(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		ends := func(id string, body []byte) (callback call, subject map[string]any) {
			t.Helper()
			r.register(t, job.New{Spec: job.Spec{
				ID: id, BodyKind: job.BodyText, Body: body,
				Terms: policy.Terms{OnDelivered: &policy.Callback{
					URL:     "https://callback.example/",
					Include: []string{policy.IncludeBody},
				}},
			}})
			time.Sleep(3 * time.Second)
			all := rec.callbacks()
			callback = all[len(all)-1]
			subject, _ = decoded(t, callback)["job"].(map[string]any)
			require.Equal(t, id, subject["id"])
			return callback, subject
		}
		// Each of these takes six bytes in JSON; the rest of a callback always takes as much.
		control := bytes.Repeat([]byte{1}, job.MaxBody/6)
		small, subject := ends("a", control[:1000])
		rest := len(small.Body) - 6*1000
		require.Contains(t, subject, "body_text")
		most := (job.MaxBody - rest) / 6
		pad := bytes.Repeat([]byte{'x'}, job.MaxBody-rest-6*most)

		fits, subject := ends("b", append(pad, control[:most]...))
		require.Len(t, fits.Body, job.MaxBody)
		require.Len(t, subject["body_text"], most+len(pad))
		require.Equal(t, false, subject["body_omitted"])

		omits, subject := ends("c", append(append(pad, 'x'), control[:most]...))
		require.Less(t, len(omits.Body), 1000)
		require.Nil(t, subject["body_text"])
		require.Equal(t, true, subject["body_omitted"])
	})
}
