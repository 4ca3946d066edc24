package ndjson

import (
	"io"
	"sync/atomic"
	"time"
)

// Linger gives the client its results, as finish does, and meanwhile reads and forgets what it still sends. Else one that
// sends everything before it reads never gets to them: while nothing is read it is stuck, and a connection that is closed
// with something unread is reset, which takes away what had arrived. What net/http reads after a handler, 256 KiB, is too
// little for that.
//
// Once all is taken it goes on while the client sends, for at most MaxLinger; no longer than LingerTimeout when the
// stream was ended from here.
func (l *Deadlines) Linger(body io.Reader, finish func() error) error {
	if l.SetReadDeadline(time.Time{}) != nil {
		return finish() // what has no deadlines is no connection, and is not reset
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
		last.Store(new(now.Add(MaxLinger)))
		_ = l.SetReadDeadline(now.Add(LingerTimeout))
	} else {
		_ = l.SetReadDeadline(time.Unix(1, 0))
	}
	<-read
	return err
}

// SetReadDeadline sets the deadline of reads under way and to come.
func (l *Deadlines) SetReadDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rc.SetReadDeadline(t)
}

// extend gives a client that has just sent something the time to send more, unless the stream was ended.
func (l *Deadlines) extend(last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	until := time.Now().Add(LingerTimeout)
	if until.After(last) {
		until = last
	}
	_ = l.rc.SetReadDeadline(until)
}
