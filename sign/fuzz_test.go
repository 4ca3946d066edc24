package sign

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func FuzzParseSecret(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.secret)
		f.Add(v.public)
		f.Add(strings.TrimRight(v.secret, "="))
	}
	for _, text := range []string{"", "whsec_", "whsk_", "whpk_", shortSecret, shared(64), shared(65), "whsec_\n" +
		shared(24)[6:], "whsk_%"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSecret(text)
		if err != nil {
			require.True(t, s.IsZero())
			if _, secret, ok := strings.Cut(text, "_"); ok && len(secret) >= 24 {
				require.NotContains(t, err.Error(), secret)
			}
			return
		}
		again, err := ParseSecret(s.Text())
		require.NoError(t, err)
		require.Equal(t, s, again)
		require.Equal(t, text, s.Text()[:len(text)], "what is kept is what was given, and padding")
		require.Empty(t, strings.Trim(s.Text()[len(text):], "="))

		at := time.Unix(1_700_000_000, 0)
		key := s.PublicKey()
		if !s.Asymmetric() {
			key = s.Text()
		}
		v, err := NewVerifier(key)
		require.NoError(t, err)
		require.NoError(t, v.Verify(headers("a", at.Unix(), newSigner(t, s).Sign("a", at, nil)), nil, at))
	})
}

func FuzzVerify(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.id, strconv.FormatInt(v.timestamp, 10), v.signature, []byte(v.body))
		f.Add(v.id, strconv.FormatInt(v.timestamp, 10), "v1,x "+v.signature+" v1a,", []byte(v.body))
	}
	f.Add("", "", "", []byte(nil))
	f.Add("a.b", "+1", "v1,v1, v1a", []byte("\x00"))
	f.Add("a", strings.Repeat("9", 20), strings.Repeat(" ", 9000), []byte{})

	var secrets []Secret
	var keys []string
	for _, v := range vectors {
		secrets = append(secrets, parsed(f, v.secret))
		keys = append(keys, v.secret)
	}
	signer, verifier := newSigner(f, secrets...), newVerifier(f, keys...)
	f.Fuzz(func(t *testing.T, id, timestamp, signature string, body []byte) {
		header := http.Header{HeaderID: {id}, HeaderTimestamp: {timestamp}, HeaderSignature: {signature}}
		now := time.Unix(1_614_265_330, 0)
		if verifier.Verify(header, body, now) != nil {
			return
		}
		seconds, err := strconv.ParseInt(timestamp, 10, 64)
		require.NoError(t, err)
		require.InDelta(t, now.Unix(), seconds, 300)
		made := strings.Fields(signer.Sign(id, time.Unix(seconds, 0), body))
		require.True(t, slices.ContainsFunc(strings.Split(signature, " "), func(s string) bool {
			return slices.Contains(made, s)
		}), "accepted what was not signed")
	})
}
