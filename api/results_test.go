package api

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A blockedResponse blocks until it is opened, or fails.
type blockedResponse struct {
	*httptest.ResponseRecorder
	open chan struct{}
	err  error
}

func (s *blockedResponse) Write(b []byte) (int, error) {
	<-s.open
	if s.err != nil {
		return 0, s.err
	}
	return s.ResponseRecorder.Write(b)
}

// newBlockedBuffer returns a buffer whose response blocks. broken is closed when its writer fails.
func newBlockedBuffer(err error) (t *resultBuffer, w *blockedResponse, broken chan struct{}) {
	w = &blockedResponse{httptest.NewRecorder(), make(chan struct{}), err}
	broken = make(chan struct{})
	return newResultBuffer(w, http.NewResponseController(w), nil, nil, func() { close(broken) }), w, broken
}

func TestResultBuffer_IsBounded(t *testing.T) {
	buffer, w, _ := newBlockedBuffer(nil)
	require.NoError(t, buffer.Put(bytes.Repeat([]byte{'a'}, maxBuffered)))
	more := make(chan error, 1)
	go func() { more <- buffer.Put([]byte{'b'}) }()
	require.Equal(t, maxBuffered, buffer.pendingBytes())
	require.Empty(t, more)
	close(w.open)
	require.NoError(t, <-more)
	require.NoError(t, buffer.Put(bytes.Repeat([]byte{'c'}, 2*maxBuffered)), "when it is empty anything fits")
	require.NoError(t, buffer.Finish())
	require.Equal(t, 3*maxBuffered+1, w.Body.Len())
	require.True(t, w.Flushed)
	buffer.Stop()
}

func TestResultBuffer_ReportsAFailedWriter(t *testing.T) {
	gone := errors.New("gone")
	buffer, w, broken := newBlockedBuffer(gone)
	require.NoError(t, buffer.Put(bytes.Repeat([]byte{'a'}, maxBuffered)))
	close(w.open)
	<-broken
	require.Equal(t, gone, buffer.Put(bytes.Repeat([]byte{'b'}, maxBuffered)))
	require.Equal(t, gone, buffer.Finish())
	buffer.Stop()
}

// pendingBytes is how much waits.
func (t *resultBuffer) pendingBytes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending
}
