package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/logs"
)

const token = logs.Secret("rb_root_0123456789abcdef")

func TestSealer_OpensForItsPurposeUntilItsTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := NewSealer([]logs.Secret{token}, 1)
	sealed := s.Seal("token", []byte("secret"), now.Add(time.Hour))
	require.NotContains(t, sealed, "secret")
	require.Regexp(t, `^[A-Za-z0-9_-]+$`, sealed)

	text, ok := s.Open("token", sealed, now)
	require.True(t, ok)
	require.Equal(t, "secret", string(text))

	_, ok = s.Open("notice", sealed, now)
	require.False(t, ok, "another purpose")
	_, ok = s.Open("token", sealed, now.Add(time.Hour))
	require.False(t, ok, "too late")
	changed := []byte(sealed)
	changed[len(changed)/2] ^= 1
	_, ok = s.Open("token", string(changed), now)
	require.False(t, ok, "changed")
	for _, text := range []string{"", "x", "!", "AAAA"} {
		_, ok = s.Open("token", text, now)
		require.False(t, ok, text)
	}
}

func TestSealer_OpensWhatAnotherProcessAndAnEarlierTokenSealed(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	sealed := NewSealer([]logs.Secret{token}, 1).Seal("token", []byte("x"), now.Add(time.Hour))
	_, ok := NewSealer([]logs.Secret{"rb_new_0123456789abcdef", token}, 1).Open("token", sealed, now)
	require.True(t, ok)
	_, ok = NewSealer([]logs.Secret{"rb_new_0123456789abcdef"}, 1).Open("token", sealed, now)
	require.False(t, ok, "the token it was sealed with is no root token any more")
	_, ok = NewSealer(nil, 1).Open("token", NewSealer(nil, 1).Seal("token", nil, now.Add(time.Hour)), now)
	require.False(t, ok, "keys of processes without tokens differ")
}

func TestSealer_FollowsReplacedTokens(t *testing.T) {
	const next = logs.Secret("rb_new_0123456789abcdef")
	now := time.Unix(1_800_000_000, 0)
	s := NewSealer([]logs.Secret{token}, 1)
	sealed := s.Seal("token", []byte("x"), now.Add(time.Hour))
	s.Replace([]logs.Secret{next, token})
	_, ok := s.Open("token", sealed, now)
	require.True(t, ok)
	require.Equal(t, NewSealer([]logs.Secret{next}, 1).IDs()[0], s.IDs()[0], "the first one seals")
	s.Replace([]logs.Secret{next})
	_, ok = s.Open("token", sealed, now)
	require.False(t, ok)
}

func TestNew_MakesGuessesSlow(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	require.GreaterOrEqual(t, sealRounds, 600_000)
	sealed := NewSealer([]logs.Secret{token}, 0).Seal("token", nil, now.Add(time.Hour))
	_, ok := NewSealer([]logs.Secret{token}, sealRounds).Open("token", sealed, now)
	require.True(t, ok)
	_, ok = NewSealer([]logs.Secret{token}, 1).Open("token", sealed, now)
	require.False(t, ok)
}

func TestSealer_OpensNoCopyOfWhatWasEnded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := NewSealer([]logs.Secret{token}, 1)
	sealed, other := s.Seal("token", []byte("x"), now.Add(time.Hour)), s.Seal("token", []byte("x"), now.Add(time.Hour))
	for _, text := range []string{"", "!", "AAAA", sealed[1:]} {
		s.End("token", text, now)
	}
	s.End("notice", sealed, now)
	_, ok := s.Open("token", sealed, now)
	require.True(t, ok, "what does not open ends nothing")

	s.End("token", sealed, now)
	_, ok = s.Open("token", sealed, now)
	require.False(t, ok)
	_, ok = s.Open("token", sealed[:len(sealed)-1]+string(sealed[len(sealed)-1]+1), now)
	require.False(t, ok, "another spelling: the last bits of base64 mean nothing")
	_, ok = s.Open("token", other, now)
	require.True(t, ok, "another session of the same token goes on")

	for i := range maxEnded {
		s.End("token", s.Seal("token", nil, now.Add(time.Minute+time.Duration(i%2)*time.Hour)), now)
	}
	require.Len(t, s.ended, maxEnded)
	_, ok = s.Open("token", sealed, now)
	require.False(t, ok, "shorter ones were forgotten")
	s.End("token", other, now.Add(2*time.Minute))
	require.LessOrEqual(t, len(s.ended), maxEnded/2+2, "so are those whose time is over")
}
