// This part of the package decouples a process from the reader of its log.
//
// A Writer buffers log lines and writes them to its output from one goroutine. When the output blocks (a pipe without a
// reader, a stopped terminal), lines wait in a bounded buffer. When that is full, or the output fails, lines are
// dropped and counted. Logging never blocks and never fails.

package logs

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// maxPending bounds the buffered bytes. As many again may be in a write in progress.
const maxPending = 1 << 20

// keepSize is the largest buffer that is kept for reuse once its lines are written.
const keepSize = 64 << 10

// A Buffer is an io.Writer that never blocks and never fails. Each Write must be whole lines, as those of a
// slog.Handler are. Safe for concurrent use. It must be closed.
type Buffer struct {
	out  io.Writer
	wake chan struct{} // has room for one signal
	done chan struct{} // closed when the goroutine has ended

	mu       sync.Mutex
	note     func(n uint64) []byte
	pending  []byte
	dropped  uint64 // lines
	reported uint64 // of them
	closed   bool
}

// NewBuffer returns a Writer to out. Nothing else may write to out until Close has returned.
func NewBuffer(out io.Writer) *Buffer {
	w := &Buffer{out: out, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run()
	return w
}

// SetNote sets the function that returns the line, with its line break, that reports n dropped lines. The line is
// written in their place, once the output accepts lines again. Without one nothing is reported.
func (w *Buffer) SetNote(note func(n uint64) []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note = note
}

// Write buffers the lines in p, or drops all of them when they do not fit. After Close they are dropped.
func (w *Buffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	if w.closed || len(w.pending)+len(p) > maxPending {
		w.dropped += countLines(p)
	} else {
		w.pending = append(w.pending, p...)
	}
	w.mu.Unlock()
	w.signal()
	return len(p), nil
}

// Dropped returns the number of dropped lines.
func (w *Buffer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Close waits until the buffered lines are written, but no longer than the timeout, and reports whether they were. If
// the output still blocks, the goroutine ends when the output returns.
func (w *Buffer) Close(timeout time.Duration) bool {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-w.done:
		return true
	case <-timer.C:
		return false
	}
}

func (w *Buffer) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // a signal is pending
	}
}

// run writes pending lines until Close.
func (w *Buffer) run() {
	defer close(w.done)
	var spare []byte
	for range w.wake {
		for {
			chunk, note, closed := w.take(spare)
			spare = nil // now in use as the buffer
			if len(chunk) == 0 && len(note) == 0 {
				if closed {
					return
				}
				break
			}
			if n, err := w.out.Write(chunk); err != nil {
				w.lost(countLines(chunk[n:]))
			}
			if len(note) > 0 {
				_, _ = w.out.Write(note) // a failure cannot be reported elsewhere
			}
			if spare = chunk[:0]; cap(spare) > keepSize {
				spare = nil
			}
		}
	}
}

// take returns the lines to write next and a note about lines dropped after them. spare becomes the new buffer.
func (w *Buffer) take(spare []byte) (chunk, note []byte, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	chunk, w.pending = w.pending, spare
	if n := w.dropped - w.reported; n > 0 {
		w.reported = w.dropped
		if w.note != nil {
			note = w.note(n)
		}
	}
	return chunk, note, w.closed
}

// lost counts lines that the output rejected.
func (w *Buffer) lost(n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped += n
}

// countLines counts the lines in p, including an unfinished last one.
func countLines(p []byte) uint64 {
	n := bytes.Count(p, []byte("\n"))
	if len(p) > 0 && p[len(p)-1] != '\n' {
		n++
	}
	return uint64(n)
}
