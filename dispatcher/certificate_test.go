package dispatcher_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// newCert makes a certificate with its key.
func newCert(t *testing.T) *policy.ClientCert {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ringback"}, NotAfter: time.Now().Add(time.Hour),
	}
	chain, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return &policy.ClientCert{
		Chain: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain})),
		Key:   policy.Sealed(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}
}

// putCert sets the certificate of the topic orders.
func putCert(t *testing.T, r *fixture, cert *policy.ClientCert) error {
	t.Helper()
	_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
		func(p *policy.Topic) error {
			p.ClientCert = cert
			return nil
		})
	return err
}

func TestClientCert_IsEncryptedAtRestAndPresented(t *testing.T) {
	for name, keys := range map[string][]byte{"sealed": {1}, "plain": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, rec, cert := model(), &receiver{answer: status(200)}, newCert(t)
				r := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, keys...)})
				require.NoError(t, putCert(t, r, cert))
				require.Contains(t, cert.Key, "BEGIN", "the caller's value was not changed")
				if keys != nil {
					require.NotContains(t, storedSettings(t, s), "PRIVATE KEY")
				}
				shown := deliverTo(t, r, rec, ofTopic).Certificate
				require.NotNil(t, shown)
				require.NotNil(t, shown.PrivateKey)
				require.Len(t, shown.Certificate, 1)

				// Other changes keep it, in whatever form it is stored.
				_, err := r.AddSecret(t.Context(), ofTopic, sign.NewSecret(), store.ChangeOptions{})
				require.NoError(t, err)
				_, err = r.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
					func(p *policy.Topic) error {
						p.Workers = 3
						return nil
					})
				require.NoError(t, err)
				require.Equal(t, shown.Certificate, deliverTo(t, r, rec, ofTopic).Certificate.Certificate)

				// So does a whole policy that holds it as it is stored.
				stored, err := r.Topic(t.Context(), job.DefaultNamespace, "orders")
				require.NoError(t, err)
				put, err := r.PutTopic(t.Context(), stored)
				require.NoError(t, err)
				require.Equal(t, stored.Policy.ClientCert, put.Policy.ClientCert)
				require.Equal(t, shown.Certificate, deliverTo(t, r, rec, ofTopic).Certificate.Certificate)

				require.NoError(t, putCert(t, r, nil))
				require.Nil(t, deliverTo(t, r, rec, ofTopic).Certificate)
			})
		})
	}
}

func TestClientCert_RejectsInvalidOnes(t *testing.T) {
	good, other := newCert(t), newCert(t)
	for name, bad := range map[string]policy.ClientCert{
		"another's key":    {Chain: good.Chain, Key: other.Key},
		"no PEM":           {Chain: "x", Key: good.Key},
		"no key":           {Chain: good.Chain},
		"a key of garbage": {Chain: good.Chain, Key: "garbage"},
		"an empty block":   {Chain: good.Chain, Key: "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"},
		"a plain one":      {Chain: good.Chain, Key: "plain:" + other.Key},
		"a damaged one":    {Chain: good.Chain, Key: "x1:00000000:AAAA"},
		"key for chain":    {Chain: string(good.Key), Key: good.Key},
	} {
		t.Run(name, func(t *testing.T) {
			for _, keys := range [][]byte{{1}, nil} {
				synctest.Test(t, func(t *testing.T) {
					s := model()
					r := start(t,
						dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}, Seal: box(t, keys...)})
					err := putCert(t, r, &bad)
					invalid := requireInvalid(t, err)
					require.Equal(t, "/client_cert", invalid.Errors[0].Field)
					require.Contains(t, invalid.Errors[0].Detail, "must be a certificate and its key, both in PEM")
					require.NotContains(t, err.Error(), "garbage")
					_, err = r.Topic(t.Context(), job.DefaultNamespace, "orders")
					require.ErrorIs(t, err, store.ErrNotFound)
				})
			}
		})
	}
}

func TestClientCert_MissingKeyHoldsAttemptsNotChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rec := model(), &receiver{answer: status(200)}
		first := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		require.NoError(t, putCert(t, first, newCert(t)))
		require.NoError(t, first.stop())
		second, written := startLogged(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 2)})
		require.Nil(t, deliverTo(t, second, rec, ofTopic))
		require.Contains(t, written.String(), keyID(t, 1))
		stored, err := second.Topic(t.Context(), job.DefaultNamespace, "orders")
		require.NoError(t, err)
		stored.Policy.Paused = true
		_, err = second.PutTopic(t.Context(), stored)
		require.NoError(t, err)
		require.Contains(t, storedSettings(t, s), "x1:"+keyID(t, 1))
		require.NoError(t, putCert(t, second, newCert(t)), "another one can be put")
		require.NotContains(t, storedSettings(t, s), "x1:"+keyID(t, 1))
	})
}

func TestCredentials_LaneSecretsNeedNoTopicSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rec := model(), &receiver{answer: status(200)}
		first := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		_, err := first.AddSecret(t.Context(), ofTopic, sign.NewSecret(), store.ChangeOptions{})
		require.NoError(t, err)
		require.NoError(t, first.stop())
		second := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 2)})
		require.NoError(t, putCert(t, second, newCert(t)))
		_, err = second.AddSecret(t.Context(), ofLane, sign.NewSecret(), store.ChangeOptions{})
		require.NoError(t, err)
		require.Nil(t, deliverTo(t, second, rec, ofTopic))
		request := deliverTo(t, second, rec, ofLane)
		require.NotNil(t, request)
		require.NotNil(t, request.Signer)
		require.NotNil(t, request.Certificate)
	})
}

func TestClientCert_IsNotReplacedWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		first := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}, Seal: box(t, 1)})
		require.NoError(t, putCert(t, first, newCert(t)))
		require.NoError(t, first.stop())
		before := storedSettings(t, s)
		second := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}})
		require.ErrorIs(t, putCert(t, second, newCert(t)), store.ErrUnavailable)
		require.Equal(t, before, storedSettings(t, s))
		require.NoError(t, putCert(t, second, nil))
		require.NoError(t, putCert(t, second, newCert(t)), "nothing is sealed any more")
	})
}

// Attempts with another certificate share no connection, and a signer has prepared its secrets: both are made once.
func TestCredentials_AreCachedPerTopicVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rec := model(), &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		require.NoError(t, putCert(t, r, newCert(t)))
		_, err := r.AddSecret(t.Context(), ofTopic, sign.NewSecret(), store.ChangeOptions{})
		require.NoError(t, err)
		_, err = r.AddSecret(t.Context(), ofLane, sign.NewSecret(), store.ChangeOptions{})
		require.NoError(t, err)
		topics, lanes := deliverTo(t, r, rec, ofTopic), deliverTo(t, r, rec, ofLane)
		for i := range 3 {
			_, err := r.PutTopic(t.Context(),
				store.Topic{Namespace: "default", Name: "others", Policy: policy.Topic{Workers: i + 1}})
			require.NoError(t, err)
			time.Sleep(time.Minute)
			again := deliverTo(t, r, rec, ofTopic)
			require.Same(t, topics.Certificate, again.Certificate)
			require.Same(t, topics.Signer, again.Signer)
			require.Same(t, lanes.Signer, deliverTo(t, r, rec, ofLane).Signer)
		}
		require.NotSame(t, topics.Signer, lanes.Signer)
		_, err = r.AddSecret(t.Context(), ofTopic, sign.NewSecret(), store.ChangeOptions{})
		require.NoError(t, err)
		require.NotSame(t, topics.Signer, deliverTo(t, r, rec, ofTopic).Signer)
	})
}

func TestPolicies_RejectedURLAllowsOtherChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := false
		r := start(t, dispatcher.Options{
			Deliverer: &receiver{answer: status(200)}, Seal: seal.New(), CheckURL: func(string) error {
				if refused {
					return errors.New("it is refused")
				}
				return nil
			},
		})
		to := &policy.Callback{URL: "https://callback.example/"}
		_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
			func(p *policy.Topic) error {
				p.URL, p.OnDead, p.OnDelivered = "https://x.example/", to, to
				p.OnBacklog = &policy.Backlog{Callback: *to, MoreThan: 1}
				return nil
			})
		require.NoError(t, err)
		_, err = r.ChangeLane(t.Context(), ofLane, store.ChangeOptions{}, func(l *policy.Lane) error {
			l.URL = "https://x.example/"
			return nil
		})
		require.NoError(t, err)
		refused = true
		for _, owner := range []job.Queue{ofTopic, ofLane} {
			_, err = r.AddSecret(t.Context(), owner, sign.NewSecret(), store.ChangeOptions{})
			require.NoError(t, err)
		}
		for field, change := range map[string]func(p *policy.Topic){
			"/url":              func(p *policy.Topic) { p.URL = "https://y.example/" },
			"/on_delivered/url": func(p *policy.Topic) { p.OnDelivered = &policy.Callback{URL: "https://y.example/"} },
			"/on_dead/url":      func(p *policy.Topic) { p.OnDead = &policy.Callback{URL: "https://y.example/"} },
			"/on_backlog/url": func(p *policy.Topic) {
				p.OnBacklog = &policy.Backlog{Callback: policy.Callback{URL: "https://y.example/"}, MoreThan: 1}
			},
		} {
			_, err = r.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
				func(p *policy.Topic) error {
					change(p)
					return nil
				})
			require.Equal(t, field, requireInvalid(t, err).Errors[0].Field)
		}
		_, err = r.PutTopic(t.Context(),
			store.Topic{Namespace: "default", Name: "orders", Policy: policy.Topic{URL: "https://x.example/"}})
		require.Equal(t, "/url", requireInvalid(t, err).Errors[0].Field)
	})
}
