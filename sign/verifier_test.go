package sign

import (
	"encoding/base64"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newVerifier(t testing.TB, keys ...string) *Verifier {
	t.Helper()
	v, err := NewVerifier(keys...)
	require.NoError(t, err)
	return v
}

func TestVerify_AcceptsOtherImplementations(t *testing.T) {
	for _, known := range vectors {
		t.Run(known.name, func(t *testing.T) {
			for _, key := range []string{known.secret, known.public} {
				if key == "" {
					continue
				}
				v := newVerifier(t, key)
				require.NoError(t, v.Verify(known.header(), []byte(known.body), known.at()))
				require.ErrorIs(t, v.Verify(known.header(), []byte(known.body+" "), known.at()), ErrSignature)
			}
		})
	}
}

func TestNewVerifier_RejectsWithoutRepeatingTheKey(t *testing.T) {
	good := NewSecret().Text()
	cases := map[string]struct {
		keys []string
		says string
	}{
		"no keys":                {nil, "requires at least one"},
		"an empty key":           {[]string{good, ""}, "key 2 of 2: the secret is empty"},
		"too short":              {[]string{shortSecret}, "key 1 of 1: a whsec_ secret must have 24 to 64 bytes"},
		"a public key too short": {[]string{"whpk_" + strings.Repeat("A", 40)}, "a whpk_ key must have 32 bytes"},
		"too many":               {strings.Split(strings.Repeat(good+" ", MaxSignatures)+good, " "), "at most 16 keys"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewVerifier(c.keys...)
			require.ErrorContains(t, err, c.says)
			for _, key := range c.keys {
				requireNothingOf(t, key, err.Error())
			}
		})
	}
}

func TestVerify_AcceptsBothKeysDuringARotation(t *testing.T) {
	at, body := time.Unix(1_700_000_000, 0), []byte(`{"order":4711}`)
	first, second, third := NewSecret(), NewKey(), NewSecret()
	sign := func(secrets ...Secret) http.Header {
		return headers("msg_1", at.Unix(), newSigner(t, secrets...).Sign("msg_1", at, body))
	}
	cases := map[string]struct {
		header http.Header
		keys   []string
		want   error
	}{
		"one and the same":                        {sign(first), []string{first.Text()}, nil},
		"the new one signs too, the old verifies": {sign(second, first), []string{first.Text()}, nil},
		"the new one signs too, the new verifies": {sign(second, first), []string{second.PublicKey()}, nil},
		"the receiver has both":                   {sign(second), []string{first.Text(), second.PublicKey()}, nil},
		"the receiver has both, and both sign": {
			sign(second, first),
			[]string{first.Text(), second.PublicKey()},
			nil,
		},
		"the last of three":                        {sign(first, second, third), []string{third.Text()}, nil},
		"the old one is gone":                      {sign(second), []string{first.Text()}, ErrSignature},
		"the new one is not known":                 {sign(second), []string{first.Text(), third.Text()}, ErrSignature},
		"another of the same kind":                 {sign(NewKey()), []string{second.PublicKey()}, ErrSignature},
		"a private key verifies as well":           {sign(second), []string{second.Text()}, nil},
		"a secret does not verify as another kind": {sign(first), []string{second.PublicKey()}, ErrSignature},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, newVerifier(t, c.keys...).Verify(c.header, body, at), c.want)
		})
	}
}

func TestVerify_AppliesTheToleranceToTheSecond(t *testing.T) {
	s := NewSecret()
	signer := newSigner(t, s)
	now := time.Unix(1_700_000_000, 0)
	cases := []struct {
		tolerance time.Duration
		ahead     int64 // of now, in seconds
		want      error
	}{
		{0, 0, nil},
		{0, -300, nil},
		{0, -301, ErrTooOld},
		{0, 300, nil},
		{0, 301, ErrTooNew},
		{0, -1_700_000_000, ErrTooOld},
		{0, 900_000_000_000, ErrTooNew},
		{-time.Second, 300, nil},
		{-time.Second, 301, ErrTooNew},
		{10 * time.Second, -10, nil},
		{10 * time.Second, -11, ErrTooOld},
		{10 * time.Second, 10, nil},
		{10 * time.Second, 11, ErrTooNew},
		{10*time.Second + 999*time.Millisecond, 11, ErrTooNew},
		{time.Millisecond, 0, nil},
		{time.Millisecond, 1, ErrTooNew},
	}
	for _, c := range cases {
		t.Run(c.tolerance.String()+" "+strconv.FormatInt(c.ahead, 10), func(t *testing.T) {
			v := newVerifier(t, s.Text())
			v.Tolerance = c.tolerance
			at := now.Add(time.Duration(c.ahead) * time.Second)
			if c.ahead > 1e9 {
				at = time.Unix(now.Unix()+c.ahead, 0)
			}
			header := headers("msg_1", at.Unix(), signer.Sign("msg_1", at, nil))
			// The receiver's clock is read in seconds: a fraction of a second does not matter.
			for _, part := range []time.Duration{0, time.Second - 1} {
				err := v.Verify(header, nil, now.Add(part))
				require.ErrorIs(t, err, c.want)
				if c.want != nil {
					require.ErrorIs(t, err, ErrTimestamp)
				}
			}
		})
	}
}

func TestVerify_DetectsAnyChangedByte(t *testing.T) {
	for name, s := range map[string]Secret{"secret": NewSecret(), "key": NewKey()} {
		t.Run(name, func(t *testing.T) {
			v := newVerifier(t, s.Text())
			at := time.Unix(1_700_000_000, 0)
			body := `{"order":4711}`
			parts := [4]string{"msg_1", "1700000000", newSigner(t, s).Sign("msg_1", at, []byte(body)), body}
			verify := func(p [4]string) error {
				return v.Verify(http.Header{HeaderID: {p[0]}, HeaderTimestamp: {p[1]}, HeaderSignature: {p[2]}},
					[]byte(p[3]), at)
			}
			require.NoError(t, verify(parts))
			for which, part := range parts {
				for i := range len(part) {
					for _, mask := range []byte{1, 2, 4, 8, 16, 32, 64, 128} {
						changed := parts
						b := []byte(part)
						b[i] ^= mask
						changed[which] = string(b)
						require.Error(t, verify(changed), "part %d, byte %d, mask %x", which, i, mask)
					}
					changed := parts
					changed[which] = part[:i] + part[i+1:]
					require.Error(t, verify(changed), "part %d without byte %d", which, i)
					changed[which] = part[:i] + "0" + part[i:]
					require.Error(t, verify(changed), "part %d with another byte at %d", which, i)
				}
			}
		})
	}
}

func TestVerify_RejectsAnIDWithAFullStop(t *testing.T) {
	s := NewSecret()
	v := newVerifier(t, s.Text())
	at := time.Unix(1_700_000_000, 0)
	// With a full stop in an id, the author of a body could choose another time and body.
	signature := newSigner(t, s).Sign("msg_1", at, []byte("1700000001.{}"))
	require.NoError(t, v.Verify(headers("msg_1", 1_700_000_000, signature), []byte("1700000001.{}"), at))
	header := headers("msg_1.1700000000", 1_700_000_001, signature)
	require.ErrorIs(t, v.Verify(header, []byte("{}"), at), ErrMissing)
}

func TestVerify_RejectsMalformedHeaders(t *testing.T) {
	at, body := time.Unix(1_700_000_000, 0), []byte("{}")
	s := NewSecret()
	v := newVerifier(t, s.Text())
	good := newSigner(t, s).Sign("msg_1", at, body)
	long := strings.Repeat("a", 257)
	cases := map[string]struct {
		change http.Header
		want   error
	}{
		"no id":                    {http.Header{HeaderID: nil}, ErrMissing},
		"an empty id":              {http.Header{HeaderID: {""}}, ErrMissing},
		"two ids":                  {http.Header{HeaderID: {"msg_1", "msg_1"}}, ErrMissing},
		"a long id":                {http.Header{HeaderID: {long}}, ErrMissing},
		"no timestamp":             {http.Header{HeaderTimestamp: nil}, ErrMissing},
		"an empty timestamp":       {http.Header{HeaderTimestamp: {""}}, ErrMissing},
		"two timestamps":           {http.Header{HeaderTimestamp: {"1700000000", "1700000000"}}, ErrMissing},
		"a timestamp in words":     {http.Header{HeaderTimestamp: {"now"}}, ErrTimestamp},
		"a timestamp with a sign":  {http.Header{HeaderTimestamp: {"+1700000000"}}, ErrTimestamp},
		"a negative timestamp":     {http.Header{HeaderTimestamp: {"-1700000000"}}, ErrTimestamp},
		"a timestamp with a part":  {http.Header{HeaderTimestamp: {"1700000000.0"}}, ErrTimestamp},
		"a timestamp with a space": {http.Header{HeaderTimestamp: {"1700000000 "}}, ErrTimestamp},
		"a timestamp in hex":       {http.Header{HeaderTimestamp: {"0x6553f100"}}, ErrTimestamp},
		"a timestamp in ms":        {http.Header{HeaderTimestamp: {"1700000000000"}}, ErrTimestamp},
		"an overflowing timestamp": {http.Header{HeaderTimestamp: {strings.Repeat("9", 30)}}, ErrTimestamp},
		"a date":                   {http.Header{HeaderTimestamp: {"2023-11-14T22:13:20Z"}}, ErrTimestamp},
		"another form of the time": {http.Header{HeaderTimestamp: {"01700000000"}}, ErrSignature},
		"no signature":             {http.Header{HeaderSignature: nil}, ErrMissing},
		"an empty signature":       {http.Header{HeaderSignature: {""}}, ErrMissing},
		"spaces for a signature":   {http.Header{HeaderSignature: {"   "}}, ErrMissing},
		"half of a signature":      {http.Header{HeaderSignature: {good[:20]}}, ErrSignature},
		"the version alone":        {http.Header{HeaderSignature: {"v1,"}}, ErrSignature},
		"no version":               {http.Header{HeaderSignature: {good[3:]}}, ErrSignature},
		"another version":          {http.Header{HeaderSignature: {"v2" + good[2:]}}, ErrSignature},
		"the version in capitals":  {http.Header{HeaderSignature: {"V1" + good[2:]}}, ErrSignature},
		"the other kind's version": {http.Header{HeaderSignature: {"v1a" + good[2:]}}, ErrSignature},
		"divided by commas":        {http.Header{HeaderSignature: {"v1,AAAA," + good}}, ErrSignature},
		"without its padding":      {http.Header{HeaderSignature: {strings.TrimRight(good, "=")}}, ErrSignature},
		"with a line break":        {http.Header{HeaderSignature: {good[:9] + "\n" + good[9:]}}, ErrSignature},
		"a signature of other ones": {http.Header{HeaderSignature: {"v1," +
			base64.StdEncoding.EncodeToString(make([]byte, 32))}}, ErrSignature},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			header := headers("msg_1", at.Unix(), good)
			require.NoError(t, v.Verify(header, body, at))
			maps.Copy(header, c.change)
			err := v.Verify(header, body, at)
			require.ErrorIs(t, err, c.want)
			requireNothingOf(t, s.Text(), err.Error())
		})
	}
	require.ErrorIs(t, v.Verify(nil, body, at), ErrMissing)
}

func TestVerify_FindsHeadersInAnyCaseAndOnSeveralLines(t *testing.T) {
	at, body := time.Unix(1_700_000_000, 0), []byte("{}")
	s := NewSecret()
	v := newVerifier(t, s.Text())
	good := newSigner(t, s).Sign("msg_1", at, body)
	other := "v1," + base64.StdEncoding.EncodeToString(make([]byte, 32))
	for name, header := range map[string]http.Header{
		"lower case": {
			"webhook-id": {"msg_1"}, "webhook-timestamp": {"1700000000"}, "webhook-signature": {good},
		},
		"upper case": {
			"WEBHOOK-ID": {"msg_1"}, "WEBHOOK-TIMESTAMP": {"1700000000"}, "WEBHOOK-SIGNATURE": {good},
		},
		"several lines": {HeaderID: {"msg_1"}, HeaderTimestamp: {"1700000000"}, HeaderSignature: {other, good}},
		"several on a line": {HeaderID: {"msg_1"}, HeaderTimestamp: {"1700000000"}, HeaderSignature: {other +
			" v9,x " + good + " " + other}},
		"spaces all over": {HeaderID: {"msg_1"}, HeaderTimestamp: {"1700000000"}, HeaderSignature: {"  " + other +
			"   " + good + " "}},
		"lines in several case": {
			HeaderID: {"msg_1"}, HeaderTimestamp: {"1700000000"}, "webhook-signature": {other},
			"WEBHOOK-SIGNATURE": {good},
		},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, v.Verify(header, body, at)) })
	}
	require.ErrorIs(t, v.Verify(http.Header{
		"Svix-Id": {"msg_1"}, "Svix-Timestamp": {"1700000000"}, "Svix-Signature": {good},
	}, body, at), ErrMissing)
	require.ErrorIs(t, v.Verify(http.Header{
		"webhook-id": {"msg_1"}, "WEBHOOK-ID": {"msg_2"}, HeaderTimestamp: {"1700000000"}, HeaderSignature: {good},
	}, body, at), ErrMissing)
}

func TestVerify_BoundsTheSignatures(t *testing.T) {
	at, body := time.Unix(1_700_000_000, 0), []byte("{}")
	s := NewSecret()
	v := newVerifier(t, s.Text())
	good := newSigner(t, s).Sign("msg_1", at, body)
	verify := func(values ...string) error {
		return v.Verify(http.Header{HeaderID: {"msg_1"}, HeaderTimestamp: {"1700000000"}, HeaderSignature: values},
			body, at)
	}
	require.NoError(t, verify(strings.Repeat("v1,x ", MaxSignatures-1)+good))
	require.ErrorIs(t, verify(strings.Repeat("v1,x ", MaxSignatures)+good), ErrSignature)
	require.NoError(t, verify(strings.Repeat(" ", maxSignatureHeader-len(good))+good))
	require.ErrorIs(t, verify(strings.Repeat(" ", maxSignatureHeader-len(good)+1)+good), ErrSignature)
	require.NoError(t, verify(strings.Repeat("x", maxSignatureHeader-len(good)), good))
	require.ErrorIs(t, verify(strings.Repeat("x", maxSignatureHeader-len(good)+1), good), ErrSignature)
	require.ErrorIs(t, verify(strings.Repeat("x", 1<<20), good), ErrSignature)
	require.ErrorIs(t, verify(strings.Repeat(" ", maxSignatureHeader-len(good)+1), good), ErrSignature)
}
