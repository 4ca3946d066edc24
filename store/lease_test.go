package store_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// someLeases are leases with each field at its bounds.
func someLeases() []store.ClientLease {
	short := store.ClientLease{
		ID: "a", Queue: job.Queue{Namespace: "shop", Topic: "b", Lane: "c"}, Token: store.NewToken(),
		LeasedAt: time.UnixMilli(0).UTC(),
	}
	long := store.ClientLease{
		ID:    "rb:" + strings.Repeat("i", 93),
		Queue: job.Queue{Namespace: "shop", Topic: strings.Repeat("t", 64), Lane: strings.Repeat("l", 128)},
		Token: store.NewToken(), LeasedAt: time.Date(2100, 1, 1, 0, 0, 0, 1e6, time.UTC), Age: 1e6 * time.Hour,
		Late: 1e6 * time.Hour, Expires: true, ExpiresIn: 1e6 * time.Hour, Attempts: 1 << 29, FailedAttempts: 1 << 29,
		OwnCallbacks: true, Probe: true,
		OwnRetries: true, Retries: 1000, Rung: policy.MaxRung, Trace: strings.Repeat("0", store.MaxLeaseTrace),
	}
	return []store.ClientLease{short, long}
}

func TestClientLease_IsReadAsItWasWritten(t *testing.T) {
	for _, l := range someLeases() {
		got, err := store.ParseClientLease("shop", l.String())
		require.NoError(t, err)
		require.Equal(t, l, got)
		require.Less(t, len(l.String()), 1024)
		got, err = store.ParseClientLease("other", l.String())
		require.NoError(t, err)
		require.Equal(t, job.Ref{Namespace: "other", ID: l.ID}, got.Ref(), "the namespace is that of the client")
	}
}

func TestClientLease_RefusesOtherTexts(t *testing.T) {
	for _, l := range someLeases() {
		text := l.String()
		b, err := base64.RawURLEncoding.DecodeString(text)
		require.NoError(t, err)
		for i := range b {
			parsed, err := store.ParseClientLease("shop", base64.RawURLEncoding.EncodeToString(b[:i]))
			require.ErrorIs(t, err, store.ErrLeaseText, "%d bytes", i)
			require.Equal(t, store.ClientLease{}, parsed)
		}
		for _, other := range []string{text + "=", text + "A", " " + text, "\n" +
			text, base64.RawURLEncoding.EncodeToString(append(b, 0)), strings.Repeat("A", 4000)} {
			_, err := store.ParseClientLease("shop", other)
			require.ErrorIs(t, err, store.ErrLeaseText)
		}
	}
}

func TestClientLease_IsSignedAsAWholeForItsNamespace(t *testing.T) {
	key := store.LeaseKey{1}
	for _, l := range someLeases() {
		require.False(t, l.IsSigned(key))
		l.Sign(key)
		require.True(t, l.IsSigned(key))
		require.False(t, l.IsSigned(store.LeaseKey{2}))
		other := l
		other.Queue.Namespace = "other"
		require.False(t, other.IsSigned(key))

		b, err := base64.RawURLEncoding.DecodeString(l.String())
		require.NoError(t, err)
		for i := range b {
			for bit := range 8 {
				changed := bytes.Clone(b)
				changed[i] ^= 1 << bit
				got, err := store.ParseClientLease("shop", base64.RawURLEncoding.EncodeToString(changed))
				require.True(t, err != nil || !got.IsSigned(key), "byte %d, bit %d", i, bit)
			}
		}
	}
}

func FuzzParseClientLease(f *testing.F) {
	for _, l := range someLeases() {
		f.Add(l.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := store.ParseClientLease("shop", text)
		if err == nil {
			require.Equal(t, text, l.String())
			require.True(t, job.IsID(l.ID) && job.IsTopic(l.Queue.Topic) && job.IsLane(l.Queue.Lane))
		}
	})
}
