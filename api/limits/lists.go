package limits

import (
	"context"
	"time"
)

// Bounds of the lists in memory, over all requests of the process. An item takes up to 40 KiB, most of it headers, and
// about three times that until it is encoded.
const (
	// ListSlots is the number of lists of SlotItems in flight. A longer list takes a slot for each SlotItems.
	ListSlots = 10
	SlotItems = 100
	// ListWait bounds the wait for slots.
	ListWait = 10 * time.Second
)

// Lists bounds the items of lists in memory. Requests wait for slots in order of arrival. It is safe for
// concurrent use.
type Lists struct {
	queue chan struct{} // held while slots are acquired, so that requests cannot block each other
	slots chan struct{}
}

// NewLists returns a Lists whose slots are free.
func NewLists() *Lists {
	return &Lists{queue: make(chan struct{}, 1), slots: make(chan struct{}, ListSlots)}
}

// Acquire waits for the slots of a list of at most limit items, from 1. It reports false on timeout. Otherwise
// call release once.
func (l *Lists) Acquire(ctx context.Context, limit int) (release func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, ListWait)
	defer cancel()
	select {
	case l.queue <- struct{}{}:
		defer func() { <-l.queue }()
	case <-ctx.Done():
		return nil, false
	}
	n := (limit + SlotItems - 1) / SlotItems
	for i := range n {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			l.release(i)
			return nil, false
		}
	}
	return func() { l.release(n) }, true
}

func (l *Lists) release(n int) {
	for range n {
		<-l.slots
	}
}
