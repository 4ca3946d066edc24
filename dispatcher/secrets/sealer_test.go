package secrets_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
)

// sealer returns a Sealer with keys, each named by the digit that its bytes repeat.
func sealer(t *testing.T, digits ...string) *secrets.Sealer {
	t.Helper()
	var texts []string
	for _, d := range digits {
		texts = append(texts, strings.Repeat(d, 64))
	}
	var keys []seal.Key
	if len(texts) > 0 {
		var err error
		keys, err = seal.ParseKeys(strings.Join(texts, ","))
		require.NoError(t, err)
	}
	return secrets.New(seal.New(keys...), slog.New(slog.DiscardHandler))
}

var (
	owner = job.Queue{Namespace: "default", Topic: "orders"}
	plain = map[string][]string{"Authorization": {"Bearer 42"}, "X-Pin": {"1234", "5678"}, "X-Team": {"a"}}
)

func TestSecret_OpensForItsOwnerAlone(t *testing.T) {
	s, secret := sealer(t, "1"), sign.NewSecret()
	stored := policy.Secret{ID: secret.ID(), Value: s.SealSecret(owner, secret)}
	opened, err := s.OpenSecret(owner, stored)
	require.NoError(t, err)
	require.Equal(t, secret.Text(), opened.Text())
	_, err = s.OpenSecret(job.Queue{Namespace: "default", Topic: "bills"}, stored)
	require.Error(t, err)
}

func TestHeader_IsBoundToTheFirstOrigin(t *testing.T) {
	s := sealer(t, "1")
	stored := s.SealHeaders(plain, "https://a.example:443")
	require.Equal(t, []string{"a"}, stored["X-Team"])
	require.False(t, secrets.HasPlain(stored))
	require.False(t, s.NeedsSeal(stored))
	again := s.SealHeaders(stored, "https://b.example:443")
	text, sealed := job.Sealed(again["Authorization"])
	require.True(t, sealed)
	opened, err := s.OpenHeader("Authorization", text)
	require.NoError(t, err)
	require.Equal(t, job.HeaderSecret{Origin: "https://a.example:443", Values: []string{"Bearer 42"}}, opened)
}

func TestHeader_ThatMayBeASecretIsSealedForAnyOriginAndVisible(t *testing.T) {
	s := sealer(t, "1")
	stored := s.SealHeaders(plain, "https://a.example:443")
	text, sealed := job.Sealed(stored["X-Pin"])
	require.True(t, sealed)
	require.NotContains(t, text, "1234")
	opened, err := s.OpenHeader("X-Pin", text)
	require.NoError(t, err)
	require.Equal(t, job.HeaderSecret{Values: plain["X-Pin"]}, opened)

	visible := s.OpenVisible(stored)
	require.Equal(t, plain["X-Pin"], visible["X-Pin"])
	require.Equal(t, stored["Authorization"], visible["Authorization"])
	require.Equal(t, stored, sealer(t, "2").OpenVisible(stored), "what cannot be opened stays sealed")

	none := sealer(t)
	stored = none.SealHeaders(plain, "")
	require.Equal(t, plain["X-Pin"], stored["X-Pin"], "there is no key")
	require.False(t, none.IsTopicStale(policy.Topic{Headers: stored}))
	require.True(t, s.IsTopicStale(policy.Topic{Headers: map[string][]string{"X-Pin": {"1234"}}}), "a key has come")
}

func TestReseal_ReplacesTheKeyOnce(t *testing.T) {
	old, secret := sealer(t, "1"), sign.NewSecret()
	lane := policy.Lane{
		Headers: old.SealHeaders(plain, ""),
		Secrets: []policy.Secret{{ID: secret.ID(), Value: old.SealSecret(owner, secret)}},
	}
	topic := policy.Topic{Headers: lane.Headers, Secrets: lane.Secrets}
	both := sealer(t, "2", "1")
	require.True(t, both.IsTopicStale(topic))
	require.True(t, both.ResealTopic(owner, &topic))
	require.False(t, both.IsTopicStale(topic))
	require.False(t, both.ResealTopic(owner, &topic))
	_, err := sealer(t, "2").OpenSecret(owner, topic.Secrets[0])
	require.NoError(t, err)
	require.Equal(t, plain["X-Pin"], sealer(t, "2").OpenVisible(topic.Headers)["X-Pin"])

	require.True(t, both.IsLaneStale(lane))
	require.True(t, both.ResealLane(job.Queue{Namespace: "default", Topic: "orders", Lane: "l"}, &lane))
	_, err = sealer(t, "2").OpenSecret(owner, lane.Secrets[0])
	require.Error(t, err, "a secret of another owner cannot be opened, and stays as it is")
	text, _ := job.Sealed(lane.Headers["Authorization"])
	_, err = sealer(t, "2").OpenHeader("Authorization", text)
	require.NoError(t, err)
}
