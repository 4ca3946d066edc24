package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redact"
)

const token = redact.Text("rb_root_0123456789abcdef")

func TestSealer_OpensForItsPurposeUntilItsTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := New([]redact.Text{token}, 1)
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
	sealed := New([]redact.Text{token}, 1).Seal("token", []byte("x"), now.Add(time.Hour))
	_, ok := New([]redact.Text{"rb_new_0123456789abcdef", token}, 1).Open("token", sealed, now)
	require.True(t, ok)
	_, ok = New([]redact.Text{"rb_new_0123456789abcdef"}, 1).Open("token", sealed, now)
	require.False(t, ok, "the token it was sealed with is no root token any more")
	_, ok = New(nil, 1).Open("token", New(nil, 1).Seal("token", nil, now.Add(time.Hour)), now)
	require.False(t, ok, "keys of processes without tokens differ")
}

func TestNew_MakesGuessesSlow(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	require.GreaterOrEqual(t, Rounds, 600_000)
	sealed := New([]redact.Text{token}, 0).Seal("token", nil, now.Add(time.Hour))
	_, ok := New([]redact.Text{token}, Rounds).Open("token", sealed, now)
	require.True(t, ok)
	_, ok = New([]redact.Text{token}, 1).Open("token", sealed, now)
	require.False(t, ok)
}
