package livetail

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/store"
)

const (
	// appendEvery is the pause between two messages of a process.
	appendEvery = 250 * time.Millisecond
	// askEvery is how often a process asks who listens, while there are updates but none is appended.
	askEvery = 2 * time.Second
	// callTimeout bounds a call of the store.
	callTimeout = 5 * time.Second
	// lastTimeout bounds the last message of a process, and the withdrawal of a listener.
	lastTimeout = time.Second
	// maxEarly bounds the updates that wait until it is known who listens.
	maxEarly = 512
	// maxUpdateBytes bounds the updates of a message, so that it has at most store.MaxTailMessage bytes.
	maxUpdateBytes = store.MaxTailMessage * 3 / 4
)

// What a Hub knows about the listeners of all processes.
const (
	unknown  int32 = iota // the next update makes Run ask
	listened              // there are some
	quiet                 // there are none
)

// Hub publishes the updates of a process, and has its listeners. It is safe for concurrent use.
type Hub struct {
	tail store.Tail
	log  logs.Limited
	name string // of this process in messages
	// state is read without the mutex, and changed with it.
	state atomic.Int32
	wake  chan struct{} // for Run: there is something to append, or to ask
	// listeners counts those of this process.
	listeners *capacity.Semaphore

	mu       sync.Mutex
	round    uint64             // grows when an answer to who listens is out of date
	early    []Update           // for readers that are not known yet
	lost     map[string]uint64  // updates of each namespace that early had no room for
	readers  map[string]*reader // by announcement
	messages uint64
	updates  []addressedUpdate // of the next message
	bytes    int               // of updates
	pending  bool              // the next message has something to say

	skipped atomic.Uint64
}

// reader is a listener of any process.
type reader struct {
	announcement

	limit   limiter
	matched count
	bytes   int  // of updates in the next message, beyond the half that all readers share
	current bool // it does not need the updates of early
}

// New returns a Hub.
func New(tail store.Tail, log *slog.Logger) *Hub {
	return &Hub{
		tail: tail, log: logs.Limited{Logger: log, Interval: time.Minute}, name: rand.Text(),
		wake: make(chan struct{}, 1), readers: make(map[string]*reader),
		lost: make(map[string]uint64), listeners: capacity.LiveListeners.Semaphore(0),
	}
}

// Wanted reports whether Publish may have an effect. Callers ask it before they make an update.
func (h *Hub) Wanted() bool { return h.state.Load() != quiet }

// Publish passes an update on. It does not wait for the store. The update must not be changed afterwards.
func (h *Hub) Publish(e Update) {
	h.mu.Lock()
	switch {
	case h.state.Load() == quiet:
	case h.state.Load() == listened:
		h.match(&e, time.Now(), true)
	default:
		h.match(&e, time.Now(), true)
		if len(h.early) < maxEarly {
			h.early = append(h.early, e)
		} else {
			h.lost[e.Namespace]++
		}
	}
	work := h.pending || len(h.early) > 0
	h.mu.Unlock()
	if work {
		h.wakeRun()
	}
}

func (h *Hub) wakeRun() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// match addresses an update to the readers that want it: to those that are current, or to the others. The caller holds
// the mutex.
func (h *Hub) match(e *Update, now time.Time, current bool) {
	var to []*reader
	for _, r := range h.readers {
		if r.current != current || !r.Filter.match(e) {
			continue
		}
		r.matched.N++
		h.pending = true
		if r.limit.allow(now) {
			to = append(to, r)
		}
	}
	if len(to) == 0 {
		return
	}
	text, err := json.Marshal(e)
	if err != nil {
		h.log.Error("encoding a live update failed, skipping it", "err", err)
		return
	}
	h.add(text, to)
}

// add adds an update to the next message. Half of a message is for all readers, and the other half has an equal share
// for each, so that the updates of some do not displace those of others. The caller holds the mutex.
func (h *Hub) add(text []byte, to []*reader) {
	const address = nameLength + len(`"",`)
	size := len(text) + len(to)*address
	if h.bytes+size > maxUpdateBytes/2 {
		share := maxUpdateBytes / 2 / len(h.readers)
		to = slices.DeleteFunc(to, func(r *reader) bool { return r.bytes+len(text)+address > share })
		size = len(text) + len(to)*address
		if len(to) == 0 || h.bytes+size > maxUpdateBytes {
			return
		}
		for _, r := range to {
			r.bytes += len(text) + address
		}
	}
	h.bytes += size
	names := make([]string, len(to))
	for i, r := range to {
		names[i] = r.Name
	}
	h.updates = append(h.updates, addressedUpdate{To: names, Update: text})
}

// Run appends updates to the tail until ctx ends. Without updates it makes no calls.
func (h *Hub) Run(ctx context.Context) {
	defer h.appendLast(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var backoff store.Backoff
	for {
		select {
		case <-h.wake:
		case <-ctx.Done():
			return
		}
		for known := true; known; {
			pause := appendEvery
			again, err := h.append(ctx, callTimeout)
			for again {
				again, err = h.append(ctx, callTimeout)
			}
			if err == nil {
				backoff = store.Backoff{}
			} else {
				pause += backoff.Next()
			}
			timer.Reset(pause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			timer.Reset(askEvery - appendEvery)
			select {
			case <-h.wake:
			case <-timer.C:
				h.forget()
				known = false
			case <-ctx.Done():
				return
			}
		}
	}
}

// appendLast appends what is left when Run ends.
func (h *Hub) appendLast(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for again := true; again && h.hasWork(); {
		again, _ = h.append(ctx, lastTimeout) // it logs errors
	}
}

func (h *Hub) hasWork() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pending || len(h.early) > 0
}

// append appends the next message, if there is one, and learns who listens. It reports whether it must be called again
// at once.
func (h *Hub) append(ctx context.Context, timeout time.Duration) (again bool, err error) {
	text, round := h.takeMessage()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	readers, err := h.tail.AppendTail(ctx, text)
	if err != nil {
		if ctx.Err() == nil {
			h.log.Warn("publishing live updates failed, skipping them", "err", err)
		}
		return false, err
	}
	return h.setReaders(readers, round), nil
}

// takeMessage returns the next message; empty: there is nothing to say.
func (h *Hub) takeMessage() (text []byte, round uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.pending {
		return nil, h.round
	}
	h.messages++
	m := message{From: h.name, N: h.messages, Matched: make(map[string]count, len(h.readers)), Updates: h.updates}
	for _, r := range h.readers {
		if r.bytes = 0; r.matched.N > 0 {
			m.Matched[r.Name] = r.matched
		}
	}
	h.updates, h.bytes, h.pending = nil, 0, false
	text, err := json.Marshal(m)
	if err != nil {
		h.log.Error("encoding live updates failed, skipping them", "err", err)
	}
	return text, h.round
}

// setReaders notes who listens, and addresses the updates that waited for it. It reports whether there is something to
// append or to ask at once.
func (h *Hub) setReaders(announced [][]byte, round uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	readers := make(map[string]*reader, len(announced))
	for _, text := range announced {
		r := h.readers[string(text)]
		if r == nil {
			r = &reader{matched: count{Since: h.messages}}
			if err := json.Unmarshal(text, &r.announcement); err != nil || len(r.Name) > nameLength {
				continue // of another version
			}
		}
		readers[string(text)] = r
	}
	h.readers = readers
	if round != h.round {
		return true // a listener was added meanwhile
	}
	early, lost := h.early, h.lost
	h.early, h.lost = nil, make(map[string]uint64)
	if len(readers) == 0 {
		h.state.Store(quiet)
		select {
		case <-h.wake: // by an update that has no listener
		default:
		}
		h.updates, h.bytes, h.pending = nil, 0, false
		return false
	}
	h.state.Store(listened)
	now := time.Now()
	for i := range early {
		h.match(&early[i], now, false)
	}
	for _, r := range readers {
		if !r.current {
			r.matched.N += lost[r.Filter.Namespace] // perhaps not wanted
			r.current = true
		}
	}
	return len(early) > 0 && h.pending
}

// forget makes Run ask again who listens, at the next update.
func (h *Hub) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.round++
	h.state.Store(unknown)
}

// Listeners returns the number of this process's listeners.
func (h *Hub) Listeners() int { return h.listeners.InUse() }

// Skipped returns the number of updates that were skipped for this process's listeners.
func (h *Hub) Skipped() uint64 { return h.skipped.Load() }
