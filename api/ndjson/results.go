package ndjson

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
)

// Bounds of a tray.
const (
	// MaxBuffered is how many bytes of results wait for a client that does not take them: more than 10,000 jobs that are
	// registered come to.
	MaxBuffered = 4 << 20
	// writeSize is how much is written at once: who takes that much has moved.
	writeSize = 4 << 10
)

// errStalled: the client takes no results.
var errStalled = errors.New("the client takes no results")

// A ResultBuffer holds what was answered until the client takes it, so that a client that sends everything before it reads is
// no reason to stop reading. A goroutine of its own writes; stop waits for its end.
type ResultBuffer struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	// reserved counts what is held in the budget of request bodies.
	reserved *request.MeteredBody
	// hurry, once it is done, leaves the client only LastTimeout to take what is there.
	hurry <-chan struct{}

	mu     sync.Mutex
	b      []byte
	held   int // B put and not written, those under way too
	closed bool

	work  chan struct{} // there is something to write, or nothing more will come
	moved chan struct{} // something was written
	done  chan struct{} // the writer ended
	err   error         // why it did; to be read after done
}

// NewResultBuffer makes one and starts its writer, which calls broken when it cannot go on.
func NewResultBuffer(
	w http.ResponseWriter, rc *http.ResponseController, reserved *request.MeteredBody, hurry <-chan struct{}, broken func(),
) *ResultBuffer {
	t := &ResultBuffer{
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

// signal leaves word on a channel that holds one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Put adds a copy of b, and waits while there is no room, in the tray or in the process. It fits when the tray is empty.
func (t *ResultBuffer) Put(b []byte) error {
	for {
		t.mu.Lock()
		fits := t.held == 0 || t.held+len(b) <= MaxBuffered && t.reserved.Reserve(int64(len(b)))
		if fits {
			if t.held == 0 {
				t.reserved.ForceReserve(int64(len(b)))
			}
			t.b = append(t.b, b...)
			t.held += len(b)
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

// Finish waits until everything is taken.
func (t *ResultBuffer) Finish() error {
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

func (t *ResultBuffer) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	signal(t.work)
}

// wait waits until the client took something or the writer ended.
func (t *ResultBuffer) wait() error {
	timer := time.NewTimer(TakeTimeout)
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
			timer.Reset(LastTimeout)
		case <-timer.C:
			return errStalled
		}
	}
}

// Stop ends the writer, whatever the client does, and waits for that. An answer that it cuts off has no proper end.
func (t *ResultBuffer) Stop() {
	select {
	case <-t.done:
	default:
		t.close()
		_ = t.rc.SetWriteDeadline(time.Unix(1, 0)) // what has no deadlines is no connection, and does not stall
		<-t.done
	}
}

// write writes what is put until nothing more will come. It flushes whenever it has caught up.
func (t *ResultBuffer) write() error {
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
			t.held -= n
			t.mu.Unlock()
			t.reserved.Return(int64(n))
			signal(t.moved)
		}
		if err := t.rc.Flush(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
}

// swap takes what was put and leaves an empty buffer for more: spare, unless it is large.
func (t *ResultBuffer) swap(spare []byte) (b []byte, closed bool) {
	if cap(spare) > response.MaxPooled {
		spare = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b, t.b = t.b, spare[:0]
	return b, t.closed
}
