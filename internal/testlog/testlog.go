// Package testlog keeps what a test's logger or process writes.
package testlog

import (
	"bytes"
	"sync"
)

// A Log is an io.Writer whose text a test can read at any time. Safe for concurrent use; the zero value is ready.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps p.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
