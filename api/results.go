package api

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/response"
)

// Bounds of a resultBuffer, in bytes.
const (
	// maxBuffered bounds the results that wait for the client. The results of 10,000 registered jobs fit.
	maxBuffered = 4 << 20
	// writeSize is the size of one write. A client that has read so much has made progress.
	writeSize = 4 << 10
)

// errStalled means that the client does not read its results.
var errStalled = errors.New("the client does not read its results")

// A resultBuffer keeps results until the client reads them, so that a client may send all lines before it reads. One
// goroutine writes; Stop waits for its end.
type resultBuffer struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	// reserved accounts for the buffer in the budget of request bodies.
	reserved *limits.MeteredBody
	// hurry, once closed, leaves the client lastTimeout to read the rest.
	hurry <-chan struct{}

	mu      sync.Mutex
	b       []byte
	pending int // bytes put and not yet written
	closed  bool

	work  chan struct{} // there is something to write, or the buffer is closed
	moved chan struct{} // something was written
	done  chan struct{} // the writer has ended
	err   error         // the writer's error; read it after done
}

// newResultBuffer starts the writer, which calls broken when it fails.
func newResultBuffer(
	w http.ResponseWriter, rc *http.ResponseController, reserved *limits.MeteredBody, hurry <-chan struct{},
	broken func(),
) *resultBuffer {
	t := &resultBuffer{
		w: w, rc: rc, reserved: reserved, hurry: hurry,
		work: make(chan struct{}, 1), moved: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go func() {
		defer close(t.done)
		if t.err = t.write(); t.err != nil {
			broken()
		}
	}()
	return t
}

// signal sends on a channel of capacity 1 unless it is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Put appends a copy of b. It blocks while the buffer or the process has no room. An empty buffer takes any b.
func (t *resultBuffer) Put(b []byte) error {
	for {
		t.mu.Lock()
		fits := t.pending == 0 || t.pending+len(b) <= maxBuffered && t.reserved.Reserve(int64(len(b))) == nil
		if fits {
			if t.pending == 0 {
				t.reserved.ForceReserve(int64(len(b)))
			}
			t.b = append(t.b, b...)
			t.pending += len(b)
		}
		t.mu.Unlock()
		if fits {
			signal(t.work)
			return nil
		}
		if err := t.wait(); err != nil {
			return err
		}
	}
}

// Finish waits until the client has read everything.
func (t *resultBuffer) Finish() error {
	t.close()
	for {
		select {
		case <-t.done:
			return t.err
		default:
			if err := t.wait(); err != nil {
				return err
			}
		}
	}
}

func (t *resultBuffer) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	signal(t.work)
}

// wait waits until the client has read something or the writer has ended.
func (t *resultBuffer) wait() error {
	timer := time.NewTimer(takeTimeout)
	defer timer.Stop()
	hurry := t.hurry
	for {
		select {
		case <-t.moved:
			return nil
		case <-t.done:
			return t.err
		case <-hurry:
			hurry = nil
			timer.Reset(lastTimeout)
		case <-timer.C:
			return errStalled
		}
	}
}

// Stop ends the writer and waits for it. An answer that it interrupts has no proper end.
func (t *resultBuffer) Stop() {
	select {
	case <-t.done:
	default:
		t.close()
		_ = t.rc.SetWriteDeadline(time.Unix(1, 0)) // an error means that there is no connection to stall
		<-t.done
	}
}

// write writes results until the buffer is closed and empty. It flushes when the buffer is empty.
func (t *resultBuffer) write() error {
	var b []byte
	for {
		var closed bool
		if b, closed = t.swap(b); len(b) == 0 {
			if closed {
				return nil
			}
			<-t.work
			continue
		}
		for rest := b; len(rest) > 0; {
			n := min(len(rest), writeSize)
			if _, err := t.w.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
			t.mu.Lock()
			t.pending -= n
			t.mu.Unlock()
			t.reserved.Return(int64(n))
			signal(t.moved)
		}
		if err := t.rc.Flush(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
}

// swap returns what was put and continues with spare, unless that is large.
func (t *resultBuffer) swap(spare []byte) (b []byte, closed bool) {
	if cap(spare) > response.MaxPooled {
		spare = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b, t.b = t.b, spare[:0]
	return b, t.closed
}
