package livetail

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/store"
)

const (
	// ReadEvery is the pause between two calls of Listener.Next.
	ReadEvery = appendEvery
	// nameLength is the length of a listener's name.
	nameLength = 12
)

// Listener receives the updates that a filter selects. It is not safe for concurrent use.
type Listener struct {
	hub          *Hub
	name         string
	announcement []byte
	position     int64 // in the tail
	leave        func()
	limit        limiter
	publishers   map[string]progress
	skipped      uint64    // and not yet returned
	returned     time.Time // when Next last returned a number of skipped updates
}

// progress is what a listener has seen of a publisher.
type progress struct {
	n       uint64 // of its last message
	matched count
}

// Listen returns a listener for the updates that happen from now on. Close it. Errors: *capacity.FullError, and those
// of the store.
func (h *Hub) Listen(ctx context.Context, filter Filter) (*Listener, error) {
	holder := capacity.Holder{Namespace: filter.Namespace}
	if err := h.listeners.TryAcquire(holder, 1); err != nil {
		return nil, err
	}
	l := &Listener{hub: h, name: rand.Text()[:nameLength], publishers: make(map[string]progress), returned: time.Now()}
	l.leave = func() {
		defer h.listeners.Release(holder, 1)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
		defer cancel()
		_ = h.tail.LeaveTail(ctx, l.announcement) // else it expires
	}
	err := l.announce(ctx, filter)
	if err != nil {
		l.Close()
		return nil, err
	}
	h.forget()
	h.wakeRun()
	return l, nil
}

func (l *Listener) announce(ctx context.Context, filter Filter) (err error) {
	if l.announcement, err = json.Marshal(announcement{l.name, filter}); err == nil {
		_, l.position, err = l.hub.tail.ReadTail(ctx, l.announcement, 0)
	}
	if err != nil {
		return fmt.Errorf("listen to live updates: %w", err)
	}
	return nil
}

// Close ends the use of the listener, and withdraws its announcement.
func (l *Listener) Close() { l.leave() }

// Next returns the updates since the last call, and at most once a second the number of those that were skipped. Call
// it every ReadEvery.
func (l *Listener) Next(ctx context.Context) (updates []Update, skipped uint64, err error) {
	for range store.MaxTailMessages / store.TailReadMessages {
		var messages [][]byte
		messages, l.position, err = l.hub.tail.ReadTail(ctx, l.announcement, l.position)
		if err != nil {
			return nil, 0, fmt.Errorf("read live updates: %w", err)
		}
		for _, text := range messages {
			updates = l.read(text, updates)
		}
		if len(messages) < store.TailReadMessages {
			break
		}
	}
	slices.SortStableFunc(updates, func(a, b Update) int { return a.At.Compare(b.At) }) // of several processes
	if now := time.Now(); l.skipped > 0 && now.Sub(l.returned) >= time.Second {
		skipped, l.skipped, l.returned = l.skipped, 0, now
		l.hub.skipped.Add(skipped)
	}
	return updates, skipped, nil
}

// read appends the listener's updates in a message.
func (l *Listener) read(text []byte, updates []Update) []Update {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return updates // of another version
	}
	seen := l.publishers[m.From]
	matched := m.Matched[l.name]
	if m.N <= seen.n || matched.N == 0 {
		return updates // repeated, or for others
	}
	l.skipped += matched.N
	if matched.Since == seen.matched.Since { // else the publisher had not heard of this listener for a while
		l.skipped -= seen.matched.N
	}
	l.publishers[m.From] = progress{m.N, matched}
	now := time.Now()
	for i := range m.Updates {
		var e Update
		if !slices.Contains(m.Updates[i].To, l.name) || json.Unmarshal(m.Updates[i].Update, &e) != nil ||
			!l.limit.allow(now) {
			continue
		}
		updates = append(updates, e)
		l.skipped--
	}
	return updates
}
