package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// model is a store that several dispatchers of a test can use one after the other.
func model() store.Store { return sharded(1) }

// sharded is a model of several shards.
func sharded(shards int) store.Store {
	return shared{storetest.NewModel(storetest.ModelOptions{Shards: shards})}
}

// box seals under the keys of those numbers, the first in front.
func box(t *testing.T, numbers ...byte) *seal.Box {
	t.Helper()
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = hex.EncodeToString(bytes.Repeat([]byte{n}, 32))
	}
	keys, err := seal.ParseKeys(strings.Join(texts, ","))
	require.NoError(t, err)
	return seal.New(keys...)
}

// keyID names the key of a number.
func keyID(t *testing.T, number byte) string {
	t.Helper()
	keys, err := seal.ParseKeys(hex.EncodeToString(bytes.Repeat([]byte{number}, 32)))
	require.NoError(t, err)
	return keys[0].ID()
}

var (
	ofTopic = job.Queue{Namespace: job.DefaultNamespace, Topic: "orders"}
	ofLane  = job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "customer-42"}
)

// eachOwner runs a test for a topic and for a lane.
func eachOwner(t *testing.T, test func(t *testing.T, owner job.Queue)) {
	t.Helper()
	for name, owner := range map[string]job.Queue{"topic": ofTopic, "lane": ofLane} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, owner) })
		})
	}
}

// storedSettings returns all stored settings as text.
func storedSettings(t *testing.T, s store.Store) string {
	t.Helper()
	topics, _, err := storetest.ListTopics(t.Context(), s)
	require.NoError(t, err)
	var lanes []store.Lane
	for _, topic := range topics {
		for shard := range s.Shards() {
			some, err := store.ListLanes(t.Context(), s.Shards()[shard], topic.Namespace,
				topic.Name, "", store.MaxBatch)
			require.NoError(t, err)
			lanes = append(lanes, some...)
		}
	}
	text, err := json.Marshal([]any{topics, lanes})
	require.NoError(t, err)
	return string(text)
}

// deliverTo registers a job of the owner's and returns its request; nil: there was none.
func deliverTo(t *testing.T, r *fixture, rec *receiver, owner job.Queue) *job.Request {
	t.Helper()
	before := len(rec.calls())
	n := job.New{Spec: job.Spec{
		Queue: owner, URL: "https://shop.example/hook",
		Body: []byte(`{"a":1}`), BodyKind: job.BodyJSON,
	}}
	r.register(t, n)
	time.Sleep(time.Second)
	synctest.Wait()
	calls := rec.calls()
	if len(calls) == before {
		return nil
	}
	return &calls[len(calls)-1].Request
}

// verifies checks a request as a receiver with the key would.
func verifies(t *testing.T, r *job.Request, key string) error {
	t.Helper()
	require.NotNil(t, r)
	if r.Signer == nil {
		return fmt.Errorf("it is not signed")
	}
	now := time.Now()
	v, err := sign.NewVerifier(key)
	require.NoError(t, err)
	return v.Verify(http.Header{
		"Webhook-Id": {r.Ref.ID}, "Webhook-Timestamp": {strconv.FormatInt(now.Unix(), 10)},
		"Webhook-Signature": {r.Signer.Sign(r.Ref.ID, now, r.Body)},
	}, r.Body, now)
}

func TestSecrets_AreEncryptedAtRestAndSign(t *testing.T) {
	eachOwner(t, func(t *testing.T, owner job.Queue) {
		for name, b := range map[string]*seal.Box{"sealed": box(t, 1), "plain": nil} {
			s, rec := model(), &receiver{answer: status(200)}
			r := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: b})
			require.Empty(t, deliverTo(t, r, rec, owner).Signer)
			secret, key := sign.NewSecret(), sign.NewKey()
			for _, added := range []sign.Secret{secret, key} {
				got, err := r.AddSecret(t.Context(), owner, added, store.ChangeOptions{})
				require.NoError(t, err)
				require.Equal(t, added.ID(), got.ID)
				require.WithinDuration(t, time.Now(), got.CreatedAt, time.Second)
			}
			text := storedSettings(t, s)
			require.Contains(t, text, secret.ID())
			for _, one := range []sign.Secret{secret, key} {
				_, raw, _ := strings.Cut(one.Text(), "_")
				if b == nil {
					require.Contains(t, text, `"plain:`+one.Text()+`"`)
				} else {
					require.NotContains(t, text, raw[:10])
				}
			}
			request := deliverTo(t, r, rec, owner)
			require.NoError(t, verifies(t, request, secret.Text()), name)
			require.NoError(t, verifies(t, request, key.PublicKey()))
			require.Error(t, verifies(t, request, sign.NewSecret().Text()))
			other := deliverTo(t, r, rec, job.Queue{Topic: "others"})
			require.Empty(t, other.Signer, "another topic signs nothing")
			require.NoError(t, r.stop())
		}
	})
}

func TestSecrets_LaneOverridesTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rec := model(), &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		topics, lanes := sign.NewSecret(), sign.NewSecret()
		_, err := r.AddSecret(t.Context(), ofTopic, topics, store.ChangeOptions{})
		require.NoError(t, err)
		require.NoError(t, verifies(t, deliverTo(t, r, rec, ofLane), topics.Text()))
		_, err = r.AddSecret(t.Context(), ofLane, lanes, store.ChangeOptions{})
		require.NoError(t, err)
		request := deliverTo(t, r, rec, ofLane)
		require.NoError(t, verifies(t, request, lanes.Text()))
		require.Error(t, verifies(t, request, topics.Text()))
		require.NoError(t, verifies(t, deliverTo(t, r, rec, ofTopic), topics.Text()), "another lane is not concerned")
		require.NoError(t, r.RemoveSecret(t.Context(), ofLane, lanes.ID(), store.ChangeOptions{}))
		require.NoError(t, verifies(t, deliverTo(t, r, rec, ofLane), topics.Text()))
	})
}

func TestSecrets_AreListedNewestFirstWithoutValues(t *testing.T) {
	eachOwner(t, func(t *testing.T, owner job.Queue) {
		s := model()
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}, Seal: box(t, 1)})
		var added []sign.Secret
		for i := range policy.MaxSecrets {
			one := sign.NewSecret()
			if i%2 == 0 && i >= policy.MaxSecrets-4 {
				one = sign.NewKey()
			}
			_, err := r.AddSecret(t.Context(), owner, one, store.ChangeOptions{})
			require.NoError(t, err)
			added = append([]sign.Secret{one}, added...)
			time.Sleep(time.Second)
		}
		listed, err := r.Secrets(t.Context(), owner)
		require.NoError(t, err)
		require.Len(t, listed, policy.MaxSecrets)
		for i, one := range listed {
			require.Equal(t, added[i].ID(), one.ID)
		}
		shown := fmt.Sprintf("%v %+v %s", listed, listed, listed)
		require.NotContains(t, shown, "x1:")

		keys, err := r.PublicKeys(t.Context(), owner)
		require.NoError(t, err)
		require.Len(t, keys, 2, "of those that have one")
		require.Equal(t, added[1].PublicKey(), keys[0].Key)
		require.Equal(t, added[1].ID(), keys[0].ID)

		before := storedSettings(t, s)
		again, err := r.AddSecret(t.Context(), owner, added[3], store.ChangeOptions{})
		require.NoError(t, err)
		require.Equal(t, listed[3].CreatedAt, again.CreatedAt)
		require.Equal(t, before, storedSettings(t, s), "the same secret again changes nothing, not even a revision")

		_, err = r.AddSecret(t.Context(), owner, sign.NewSecret(), store.ChangeOptions{})
		invalid := requireInvalid(t, err)
		require.Equal(t, "/secret", invalid.Errors[0].Field)

		require.ErrorIs(t, r.RemoveSecret(t.Context(), owner, "unknown", store.ChangeOptions{}), store.ErrNotFound)
		require.NoError(t, r.RemoveSecret(t.Context(), owner, added[2].ID(), store.ChangeOptions{}))
		require.ErrorIs(t, r.RemoveSecret(t.Context(), owner, added[2].ID(), store.ChangeOptions{}), store.ErrNotFound)
		_, err = r.AddSecret(t.Context(), owner, added[2], store.ChangeOptions{})
		require.NoError(t, err)
		listed, err = r.Secrets(t.Context(), owner)
		require.NoError(t, err)
		require.Equal(t, added[2].ID(), listed[0].ID, "it begins anew")
		for _, one := range listed {
			require.NoError(t, r.RemoveSecret(t.Context(), owner, one.ID, store.ChangeOptions{}))
		}
		listed, err = r.Secrets(t.Context(), owner)
		require.NoError(t, err)
		require.Empty(t, listed)
	})
}

func TestSecrets_OfAnUnknownTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: status(200)}})
		_, err := r.Secrets(t.Context(), ofTopic)
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = r.PublicKeys(t.Context(), ofTopic)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.ErrorIs(t, r.RemoveSecret(t.Context(), ofTopic, "x", store.ChangeOptions{}), store.ErrNotFound)
		require.ErrorIs(t, r.RemoveSecret(t.Context(), ofLane, "x", store.ChangeOptions{}), store.ErrNotFound)
		_, err = r.Topic(t.Context(), ofTopic.Namespace, ofTopic.Topic)
		require.ErrorIs(t, err, store.ErrNotFound, "what failed has put nothing")
	})
}

// slowSettingsStore sleeps after a read of settings, so that changes collide.
type slowSettingsStore struct{ store.Store }

func (u slowSettingsStore) Shards() []store.Shard {
	return storetest.WrapShards(u.Store,
		func(_ int, next store.Shard) store.Shard { return slowSettingsShard{next, u} })
}

type slowSettingsShard struct {
	store.Shard
	slowSettingsStore
}

func (u slowSettingsStore) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	time.Sleep(5 * time.Millisecond)
	return u.Store.PutDocument(ctx, token, doc, limits)
}

func (s slowSettingsShard) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	time.Sleep(5 * time.Millisecond)
	return s.Shard.PutDocument(ctx, token, doc, limits)
}

func TestSecrets_ConcurrentAddsAreAllKept(t *testing.T) {
	eachOwner(t, func(t *testing.T, owner job.Queue) {
		s := slowSettingsStore{model()}
		first := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		second := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		add := func(rigs ...*fixture) {
			var adding sync.WaitGroup
			for i := range 4 {
				adding.Go(func() {
					_, err := rigs[i%len(rigs)].AddSecret(t.Context(), owner, sign.NewSecret(), store.ChangeOptions{})
					if err != nil {
						t.Error(err)
					}
				})
			}
			adding.Wait()
		}
		add(first) // the first change of an owner
		listed, err := first.Secrets(t.Context(), owner)
		require.NoError(t, err)
		require.Len(t, listed, 4)
		add(first, second)
		listed, err = second.Secrets(t.Context(), owner)
		require.NoError(t, err)
		require.Len(t, listed, 8)
	})
}

// conflictingStore changes settings before each write, so that every write conflicts.
type conflictingStore struct{ store.Store }

func (a conflictingStore) Shards() []store.Shard {
	return storetest.WrapShards(a.Store, func(_ int, next store.Shard) store.Shard { return conflictingShard{next, a} })
}

type conflictingShard struct {
	store.Shard
	conflictingStore
}

func (conflictingStore) PutDocument(
	context.Context, store.Token, store.Document, policy.Limits,
) (store.Document, error) {
	return store.Document{}, store.ErrVersion
}

func (conflictingShard) PutDocument(
	context.Context, store.Token, store.Document, policy.Limits,
) (store.Document, error) {
	return store.Document{}, store.ErrVersion
}

func TestSecrets_ChangeEndsAfterTooManyConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Store: conflictingStore{model()}, RegisterOnly: true})
		_, err := r.AddSecret(t.Context(), ofTopic, sign.NewSecret(), store.ChangeOptions{})
		require.ErrorIs(t, err, store.ErrContended)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_, err = r.AddSecret(ctx, ofTopic, sign.NewSecret(), store.ChangeOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// startLogged is start with a recorded log.
func startLogged(t *testing.T, opts dispatcher.Options) (*fixture, *testkit.Log) {
	t.Helper()
	l := &testkit.Log{}
	opts.Logger = slog.New(slog.NewTextHandler(l, nil))
	d, err := dispatcher.New(opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	return &fixture{Dispatcher: d, stop: stop}, l
}

func TestSecrets_MissingKeyHoldsDeliveriesAndIsLogged(t *testing.T) {
	eachOwner(t, func(t *testing.T, owner job.Queue) {
		s, rec, secret := model(), &receiver{answer: status(200)}, sign.NewSecret()
		first := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		_, err := first.AddSecret(t.Context(), owner, secret, store.ChangeOptions{})
		require.NoError(t, err)
		require.NoError(t, first.stop())

		second, written := startLogged(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 2)})
		made := second.register(t, job.New{Spec: job.Spec{Queue: owner}})
		require.NotNil(t, deliverTo(t, second, rec, job.Queue{Topic: "others"}), "others go on")
		time.Sleep(time.Hour)
		require.Len(t, rec.calls(), 1)
		waits := second.get(t, made.Ref())
		require.False(t, waits.State.Ended())
		require.Zero(t, waits.Attempts)
		require.Empty(t, waits.History)
		require.Contains(t, written.String(), keyID(t, 1))
		require.Contains(t, written.String(), "level=ERROR")
		_, raw, _ := strings.Cut(secret.Text(), "_")
		require.NotContains(t, written.String(), raw[:10])
		require.NotContains(t, written.String(), "x1:")
		require.Less(t, strings.Count(written.String(), "\n"), 2000, "it is not logged all the time")
		_, err = second.PublicKeys(t.Context(), owner)
		require.ErrorIs(t, err, seal.ErrNoKey)
		require.NoError(t, second.stop())

		third := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 2, 1)})
		time.Sleep(15 * time.Second)
		require.Equal(t, job.Delivered, third.get(t, made.Ref()).State)
		calls := rec.calls()
		require.NoError(t, verifies(t, &calls[len(calls)-1].Request, secret.Text()))
	})
}

func TestSecrets_CanBeReplacedWithoutTheirKey(t *testing.T) {
	eachOwner(t, func(t *testing.T, owner job.Queue) {
		s, rec, secret := model(), &receiver{answer: status(200)}, sign.NewSecret()
		first := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		made, err := first.AddSecret(t.Context(), owner, secret, store.ChangeOptions{})
		require.NoError(t, err)
		require.NoError(t, first.stop())

		time.Sleep(time.Hour)
		second := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 2)})
		again, err := second.AddSecret(t.Context(), owner, secret, store.ChangeOptions{})
		require.NoError(t, err)
		require.Equal(t, made.CreatedAt, again.CreatedAt)
		listed, err := second.Secrets(t.Context(), owner)
		require.NoError(t, err)
		require.Len(t, listed, 1)
		require.NoError(t, verifies(t, deliverTo(t, second, rec, owner), secret.Text()))
	})
}

func TestReseal_UnderANewKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rec := model(), &receiver{answer: status(200)}
		const lanes = store.MaxBatch + 20 // more than a page
		first := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		topics, ofLanes := sign.NewSecret(), sign.NewSecret()
		_, err := first.AddSecret(t.Context(), ofTopic, topics, store.ChangeOptions{})
		require.NoError(t, err)
		cert := newCert(t)
		_, err = first.ChangeTopic(t.Context(), job.DefaultNamespace, "certified", store.ChangeOptions{},
			func(p *policy.Topic) error {
				p.URL, p.ClientCert = "https://gone.example/", cert
				return nil
			})
		require.NoError(t, err)
		for i := range lanes {
			owner := job.Queue{Namespace: job.DefaultNamespace, Topic: "laned", Lane: fmt.Sprintf("lane-%03d", i)}
			_, err = first.AddSecret(t.Context(), owner, ofLanes, store.ChangeOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, first.stop())
		lost := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 9)})
		_, err = lost.AddSecret(t.Context(),
			job.Queue{Namespace: job.DefaultNamespace, Topic: "lost"}, sign.NewSecret(), store.ChangeOptions{})
		require.NoError(t, err)
		require.NoError(t, lost.stop())

		// URLs that the guard now rejects and secrets that cannot be decrypted block no change.
		refuse := func(url string) error {
			if strings.Contains(url, "gone") {
				return fmt.Errorf("it is refused")
			}
			return nil
		}
		second, written := startLogged(t,
			dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 2, 1), CheckURL: refuse})
		time.Sleep(time.Second)
		text := storedSettings(t, s)
		require.NotContains(t, text, "x1:"+keyID(t, 1))
		require.Equal(t, store.MaxBatch+2, strings.Count(text, "x1:"+keyID(t, 2)),
			"the first page of the lanes, and two topics")
		require.Equal(t, 1, strings.Count(text, "x1:"+keyID(t, 9)))
		require.Contains(t, written.String(), keyID(t, 9))
		require.NotContains(t, written.String(), "resealing secrets under the current key failed")
		require.NoError(t, second.stop())

		third := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 2)})
		before := storedSettings(t, s)
		require.NoError(t, verifies(t, deliverTo(t, third, rec, ofTopic), topics.Text()))
		for _, i := range []int{0, lanes - 1} {
			owner := job.Queue{Topic: "laned", Lane: fmt.Sprintf("lane-%03d", i)}
			require.NoError(t, verifies(t, deliverTo(t, third, rec, owner), ofLanes.Text()))
		}
		require.NotNil(t, deliverTo(t, third, rec, job.Queue{Topic: "certified"}).Certificate)
		require.Equal(t, before, storedSettings(t, s), "there is nothing more to do")
	})
}

// A process whose writes to one lane are overtaken all the time still seals the others.
func TestReseal_FailureOfALaneStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		first := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}, Seal: box(t, 1)})
		for i := range 9 {
			owner := job.Queue{Namespace: job.DefaultNamespace, Topic: "laned", Lane: fmt.Sprintf("lane-%d", i)}
			_, err := first.AddSecret(t.Context(), owner, sign.NewSecret(), store.ChangeOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, first.stop())
		second, written := startLogged(t, dispatcher.Options{
			Store: changingLaneStore{s, "lane-2"}, Deliverer: &receiver{answer: status(200)}, Seal: box(t, 2, 1),
		})
		time.Sleep(10 * time.Second)
		require.Equal(t, 8, strings.Count(storedSettings(t, s), "x1:"+keyID(t, 2)))
		require.Contains(t, written.String(), "resealing secrets under the current key failed")
		require.Contains(t, written.String(), "lane-2")
		require.NoError(t, second.stop())
	})
}

// changingLaneStore changes one lane before each write, so that its writes conflict.
type changingLaneStore struct {
	store.Store
	lane string
}

func (o changingLaneStore) Shards() []store.Shard {
	return storetest.WrapShards(o.Store,
		func(_ int, next store.Shard) store.Shard { return changingLaneShard{next, o} })
}

type changingLaneShard struct {
	store.Shard
	changingLaneStore
}

func (s changingLaneShard) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	if doc.Key.Lane == s.lane {
		return store.Document{}, store.ErrVersion
	}
	return s.Shard.PutDocument(ctx, token, doc, limits)
}

func TestSecrets_AtMostTwoAsymmetricKeys(t *testing.T) {
	eachOwner(t, func(t *testing.T, owner job.Queue) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: status(200)}, Seal: box(t, 1)})
		first, second, third := sign.NewKey(), sign.NewKey(), sign.NewKey()
		for _, one := range []sign.Secret{first, second, first, sign.NewSecret()} {
			_, err := r.AddSecret(t.Context(), owner, one, store.ChangeOptions{})
			require.NoError(t, err)
		}
		_, err := r.AddSecret(t.Context(), owner, third, store.ChangeOptions{})
		require.Equal(t, "/secret", requireInvalid(t, err).Errors[0].Field)
		require.NoError(t, r.RemoveSecret(t.Context(), owner, first.ID(), store.ChangeOptions{}))
		_, err = r.AddSecret(t.Context(), owner, third, store.ChangeOptions{})
		require.NoError(t, err)
		keys, err := r.PublicKeys(t.Context(), owner)
		require.NoError(t, err)
		require.Len(t, keys, 2)
	})
}

func TestReseal_EncryptsPlainSecrets(t *testing.T) {
	eachOwner(t, func(t *testing.T, owner job.Queue) {
		s, rec, secret := model(), &receiver{answer: status(200)}, sign.NewSecret()
		first := start(t, dispatcher.Options{Store: s, Deliverer: rec})
		_, err := first.AddSecret(t.Context(), owner, secret, store.ChangeOptions{})
		require.NoError(t, err)
		require.Contains(t, storedSettings(t, s), secret.Text())
		require.NoError(t, first.stop())
		second := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		time.Sleep(time.Second)
		require.NotContains(t, storedSettings(t, s), "plain:")
		require.NoError(t, verifies(t, deliverTo(t, second, rec, owner), secret.Text()))
	})
}

// requireInvalid takes an error for a refusal.
func requireInvalid(t *testing.T, err error) *job.InvalidError {
	t.Helper()
	var invalid *job.InvalidError
	require.ErrorAs(t, err, &invalid)
	return invalid
}
