package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestDecodeNewJob_ReturnsWhatWasAppended(t *testing.T) {
	full := store.NewJob{
		New: job.New{
			Spec: job.Spec{
				ID: "a", Queue: job.Queue{Namespace: "n", Topic: "t", Lane: "shop.example:443"},
				URL: "https://shop.example/hooks", Method: "PUT", Header: map[string][]string{"X-A": {"b"}},
				ContentType: "text/plain", BodyKind: job.BodyText,
				Body: []byte("hello"), Labels: map[string]string{"k": "v"}, Terms: policy.Terms{Timeout: time.Second},
			},
			Delay: time.Minute, ExpiresIn: time.Hour,
		},
		Fingerprint: []byte{1, 2}, MaxAge: 90 * time.Millisecond,
	}
	for _, n := range []store.NewJob{full, {New: job.New{Spec: job.Spec{ID: "b", Method: "POST"}}}} {
		decoded, err := store.DecodeNewJob(store.AppendNewJob(nil, &n))
		require.NoError(t, err)
		require.Equal(t, n, decoded)
	}
}

func TestDecodeNewJob_RefusesWhatItDoesNotKnow(t *testing.T) {
	for name, b := range map[string][]byte{
		"a job":   {1},
		"max age": codec.AppendField(nil, codec.FirstOwnTag+1, []byte{0x80}),
		"a tag":   codec.AppendField(nil, codec.FirstOwnTag+2, nil),
	} {
		_, err := store.DecodeNewJob(b)
		require.ErrorIs(t, err, codec.ErrMalformed, name)
	}
}
