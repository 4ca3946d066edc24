// This part of the package records the output of a test's logger or process.

package testkit

import (
	"bytes"
	"sync"
)

// Log is an io.Writer that keeps everything written. Safe for concurrent use; the zero value is ready.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends p.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns everything written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Reset removes everything written so far.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
