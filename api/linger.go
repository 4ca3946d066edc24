package api

import (
	"io"
	"sync/atomic"
	"time"
)

// Linger calls finish, which waits for the client to read its results, and meanwhile discards what the client still
// sends. Otherwise a client that sends everything before it reads would block, and closing a connection with unread
// bytes resets it, which loses results. net/http reads at most 256 KiB after a handler, which is not enough.
//
// Afterwards it discards for as long as the client sends, at most maxLinger, and for lingerTimeout if the server ended
// the stream.
func (l *deadlines) Linger(body io.Reader, finish func() error) error {
	if l.SetReadDeadline(time.Time{}) != nil {
		return finish() // no connection: nothing to reset
	}
	var last atomic.Pointer[time.Time]
	read := make(chan struct{})
	go func() {
		defer close(read)
		for b := make([]byte, minRead); ; {
			if _, err := body.Read(b); err != nil {
				return
			}
			if until := last.Load(); until != nil {
				l.extend(*until)
			}
		}
	}()
	err := finish()
	if now := time.Now(); err == nil {
		last.Store(new(now.Add(maxLinger)))
		_ = l.SetReadDeadline(now.Add(lingerTimeout))
	} else {
		_ = l.SetReadDeadline(time.Unix(1, 0))
	}
	<-read
	return err
}

// SetReadDeadline sets the deadline of reads.
func (l *deadlines) SetReadDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rc.SetReadDeadline(t)
}

// extend moves the deadline after a read, unless the stream was ended.
func (l *deadlines) extend(last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	until := time.Now().Add(lingerTimeout)
	if until.After(last) {
		until = last
	}
	_ = l.rc.SetReadDeadline(until)
}
