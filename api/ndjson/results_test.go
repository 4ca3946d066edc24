package ndjson

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A shut is an answer that takes nothing until it is opened, or fails.
type shut struct {
	*httptest.ResponseRecorder
	open chan struct{}
	err  error
}

func (s *shut) Write(b []byte) (int, error) {
	<-s.open
	if s.err != nil {
		return 0, s.err
	}
	return s.ResponseRecorder.Write(b)
}

// trayOf makes a tray of a shut answer; broken is closed when its writer fails.
func trayOf(err error) (t *ResultBuffer, w *shut, broken chan struct{}) {
	w = &shut{httptest.NewRecorder(), make(chan struct{}), err}
	broken = make(chan struct{})
	return NewResultBuffer(w, http.NewResponseController(w), nil, nil, func() { close(broken) }), w, broken
}

func TestResultBuffer_IsBounded(t *testing.T) {
	tr, w, _ := trayOf(nil)
	require.NoError(t, tr.Put(bytes.Repeat([]byte{'a'}, MaxBuffered)))
	more := make(chan error, 1)
	go func() { more <- tr.Put([]byte{'b'}) }()
	require.Equal(t, MaxBuffered, tr.holds())
	require.Empty(t, more)
	close(w.open)
	require.NoError(t, <-more)
	require.NoError(t, tr.Put(bytes.Repeat([]byte{'c'}, 2*MaxBuffered)), "when it is empty anything fits")
	require.NoError(t, tr.Finish())
	require.Equal(t, 3*MaxBuffered+1, w.Body.Len())
	require.True(t, w.Flushed)
	tr.Stop()
}

func TestResultBuffer_ReportsAFailedWriter(t *testing.T) {
	gone := errors.New("gone")
	tr, w, broken := trayOf(gone)
	require.NoError(t, tr.Put(bytes.Repeat([]byte{'a'}, MaxBuffered)))
	close(w.open)
	<-broken
	require.Equal(t, gone, tr.Put(bytes.Repeat([]byte{'b'}, MaxBuffered)))
	require.Equal(t, gone, tr.Finish())
	tr.Stop()
}

// holds is how much waits.
func (t *ResultBuffer) holds() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}
