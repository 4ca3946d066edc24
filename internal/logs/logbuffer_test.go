package logs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/internal/logs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func note(n uint64) []byte { return fmt.Appendf(nil, "dropped %d\n", n) }

// stuck is an output that takes nothing until it is freed.
type stuck struct {
	mu   sync.Mutex
	free chan struct{}
	got  bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.free
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

func (s *stuck) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

func TestWriter_KeepsLinesInOrder(t *testing.T) {
	var out bytes.Buffer
	w := logs.NewBuffer(&out)
	w.SetNote(note)
	var want strings.Builder
	for i := range 1000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		n, err := io.WriteString(w, line)
		require.NoError(t, err)
		require.Equal(t, len(line), n)
	}
	require.True(t, w.Close(time.Minute))
	require.Equal(t, want.String(), out.String())
	require.Zero(t, w.Dropped())
}

func TestWriter_DropsAndCountsWhileTheOutputBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{free: make(chan struct{})}
		w := logs.NewBuffer(out)
		w.SetNote(note)
		_, _ = io.WriteString(w, "first\n")
		synctest.Wait() // it is being written now, and blocks
		line := strings.Repeat("x", logs.MaxPending/10-1) + "\n"
		const lines = 50
		for range lines {
			_, _ = io.WriteString(w, line)
		}
		require.EqualValues(t, lines-10, w.Dropped(), "the buffer holds ten")
		close(out.free)
		synctest.Wait()
		want := "first\n" + strings.Repeat(line, 10) + "dropped 40\n"
		require.Equal(t, want, out.text())

		_, _ = io.WriteString(w, "later\n")
		require.True(t, w.Close(time.Minute))
		require.Equal(t, want+"later\n", out.text(), "a drop is reported once")
		_, _ = io.WriteString(w, "after the end\n")
		require.EqualValues(t, lines-9, w.Dropped())
	})
}

func TestWriter_CloseDoesNotWaitForAnOutputThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{free: make(chan struct{})}
		w := logs.NewBuffer(out)
		_, _ = io.WriteString(w, "first\n")
		began := time.Now()
		require.False(t, w.Close(time.Second))
		require.Equal(t, time.Second, time.Since(began))
		close(out.free)
		require.True(t, w.Close(time.Second))
		require.Equal(t, "first\n", out.text())
	})
}

// failing is an output that fails so many times.
type failing struct {
	times int
	out   bytes.Buffer
}

func (f *failing) Write(p []byte) (int, error) {
	if f.times > 0 {
		f.times--
		return 0, errors.New("broken pipe")
	}
	return f.out.Write(p)
}

func TestWriter_CountsWhatTheOutputRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &failing{times: 1}
		w := logs.NewBuffer(out)
		w.SetNote(note)
		_, _ = io.WriteString(w, "one\ntwo\n")
		synctest.Wait()
		require.EqualValues(t, 2, w.Dropped())
		_, _ = io.WriteString(w, "three\n")
		require.True(t, w.Close(time.Minute))
		require.Equal(t, "dropped 2\nthree\n", out.out.String())
	})
}

func TestWriter_GoesOnWhereTheOutputIsGone(t *testing.T) {
	w := logs.NewBuffer(&failing{times: 1 << 30})
	w.SetNote(note)
	for range 1000 {
		_, _ = io.WriteString(w, "line\n")
	}
	require.True(t, w.Close(time.Minute))
	require.EqualValues(t, 1000, w.Dropped())
}

func BenchmarkWriter(b *testing.B) {
	w := logs.NewBuffer(io.Discard)
	line := []byte(strings.Repeat("x", 200) + "\n")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = w.Write(line)
	}
	require.True(b, w.Close(time.Minute))
}
