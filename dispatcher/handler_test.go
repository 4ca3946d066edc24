package dispatcher

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

// Claimed jobs share an array: a call that does not return must not keep all of it in memory.
func TestHandler_GivesFunctionsABodyOfTheirOwn(t *testing.T) {
	claimed := []byte("firstsecond")
	var got []byte
	h := newHandler(func(_ context.Context, j *Job) error {
		j.Body[0], got = 'F', j.Body
		return nil
	}, slog.New(slog.DiscardHandler))
	require.True(t, h.Deliver(t.Context(), job.Request{Body: claimed[:5], Timeout: time.Minute}).Accepted)
	require.Equal(t, "First", string(got))
	require.Equal(t, "firstsecond", string(claimed))
}
