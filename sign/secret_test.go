package sign

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parsed(t testing.TB, text string) Secret {
	t.Helper()
	s, err := ParseSecret(text)
	require.NoError(t, err)
	return s
}

// shared returns a whsec_ text of n bytes.
func shared(n int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, n))
}

func TestNewSecret_ParsesAsItself(t *testing.T) {
	for name, s := range map[string]Secret{"secret": NewSecret(), "key": NewKey()} {
		t.Run(name, func(t *testing.T) {
			again := parsed(t, s.Text())
			require.Equal(t, s, again)
			require.Equal(t, s.Text(), again.Text())
			require.Equal(t, s.ID(), again.ID())
			require.Equal(t, name == "key", s.Asymmetric())
			require.False(t, s.IsZero())
		})
	}
	for _, fresh := range []func() Secret{NewSecret, NewKey} {
		first, second := fresh(), fresh()
		require.NotEqual(t, first.Text(), second.Text())
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(NewSecret().Text(), "whsec_"))
	require.NoError(t, err)
	require.Len(t, key, 32)
}

func TestParseSecret_AcceptsEveryForm(t *testing.T) {
	whole := vectors[2].secret
	seed := "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc="
	cases := map[string]struct{ text, kept string }{
		"24 bytes":               {shared(24), shared(24)},
		"64 bytes":               {shared(64), shared(64)},
		"without its padding":    {strings.TrimRight(shared(32), "="), shared(32)},
		"two signs missing":      {strings.TrimRight(shared(25), "="), shared(25)},
		"a key of 64 bytes":      {whole, whole},
		"a key without padding":  {strings.TrimRight(whole, "="), whole},
		"a key as its seed":      {seed, seed},
		"a seed without padding": {strings.TrimRight(seed, "="), seed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.kept, parsed(t, c.text).Text()) })
	}
	require.Equal(t, parsed(t, whole).ID(), parsed(t, seed).ID())
	require.Equal(t, vectors[2].public, parsed(t, whole).PublicKey())
	require.Equal(t, vectors[2].public, parsed(t, seed).PublicKey())
	require.Empty(t, parsed(t, shared(24)).PublicKey())
}

func TestParseSecret_RejectsWithoutRepeatingTheText(t *testing.T) {
	halves := NewKey().Text()
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(halves, "whsk_"))
	require.NoError(t, err)
	raw[ed25519.PrivateKeySize-1] ^= 1
	cases := map[string]struct{ text, says string }{
		"nothing":                     {"", "empty"},
		"no prefix":                   {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "must begin with"},
		"another prefix":              {"hwsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "must begin with"},
		"the prefix in capitals":      {"WHSEC_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "must begin with"},
		"the prefix alone":            {"whsec_", "24 to 64 bytes"},
		"18 bytes":                    {shortSecret, "this one has 18"},
		"23 bytes":                    {shared(23), "this one has 23"},
		"65 bytes":                    {shared(65), "this one has 65"},
		"a great many bytes":          {shared(9000), "at most 128 characters"},
		"no base64":                   {"whsec_%%%%9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "must be base64"},
		"base64 for URLs":             {"whsec_C2FVsBQIhrscChlQIMV-b5sSYspob7o_", "must be base64"},
		"a space in front":            {" " + shared(32), "must begin with"},
		"a space behind":              {shared(32) + " ", "must be base64"},
		"a line break behind":         {shared(32) + "\n", "must be base64"},
		"a line break within":         {"whsec_C2FVsBQIhrscChlQ\nIMV+b5sSYspob7oD", "must be base64"},
		"too much padding":            {shared(24) + "====", "must be base64"},
		"padding in front":            {"whsec_==" + strings.Repeat("A", 38), "must be base64"},
		"half of the padding":         {strings.TrimSuffix(shared(25), "="), "must be base64"},
		"bits that mean nothing":      {"whsec_" + strings.Repeat("A", 42) + "B=", "must be base64"},
		"a public key":                {vectors[2].public, "use its whsk_ key"},
		"a key of 63 bytes":           {"whsk_" + base64.StdEncoding.EncodeToString(raw[:63]), "this one has 63"},
		"a key of 24 bytes":           {"whsk_" + base64.StdEncoding.EncodeToString(raw[:24]), "this one has 24"},
		"halves of two different key": {"whsk_" + base64.StdEncoding.EncodeToString(raw), "does not match its seed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := ParseSecret(c.text)
			require.ErrorContains(t, err, c.says)
			require.True(t, s.IsZero())
			requireNothingOf(t, c.text, err.Error())
		})
	}
}

// requireNothingOf fails when shown contains eight consecutive characters of the secret part of text.
func requireNothingOf(t testing.TB, text, shown string) {
	t.Helper()
	_, after, ok := strings.Cut(text, "_")
	if ok {
		text = after
	}
	for i := 0; i+8 <= len(text); i++ {
		require.NotContains(t, shown, text[i:i+8])
	}
}

func TestSecret_IDIsUniqueAndRevealsNothing(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	require.Len(t, a.ID(), 16)
	require.NotEqual(t, a.ID(), b.ID())
	require.NotContains(t, a.Text(), a.ID())
	// Frozen: ids are kept where secrets are.
	require.Equal(t, "4bbb840d2fcb1d6a", parsed(t, vectors[0].secret).ID())
	require.Equal(t, "4aae3352d8426d13", parsed(t, vectors[2].secret).ID())
}

func TestSecret_ZeroIsInvalid(t *testing.T) {
	var s Secret
	require.True(t, s.IsZero())
	require.Empty(t, s.Text())
	require.Empty(t, s.ID())
	require.Empty(t, s.PublicKey())
	require.False(t, s.Asymmetric())
	require.Equal(t, "[redacted]", s.String())
}

func TestSecret_IsNeverPrinted(t *testing.T) {
	type hidden struct{ s Secret } // fmt cannot ask the fields of such a struct
	type open struct {
		S    Secret
		P    *Secret
		List []Secret
		Map  map[string]Secret
	}
	for name, s := range map[string]Secret{"secret": NewSecret(), "key": NewKey()} {
		t.Run(name, func(t *testing.T) {
			signer, err := NewSigner(s)
			require.NoError(t, err)
			signer.Sign("msg_1", vectors[0].at(), nil)
			verifier, err := NewVerifier(s.Text())
			require.NoError(t, err)
			all := open{S: s, P: &s, List: []Secret{s}, Map: map[string]Secret{"a": s}}

			var shown strings.Builder
			for _, value := range []any{s, &s, hidden{s}, &hidden{s}, all, &all, signer, verifier, *verifier} {
				for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
					fmt.Fprintf(&shown, verb+"\n", value)
				}
			}
			for _, value := range []any{s, &s, hidden{s}, all, signer, verifier} {
				out, err := json.Marshal(value)
				require.NoError(t, err)
				shown.Write(out)
				for _, h := range []slog.Handler{slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil)} {
					slog.New(h).Info("a secret", "secret", value)
				}
			}
			out, err := xml.Marshal(s)
			require.NoError(t, err)
			shown.Write(out)

			require.Contains(t, shown.String(), "[redacted]")
			require.NotContains(t, shown.String(), s.Text())
			key := bytes.Clone(s.material.open().shared)
			if key == nil {
				key = s.material.open().private[:ed25519.SeedSize]
			}
			encoded := strings.TrimRight(base64.StdEncoding.EncodeToString(key), "=")
			requireNothingOf(t, "_"+encoded, shown.String())
			for _, verb := range []string{"%x", "%X", "%d", "%v"} {
				require.NotContains(t, shown.String(), strings.Trim(fmt.Sprintf(verb, key[:8]), "[]"))
			}
		})
	}
}

func TestSecret_PrintsAsRedacted(t *testing.T) {
	s := NewSecret()
	require.Equal(t, "[redacted]", s.String())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
		require.Equal(t, "[redacted]", fmt.Sprintf(verb, s))
	}
	require.Equal(t, "[redacted]", s.LogValue().String())
	text, err := s.MarshalText()
	require.NoError(t, err)
	require.Equal(t, "[redacted]", string(text))
	out, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `"[redacted]"`, string(out))
	out, err = json.Marshal(map[Secret]any{s: s})
	require.NoError(t, err)
	require.JSONEq(t, `{"[redacted]":"[redacted]"}`, string(out))
}
