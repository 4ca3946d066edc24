package api

import (
	"io"
	"sync/atomic"
	"time"
)

// linger gives the client its results, as finish does, and meanwhile reads and forgets what it still sends. Else one that
// sends everything before it reads never gets to them: while nothing is read it is stuck, and a connection that is closed
// with something unread is reset, which takes away what had arrived. What net/http reads after a handler, 256 KiB, is too
// little for that.
//
// Once all is taken it goes on while the client sends, for at most lingerMost; no longer than lingerTimeout when the
// stream was ended from here.
func (l *limits) linger(body io.Reader, finish func() error) error {
	if l.readUntil(time.Time{}) != nil {
		return finish() // what has no deadlines is no connection, and is not reset
	}
	var last atomic.Pointer[time.Time]
	read := make(chan struct{})
	go func() {
		defer close(read)
		for b := make([]byte, leastRoom); ; {
			if _, err := body.Read(b); err != nil {
				return
			}
			if until := last.Load(); until != nil {
				l.more(*until)
			}
		}
	}()
	err := finish()
	if now := time.Now(); err == nil {
		last.Store(new(now.Add(lingerMost)))
		_ = l.readUntil(now.Add(lingerTimeout))
	} else {
		_ = l.readUntil(time.Unix(1, 0))
	}
	<-read
	return err
}

func (l *limits) readUntil(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rc.SetReadDeadline(t)
}

// more gives a client that has just sent something the time to send more, unless the stream was ended.
func (l *limits) more(last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why != nil {
		return
	}
	until := time.Now().Add(lingerTimeout)
	if until.After(last) {
		until = last
	}
	_ = l.rc.SetReadDeadline(until)
}
