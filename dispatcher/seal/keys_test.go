package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// raw is a key whose base64 has the characters in which the two alphabets differ, and needs padding.
var raw = append([]byte{0xfb, 0xff, 0xbf, 0xfe}, bytes.Repeat([]byte{0x5a}, 28)...)

func TestParseKeys_AcceptsEveryForm(t *testing.T) {
	want := newKey(raw)
	for name, text := range map[string]string{
		"base64":                        base64.StdEncoding.EncodeToString(raw),
		"base64 without padding":        base64.RawStdEncoding.EncodeToString(raw),
		"base64 for URLs":               base64.URLEncoding.EncodeToString(raw),
		"base64 for URLs, no padding":   base64.RawURLEncoding.EncodeToString(raw),
		"hexadecimal digits":            hex.EncodeToString(raw),
		"hexadecimal digits, capitals":  strings.ToUpper(hex.EncodeToString(raw)),
		"with what a file's end leaves": base64.StdEncoding.EncodeToString(raw) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := ParseKeys(text)
			require.NoError(t, err)
			require.Equal(t, []Key{want}, keys)
			require.Equal(t, want.ID(), keys[0].ID())
		})
	}
}

func TestParseKeys_KeepsTheOrder(t *testing.T) {
	text := func(k Key) string { return base64.StdEncoding.EncodeToString((*k.bytes)[:]) }
	keys, err := ParseKeys(text(key(2)) + ", " + text(key(1)) + ",\n" + hex.EncodeToString(raw))
	require.NoError(t, err)
	require.Equal(t, []Key{key(2), key(1), newKey(raw)}, keys)

	none, err := ParseKeys("")
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestParseKeys_RejectsWithoutRepeatingTheKey(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(raw)
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	many := make([]string, MaxKeys+1)
	for i := range many {
		many[i] = hex.EncodeToString(bytes.Repeat([]byte{byte(i)}, 32))
	}
	for name, c := range map[string]struct{ text, says string }{
		"white space":      {"  ", "key 1 of 1: is empty"},
		"a comma behind":   {good + ",", "key 2 of 2: is empty"},
		"a comma in front": {"," + good, "key 1 of 2: is empty"},
		"a password":       {"correct horse battery staple", "must be base64 or"},
		"16 bytes":         {base64.StdEncoding.EncodeToString(raw[:16]), "must have 32 bytes, not 16"},
		"31 bytes":         {base64.RawStdEncoding.EncodeToString(raw[:31]), "must have 32 bytes, not 31"},
		"33 bytes": {base64.StdEncoding.EncodeToString(append([]byte{1}, raw...)), "must have 32 bytes, " +
			"not 33"},
		"63 digits":            {hex.EncodeToString(raw)[1:], "must be base64 or"},
		"64 other characters":  {strings.Repeat("z", 64), "must be hexadecimal digits"},
		"a line break in it":   {good[:20] + "\n" + good[20:], "must be base64 or"},
		"a line break for =":   {good[:20] + "\n" + good[20:43], "must be base64 or"},
		"bits of no meaning":   {strings.Repeat("A", 42) + "B", "must be base64 or"},
		"a secret":             {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "must have 32 bytes, not 28"},
		"the same twice":       {good + "," + other + "," + hex.EncodeToString(raw), "keys 1 and 3 are the same"},
		"too many":             {strings.Join(many, ","), "at most 16 keys, not 17"},
		"the second of two":    {good + "," + good[:40], "key 2 of 2: must have 32 bytes, not 30"},
		"too much padding":     {good + "=", "must be base64 or"},
		"quotes from a file":   {`"` + good + `"`, "must be base64 or"},
		"a very long text":     {strings.Repeat("A", 100_000), "must have 32 bytes, not 75000"},
		"padding in the front": {"=" + good[:43], "must be base64 or"},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := ParseKeys(c.text)
			require.ErrorContains(t, err, c.says)
			require.Empty(t, keys)
			require.Less(t, len(err.Error()), 300)
			for part := range strings.SplitSeq(c.text, ",") {
				if part = strings.TrimSpace(part); len(part) >= 16 {
					require.NotContains(t, err.Error(), part[:8])
					require.NotContains(t, err.Error(), part[len(part)-8:])
				}
			}
		})
	}
}

func TestKey_IDIsStableAndUnique(t *testing.T) {
	require.Equal(t, "beb62d10", newKey(raw).ID()) // stored texts name it
	require.NotEqual(t, key(1).ID(), key(2).ID())
	require.Len(t, key(1).ID(), 8)
}

func TestKey_IsNeverPrinted(t *testing.T) {
	type hidden struct{ k Key } // fmt cannot ask the fields of such a struct
	type open struct {
		K    Key
		List []Key
	}
	k := newKey(raw)
	box := New(k)
	var shown strings.Builder
	for _, value := range []any{k, &k, hidden{k}, &hidden{k}, []Key{k}, open{k, []Key{k}}, box, *box} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&shown, verb+"\n", value)
		}
		out, err := json.Marshal(value)
		require.NoError(t, err)
		shown.Write(out)
		slog.New(slog.NewTextHandler(&shown, nil)).Info("a key", "key", value)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("a key", "key", value)
	}
	require.Contains(t, shown.String(), "[redacted]")
	require.Equal(t, "[redacted]", k.String())
	require.Equal(t, "[redacted]", k.LogValue().String())
	text, err := k.MarshalText()
	require.NoError(t, err)
	require.Equal(t, "[redacted]", string(text))
	require.Equal(t, "[redacted] [redacted] [redacted]", fmt.Sprintf("%v %d %t", k, k, k))
	for _, verb := range []string{"%x", "%X", "%d", "%v", "%s", "%q"} {
		require.NotContains(t, shown.String(), strings.Trim(fmt.Sprintf(verb, raw[8:16]), "[]"))
	}
	require.NotContains(t, shown.String(), base64.RawStdEncoding.EncodeToString(raw)[:10])
}

func FuzzParseKeys(f *testing.F) {
	for _, text := range []string{
		"", ",", " ", hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw),
		base64.RawURLEncoding.EncodeToString(raw),
		hex.EncodeToString(raw) + ", " + strings.Repeat("A", 43), strings.Repeat("z", 64),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys(text)
		if err != nil {
			require.Empty(t, keys)
			return
		}
		for i, k := range keys {
			again, err := ParseKeys(hex.EncodeToString((*k.bytes)[:]))
			require.NoError(t, err)
			require.Equal(t, keys[i:i+1], again)
		}
		b := New(keys...)
		opened, err := b.Open(b.Seal(text, place), place)
		require.NoError(t, err)
		require.Equal(t, text, opened)
	})
}
