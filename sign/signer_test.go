package sign

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newSigner(t testing.TB, secrets ...Secret) *Signer {
	t.Helper()
	s, err := NewSigner(secrets...)
	require.NoError(t, err)
	return s
}

func TestSign_MatchesPublishedVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			s := newSigner(t, parsed(t, v.secret))
			require.Equal(t, v.signature, s.Sign(v.id, v.at(), []byte(v.body)))
			// A reused signer returns the same, and a fraction of a second changes nothing.
			later := v.at().Add(time.Hour)
			fresh := newSigner(t, parsed(t, v.secret)).Sign("msg_2", later, []byte("another"))
			require.Equal(t, fresh, s.Sign("msg_2", later, []byte("another")))
			require.Equal(t, v.signature, s.Sign(v.id, v.at().Add(999*time.Millisecond), []byte(v.body)))
		})
	}
}

func TestSigner_SignsWithEverySecretInOrder(t *testing.T) {
	var secrets []Secret
	var want []string
	for _, i := range []int{2, 0, 1} { // all of the same request
		secrets = append(secrets, parsed(t, vectors[i].secret))
		want = append(want, vectors[i].signature)
	}
	v := vectors[0]
	require.Equal(t, strings.Join(want, " "), newSigner(t, secrets...).Sign(v.id, v.at(), []byte(v.body)))
}

func TestSigner_SignsTheBytesUnchanged(t *testing.T) {
	s := newSigner(t, NewSecret(), NewKey())
	at := time.Unix(1_700_000_000, 0)
	bodies := []string{"", "\x00", "\xff\xfe", "{}", "{} ", "{}\n", "{}\r\n", "\ufeff{}"}
	seen := make(map[string]string)
	for _, body := range bodies {
		signature := s.Sign("msg_1", at, []byte(body))
		require.NotContains(t, seen, signature, "%q and %q are signed alike", body, seen[signature])
		seen[signature] = body
	}
	require.Equal(t, s.Sign("msg_1", at, nil), s.Sign("msg_1", at, []byte{}))
}

func TestSigner_SignsNothingWithoutSecrets(t *testing.T) {
	require.Empty(t, newSigner(t).Sign("msg_1", time.Unix(1, 0), []byte("a")))
	var none *Signer
	require.Empty(t, none.Sign("msg_1", time.Unix(1, 0), []byte("a")))
}

func TestNewSigner_RejectsTooManySecrets(t *testing.T) {
	_, err := NewSigner(NewSecret(), Secret{})
	require.ErrorContains(t, err, "secret 2 of 2 is the zero Secret")
	many := make([]Secret, MaxSignatures+1)
	for i := range many {
		many[i] = NewSecret()
	}
	_, err = NewSigner(many...)
	require.ErrorContains(t, err, "at most 16 secrets")

	// The last of the most that may be is still looked at, also when all have the longest signatures.
	for i := range many {
		many[i] = NewKey()
	}
	signature := newSigner(t, many[:MaxSignatures]...).Sign("msg_1", time.Unix(1_700_000_000, 0), nil)
	v, err := NewVerifier(many[MaxSignatures-1].PublicKey())
	require.NoError(t, err)
	require.NoError(t, v.Verify(headers("msg_1", 1_700_000_000, signature), nil, time.Unix(1_700_000_000, 0)))
}

func TestSigner_KeepsNoHugeBuffer(t *testing.T) {
	s := newSigner(t, NewKey())
	s.Sign("msg_1", time.Unix(1, 0), make([]byte, 1<<20))
	b, ok := s.pool.Get().(*signState)
	if !ok { // the race detector makes a pool forget at random
		t.Log("the pool has forgotten")
		return
	}
	require.LessOrEqual(t, cap(b.message), maxKeptBuffer)
}

func TestSigner_IsSafeForConcurrentUse(t *testing.T) {
	secrets := []Secret{NewSecret(), NewKey(), NewSecret()}
	s := newSigner(t, secrets...)
	v, err := NewVerifier(secrets[0].Text(), secrets[1].PublicKey())
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				body := []byte(strings.Repeat("x", g*100+i))
				at := time.Unix(1_700_000_000+int64(i), 0)
				signature := s.Sign("msg_1", at, body)
				if err := v.Verify(headers("msg_1", at.Unix(), signature), body, at); err != nil {
					t.Errorf("body of %d bytes: %v", len(body), err)
				}
			}
		})
	}
	wg.Wait()
}

// The state is tested instead of the Signer, because the race detector makes a sync.Pool drop items at random.
func TestSigner_AllocatesOnlyTheResult(t *testing.T) {
	body := make([]byte, 1024)
	for _, n := range []int{1, 3} {
		secrets := make([]Secret, n)
		for i := range secrets {
			secrets[i] = NewSecret()
		}
		b := newSigner(t, secrets...).newState()
		allocs := testing.AllocsPerRun(200, func() { b.value(secrets, "0123456789abcdefghijk", 1_700_000_000, body) })
		require.LessOrEqual(t, allocs, 1.0, "%d secrets", n)
	}
}
