package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// key is the nth of keys that are all different.
func key(n byte) Key { return newKey(bytes.Repeat([]byte{n}, 32)) }

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	place  = "default/orders/4bbb840d2fcb1d6a"
)

func TestBox_RoundTrips(t *testing.T) {
	for name, b := range map[string]*Box{"no key": New(), "one key": New(key(1)), "two keys": New(key(1), key(2))} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{
				"", "a", secret, "plain:x", "x1:00000000:AAAA", "\x00\xff\n", strings.Repeat("s", 100_000),
			} {
				for _, where := range []string{"", place} {
					sealed := b.Seal(text, where)
					require.True(t, b.Current(sealed))
					opened, err := b.Open(sealed, where)
					require.NoError(t, err)
					require.Equal(t, text, opened)
				}
			}
		})
	}
}

func TestSeal_RevealsNothing(t *testing.T) {
	b := New(key(1))
	first, second := b.Seal(secret, place), b.Seal(secret, place)
	require.NotEqual(t, first, second)
	for _, sealed := range []string{first, second} {
		require.NotContains(t, sealed, secret[6:])
		require.NotContains(t, sealed, place)
		require.True(t, strings.HasPrefix(sealed, "x1:"+key(1).ID()+":"))
		raw, err := base64.RawStdEncoding.DecodeString(sealed[len("x1:")+9:])
		require.NoError(t, err)
		require.Len(t, raw, 24+len(secret)+16)
		require.NotContains(t, string(raw), secret[6:14])
	}
	require.Equal(t, "plain:"+secret, New().Seal(secret, place))
}

func TestOpen_AcceptsStoredTexts(t *testing.T) {
	const stored = "x1:16332e57:3LdpM6x369n7WTGhwOQ78Sn7v7wME7Y3dCBr7y8S" +
		"wY1CS5xHnckfBU8Xptb0BxCadoxkZGWGOGFXoAQfDTJJQ0zWXtqOF+UfCTrJwuo6"
	opened, err := New(key(9), key(1)).Open(stored, place)
	require.NoError(t, err)
	require.Equal(t, secret, opened)
}

func TestBox_RotatesKeys(t *testing.T) {
	none, old, both, latest := New(), New(key(1)), New(key(2), key(1)), New(key(2))
	opens := func(b *Box, sealed string) {
		t.Helper()
		opened, err := b.Open(sealed, place)
		require.NoError(t, err)
		require.Equal(t, secret, opened)
	}

	plain := none.Seal(secret, place)
	require.False(t, old.Current(plain), "a key has come")
	opens(old, plain)

	sealed := old.Seal(secret, place)
	require.True(t, old.Current(sealed))
	require.False(t, both.Current(sealed), "a new key is in front")
	opens(both, sealed)

	again := both.Seal(secret, place)
	require.True(t, both.Current(again))
	require.True(t, latest.Current(again))
	opens(latest, again)
	_, err := old.Open(again, place)
	require.ErrorIs(t, err, ErrNoKey)

	for _, b := range []*Box{none, latest} {
		_, err := b.Open(sealed, place)
		require.ErrorIs(t, err, ErrNoKey)
		require.ErrorContains(t, err, key(1).ID())
		require.ErrorContains(t, err, "append that key to RINGBACK_SECRET_KEY")
		require.False(t, b.Current(sealed))
	}
}

func TestOpen_RequiresTheSamePlace(t *testing.T) {
	b := New(key(1))
	sealed := b.Seal(secret, place)
	for _, other := range []string{"", place +
		"x", place[1:], strings.ToUpper(place), "default/refunds/4bbb840d2fcb1d6a"} {
		_, err := b.Open(sealed, other)
		require.ErrorIs(t, err, ErrDamaged)
	}
}

func TestOpen_DetectsAnyChangedByte(t *testing.T) {
	b := New(key(1), key(2))
	refused := func(changed string) {
		t.Helper()
		opened, err := b.Open(changed, place)
		require.Error(t, err, changed)
		require.Empty(t, opened)
		require.NotContains(t, err.Error(), secret[6:])
	}
	for _, more := range []string{"", "1", "12"} { // base64 that ends on a byte, and base64 with bits left over
		sealed := b.Seal(secret+more, place)
		for i := range len(sealed) {
			for mask := 1; mask < 256; mask++ {
				changed := []byte(sealed)
				changed[i] ^= byte(mask)
				refused(string(changed))
			}
			refused(sealed[:i])
			refused(sealed[:i] + sealed[i+1:])
			for _, more := range []string{"A", "=", "\n", "\r", ":", " "} {
				refused(sealed[:i] + more + sealed[i:])
			}
		}
		for _, behind := range []string{"=", "\n", "A", "AAAA"} {
			refused(sealed + behind)
		}
	}
}

func TestOpen_RejectsUnknownFormats(t *testing.T) {
	id := key(1).ID()
	for _, text := range []string{
		"", secret, "plain", "x1", "x1:", "x1:" + id, "x1:" + id + ":", "x1:" + id + ":AAAA", "x1::AAAA",
		"x2:" + id + ":AAAA",
		"x1:ABCDEF12:" + strings.Repeat("A", 56), "x1:gggggggg:" + strings.Repeat("A", 56),
		"x1:" + id + "00:" + strings.Repeat("A", 56), "x1:" + id + ":%%%%",
		"x1:" + id + ":" + strings.Repeat("A", 53), "X1:" + id + ":AAAA",
	} {
		for _, b := range []*Box{New(), New(key(1))} {
			_, err := b.Open(text, place)
			require.ErrorIs(t, err, ErrDamaged, "%q", text)
		}
		require.False(t, New().Current(text))
	}
}

func TestOpen_TriesAllKeysOfAnID(t *testing.T) {
	first, second := New(key(1)), New(key(2))
	second.keys[0].id = first.keys[0].id
	both := &Box{keys: []*keyCipher{first.keys[0], second.keys[0]}}
	for _, b := range []*Box{first, second} {
		opened, err := both.Open(b.Seal(secret, place), place)
		require.NoError(t, err)
		require.Equal(t, secret, opened)
	}
}

func TestBox_IsSafeForConcurrentUse(t *testing.T) {
	b := New(key(1), key(2))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if opened, err := b.Open(b.Seal(secret, place), place); err != nil || opened != secret {
					t.Errorf("%q: %v", opened, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestNew_PanicsForTheZeroKey(t *testing.T) {
	require.Panics(t, func() { New(Key{}) })
	require.Empty(t, Key{}.ID())
}

func FuzzOpen(f *testing.F) {
	b := New(key(1), key(2))
	for _, text := range []string{
		"", "plain:" + secret, "x1:" + key(1).ID() + ":AAAA",
		b.Seal("a", place), New(key(2)).Seal(secret, place), New(key(3)).Seal(secret, place),
		b.Seal(secret, "elsewhere"),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		opened, err := b.Open(text, place)
		current := b.Current(text)
		plain, isPlain := strings.CutPrefix(text, "plain:")
		switch {
		case isPlain:
			require.NoError(t, err)
			require.Equal(t, plain, opened)
			require.False(t, current)
		case err == nil:
			// What opens was sealed by us: its bytes are those of one proper text.
			require.True(t, strings.HasPrefix(text, "x1:"))
			raw, err := base64.RawStdEncoding.Strict().DecodeString(text[len("x1:")+9:])
			require.NoError(t, err)
			require.Equal(t, text[len("x1:")+9:], base64.RawStdEncoding.EncodeToString(raw))
			require.Len(t, opened, len(raw)-24-16)
		default:
			require.Empty(t, opened)
			if len(text) > 24 {
				require.NotContains(t, err.Error(), text)
			}
			require.NotContains(t, err.Error(), hex.EncodeToString(bytes.Repeat([]byte{1}, 32)))
		}
	})
}

func TestOpen_SaysThatASecretWasLeftOut(t *testing.T) {
	for _, b := range []*Box{New(), New(key(1))} {
		_, err := b.Open(Removed, "here")
		require.ErrorIs(t, err, ErrRemoved)
	}
}
