package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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

// idleDispatcher registers and does not deliver.
func idleDispatcher(t *testing.T, opts dispatcher.Options) *dispatcher.Dispatcher {
	t.Helper()
	opts.Store = storetest.NewModel(storetest.ModelOptions{Shards: 4})
	opts.Deliverer = &receiver{answer: status(200)}
	opts.Logger = quiet
	d, err := dispatcher.New(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, opts.Store.Close()) })
	return d
}

// listings counts how often the changes of documents are listed.
type listings struct {
	store.Store
	n atomic.Int64
}

func (l *listings) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	l.n.Add(1)
	return l.Store.ListChanges(ctx, kind, since)
}

// A process that delivers sees policies that others change by its claims, and may have none for hours.
func TestRegister_RefusesNoJobByAnOldPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &listings{Store: storetest.NewModel(storetest.ModelOptions{})}
		other := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}})
		change := func(topic string, to policy.Topic) {
			_, err := other.ChangeTopic(t.Context(), job.DefaultNamespace, topic, store.ChangeOptions{},
				func(p *policy.Topic) error { *p = to; return nil })
			require.NoError(t, err)
		}
		noURL := func(topic string) job.New {
			return job.New{Spec: job.Spec{Queue: job.Queue{Topic: topic}}, Delay: time.Hour}
		}
		for _, topic := range []string{"pulled", "with-url", "sent"} {
			change(topic, policy.Topic{})
		}
		synctest.Wait()
		require.ErrorContains(t, r.Register(t.Context(), []job.New{noURL("sent")})[0].Err, "/url: is required")

		change("pulled", policy.Topic{Deliver: policy.DeliverPull})
		change("with-url", policy.Topic{URL: "https://late.example/"})
		before := s.n.Load()
		got := r.Register(t.Context(), []job.New{noURL("with-url"), noURL("sent"), noURL("pulled"), noURL("sent")})
		require.LessOrEqual(t, s.n.Load()-before, int64(2), "the policies are read once: pages until an empty one")
		require.NoError(t, got[0].Err)
		require.Equal(t, "late.example:443", got[0].Job.Lane)
		require.NoError(t, got[2].Err)
		for _, refused := range []int{1, 3} {
			require.ErrorContains(t, got[refused].Err, "/url: is required")
		}
	})
}

func TestRegister_SetsATopicWithAHandlerOncePerCall(t *testing.T) {
	s := &listings{Store: storetest.NewModel(storetest.ModelOptions{})}
	defer func() { require.NoError(t, s.Close()) }()
	d, err := dispatcher.New(dispatcher.Options{Store: s, Logger: quiet})
	require.NoError(t, err)
	defer d.Close()
	d.Handle("orders", func(context.Context, *dispatcher.Job) error { return nil })
	jobs := make([]job.New, 100)
	for i := range jobs {
		jobs[i].Topic = "orders"
	}
	for _, got := range d.Register(t.Context(), jobs) {
		require.NoError(t, got.Err)
	}
	require.Less(t, s.n.Load(), int64(10))
}

func TestRegister_DefaultLaneIsTheTarget(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{})
	for target, lane := range map[string]string{
		"https://Shop.Example/hook":  "shop.example:443",
		"HTTP://shop.example":        "shop.example:80",
		"http://shop.example:8443/x": "shop.example:8443",
		"https://[2001:db8::1]/":     "[2001:db8::1]:443",
		"https://shop.example.:443/": "shop.example:443",
	} {
		got := d.Register(t.Context(), []job.New{{Spec: job.Spec{URL: target}}})[0]
		require.NoError(t, got.Err)
		require.Equal(t, lane, got.Job.Lane, target)
	}
}

func TestRegister_HostsWithInvalidLaneNamesGetALane(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{})
	seen := map[string]string{}
	for _, target := range []string{
		"https://bücher.example/", "https://BÜCHER.example/again", "https://bäcker.example/",
		"https://" + strings.Repeat("a", 200) + ".example/", "https://" + strings.Repeat("b", 200) + ".example/",
	} {
		got := d.Register(t.Context(), []job.New{{Spec: job.Spec{URL: target}}})[0]
		require.NoError(t, got.Err)
		require.True(t, job.IsLane(got.Job.Lane), got.Job.Lane)
		require.NotEqual(t, job.DefaultLane, got.Job.Lane)
		seen[target] = got.Job.Lane
	}
	require.Equal(t, seen["https://bücher.example/"], seen["https://BÜCHER.example/again"])
	lanes := map[string]bool{}
	for _, lane := range seen {
		lanes[lane] = true
	}
	require.Len(t, lanes, 4)
}

func TestRegister_GeneratedIDNamesTheShard(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{})
	seen := map[int]bool{}
	for lane := range strings.SplitSeq("a b c d e f g h i j k l m n o p", " ") {
		got := d.Register(t.Context(),
			[]job.New{{Spec: job.Spec{URL: "https://x.example", Queue: job.Queue{Lane: lane}}}})[0]
		require.NoError(t, got.Err)
		shard, ok := job.ShardOf(got.Job.ID)
		require.True(t, ok)
		seen[shard] = true
		found, err := d.Get(t.Context(), got.Job.Ref())
		require.NoError(t, err)
		require.Equal(t, lane, found.Lane)
	}
	require.Len(t, seen, 4, "sixteen lanes spread over four shards")
}

func TestRegister_DefaultsToTheTopicsURL(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{})
	got := d.Register(t.Context(), []job.New{{Spec: job.Spec{Queue: job.Queue{Topic: "bills"}}}})[0]
	var invalid *job.InvalidError
	require.ErrorAs(t, got.Err, &invalid)
	require.Equal(t, "/url", invalid.Errors[0].Field)

	_, err := d.PutTopic(t.Context(),
		store.Topic{Namespace: "default", Name: "bills", Policy: policy.Topic{URL: "https://till.example/bills"}})
	require.NoError(t, err)
	got = d.Register(t.Context(), []job.New{{Spec: job.Spec{Queue: job.Queue{Topic: "bills"}}}})[0]
	require.NoError(t, got.Err)
	require.Equal(t, "till.example:443", got.Job.Lane)
}

func TestRegister_RejectsUndeclaredTopics(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{Declared: true})
	jobs := []job.New{
		{Spec: job.Spec{URL: "https://x.example", Queue: job.Queue{Topic: "known"}}},
		{Spec: job.Spec{URL: "https://x.example", Queue: job.Queue{Topic: "typo"}}},
	}
	_, err := d.PutTopic(t.Context(), store.Topic{Namespace: "default", Name: "known"})
	require.NoError(t, err)
	got := d.Register(t.Context(), jobs)
	require.NoError(t, got[0].Err)
	var undeclared *job.UndeclaredTopicError
	require.ErrorAs(t, got[1].Err, &undeclared)
	require.Equal(t, "typo", undeclared.Topic)
}

func TestGuard_ChecksRegistrationsEditsAndTopics(t *testing.T) {
	guard := func(raw string) error {
		if strings.Contains(raw, "127.0.0.1") {
			return errors.New("is a loopback address")
		}
		return nil
	}
	d := idleDispatcher(t, dispatcher.Options{CheckURL: guard})
	jobs := []job.New{{Spec: job.Spec{URL: "http://127.0.0.1/"}}, {Spec: job.Spec{URL: "https://x.example/"}}}
	got := d.Register(t.Context(), jobs)
	var invalid *job.InvalidError
	require.ErrorAs(t, got[0].Err, &invalid)
	require.NoError(t, got[1].Err, "one bad job spoils no other")
	_, err := d.Edit(t.Context(), got[1].Job.Ref(), editOf("http://127.0.0.1/"))
	require.ErrorAs(t, err, &invalid)
	_, err = d.PutTopic(t.Context(),
		store.Topic{Namespace: "default", Name: "t", Policy: policy.Topic{URL: "http://127.0.0.1/"}})
	require.ErrorAs(t, err, &invalid)
}

func TestRegister_RepeatFindsTheJobAndAnotherConflicts(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{})
	first := job.New{Spec: job.Spec{
		ID: "close-4711", URL: "https://x.example/", Body: []byte("1"),
		BodyKind: job.BodyJSON,
	}, Delay: 60e9}
	got := d.Register(t.Context(), []job.New{first, first})
	require.Equal(t, store.Created, got[0].Outcome)
	require.Equal(t, store.Existing, got[1].Outcome)
	other := first
	other.Body = []byte("2")
	require.Equal(t, store.Conflict, d.Register(t.Context(), []job.New{other})[0].Outcome)
	// On another shard, too: the lane differs, and with it the queue.
	for _, lane := range []string{"a", "b", "c", "d", "e"} {
		other.Lane = lane
		require.Equal(t, store.Conflict, d.Register(t.Context(), []job.New{other})[0].Outcome)
	}
}

func TestTopics_ListsStoredAndUsedOnes(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{})
	_, err := d.PutTopic(t.Context(), store.Topic{Namespace: "default", Name: "put"})
	require.NoError(t, err)
	got := d.Register(t.Context(),
		[]job.New{{Spec: job.Spec{URL: "https://x.example", Queue: job.Queue{Topic: "named"}}}})[0]
	require.NoError(t, got.Err)
	topics, err := d.Topics(t.Context(), "default", "", store.MaxBatch)
	require.NoError(t, err)
	var names []string
	for _, topic := range topics {
		names = append(names, topic.Name)
	}
	require.Equal(t, []string{"named", "put"}, names)
	_, err = d.Topic(t.Context(), "default", "named")
	require.NoError(t, err)
	_, err = d.Topic(t.Context(), "default", "neither")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestRegister_RefusesABodyWithoutAKind(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{})
	refused := d.Register(t.Context(),
		[]job.New{{Spec: job.Spec{ID: "x", URL: "https://x.example/", Body: []byte("1")}}})[0]
	invalid, ok := errors.AsType[*job.InvalidError](refused.Err)
	require.True(t, ok, refused.Err)
	require.Equal(t, "/body", invalid.Errors[0].Field)
	_, err := d.Get(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: "x"})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestRegister_RepeatFindsTheJobAfterTheLaneChanged(t *testing.T) {
	for _, shards := range []int{1, 16} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			model := storetest.NewModel(storetest.ModelOptions{Shards: shards})
			d, err := dispatcher.New(dispatcher.Options{
				Store:     model,
				Deliverer: &receiver{answer: status(200)}, Logger: quiet,
			})
			require.NoError(t, err)
			put := func(url string) {
				_, err := d.PutTopic(t.Context(),
					store.Topic{Namespace: "default", Name: "bills", Policy: policy.Topic{URL: url}})
				require.NoError(t, err)
			}
			request := job.New{Spec: job.Spec{ID: "x", Queue: job.Queue{Topic: "bills"}}, Delay: time.Hour}
			put("https://a.example/")
			first := d.Register(t.Context(), []job.New{request})[0]
			require.Equal(t, store.Created, first.Outcome)
			for i := range 20 { // some of these lanes live on other shards
				put(fmt.Sprintf("https://b%d.example/", i))
				again := d.Register(t.Context(), []job.New{request})[0]
				require.NoError(t, again.Err)
				require.Equal(t, store.Existing, again.Outcome)
				require.Equal(t, first.Job.Lane, again.Job.Lane)
				other := request
				other.Delay = time.Minute
				require.Equal(t, store.Conflict, d.Register(t.Context(), []job.New{other})[0].Outcome)
			}
		})
	}
}
