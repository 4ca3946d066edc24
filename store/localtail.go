// This part of the package implements store.Tail for stores that one process uses.

package store

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// LocalTail is a store.Tail in memory. The zero value is ready for use. It is safe for concurrent use.
type LocalTail struct {
	mu       sync.Mutex
	readers  map[string]time.Time // the end of their announcement
	messages []message            // oldest first
	position int64                // of the last message
}

type message struct {
	at   time.Time
	text []byte
}

// AppendTail implements store.Tail.
func (t *LocalTail) AppendTail(_ context.Context, text []byte) ([][]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.expire(now)
	newest := slices.SortedFunc(maps.Keys(t.readers),
		func(a, b string) int { return t.readers[b].Compare(t.readers[a]) })
	var readers [][]byte
	for _, reader := range newest[:min(len(newest), MaxTailReaders)] {
		readers = append(readers, []byte(reader))
	}
	if len(text) > 0 && len(readers) > 0 {
		t.position++
		t.messages = append(t.messages, message{now, bytes.Clone(text)})
		t.messages = slices.Delete(t.messages, 0, max(0, len(t.messages)-MaxTailMessages))
	}
	return readers, nil
}

// ReadTail implements store.Tail.
func (t *LocalTail) ReadTail(_ context.Context, reader []byte, after int64) ([][]byte, int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.expire(now)
	if t.readers == nil {
		t.readers = make(map[string]time.Time)
		t.position = max(t.position, 1) // 0 has a meaning
	}
	t.readers[string(reader)] = now.Add(TailTTL)
	if after == 0 {
		return nil, t.position, nil
	}
	first := max(0, len(t.messages)-int(max(t.position-after, 0)))
	unread := t.messages[first:min(len(t.messages), first+TailReadMessages)]
	texts := make([][]byte, len(unread))
	for i, m := range unread {
		texts[i] = m.text
	}
	return texts, t.position - int64(len(t.messages)-first-len(unread)), nil
}

// LeaveTail implements store.Tail. It frees the messages when no reader is left.
func (t *LocalTail) LeaveTail(_ context.Context, reader []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.readers, string(reader)); len(t.readers) == 0 {
		t.messages = nil
	}
	return nil
}

// expire removes readers and messages that are older than store.TailTTL.
func (t *LocalTail) expire(now time.Time) {
	maps.DeleteFunc(t.readers, func(_ string, until time.Time) bool { return !until.After(now) })
	old := slices.IndexFunc(t.messages, func(m message) bool { return now.Sub(m.at) < TailTTL })
	if old < 0 {
		old = len(t.messages)
	}
	t.messages = slices.Delete(t.messages, 0, old)
}
