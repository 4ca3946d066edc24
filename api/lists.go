package api

import (
	"context"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/response"
)

// Bounds of the lists in memory, over all requests of the process. An item takes up to 40 KiB, most of it headers, and
// about three times that until it is encoded.
const (
	// listSlots is the number of lists of slotItems in flight. A longer list takes a slot for each slotItems.
	listSlots = 10
	slotItems = 100
	// listWait bounds the wait for slots.
	listWait = 10 * time.Second
)

// A listLimiter bounds the items of lists in memory. Requests wait for slots in order of arrival. It is safe for
// concurrent use.
type listLimiter struct {
	queue chan struct{} // held while slots are acquired, so that requests cannot block each other
	slots chan struct{}
}

func newListLimiter() *listLimiter {
	return &listLimiter{queue: make(chan struct{}, 1), slots: make(chan struct{}, listSlots)}
}

// acquire waits for the slots of a list of at most limit items, 1 to MaxListLimit. It reports false on timeout. Otherwise
// call release once.
func (l *listLimiter) acquire(ctx context.Context, limit int) (release func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	select {
	case l.queue <- struct{}{}:
		defer func() { <-l.queue }()
	case <-ctx.Done():
		return nil, false
	}
	n := (limit + slotItems - 1) / slotItems
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

func (l *listLimiter) release(n int) {
	for range n {
		<-l.slots
	}
}

// serveList answers with a list of at most limit items, which write reads and encodes. The encoded list counts as a
// request body until the client has read it.
func (a *api) serveList(w http.ResponseWriter, r *http.Request, limit int, write func(o *response.Buffer) error) error {
	release, ok := a.lists.acquire(r.Context(), limit)
	if !ok {
		return response.Overloaded("too many lists in flight: retry, or use a smaller limit")
	}
	o := response.NewBuffer()
	defer o.Free()
	err := func() error {
		defer release()
		return write(o)
	}()
	if err != nil {
		return err
	}
	reserved, ok := a.bodies.ReserveAnswer(min(o.Cap(), a.bodies.Large())) // one answer always fits
	defer reserved.Release()
	if !ok {
		return response.Overloaded("too many response bytes in flight: retry with a smaller limit or fewer requests")
	}
	o.Send(w, http.StatusOK)
	return nil
}
