package api

import (
	"context"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/store"
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

// standardLimit is the default number of topics or lanes in a list.
const standardLimit = 100

// A page is a part of a list of names: the first limit names after after.
type page struct {
	limit int
	after string
}

// readPage reads the parameters of a page. after is the parameter with the name before the page, which valid accepts;
// nil: any. rule is the error of another one.
func readPage(r *http.Request, after string, valid func(string) bool, rule string) (page, error) {
	q := request.NewQuery(r, "limit", after)
	p := page{limit: q.Limit(standardLimit), after: q.Get(after)}
	if p.after != "" && valid != nil && !valid(p.after) {
		q.AddError(request.QueryField(after), rule)
	}
	return p, q.Err()
}

// writePage writes the items of a page as an array. found has one item more than the page if it is not the last: then next
// is the member with the last item's name.
func writePage[T any](o *response.Buffer, p page, array string, found []T, write func(*T), next string, name func(*T) string) {
	shown := found[:min(p.limit, len(found))]
	response.Objects(o, array, shown, write)
	if len(found) > len(shown) {
		o.Text(next, name(&shown[len(shown)-1]))
	}
}

// serveJobs answers with a page of jobs.
func (a *api) serveJobs(
	w http.ResponseWriter, r *http.Request, filter store.Filter, list func(context.Context, store.Filter) (store.Page, error),
) error {
	return a.serveList(w, r, filter.Limit, func(o *response.Buffer) error {
		found, err := list(r.Context(), filter)
		if err == nil {
			o.JobPage(found)
		}
		return err
	})
}

// serveList answers with a list of at most limit items, whose members write reads and encodes. The encoded list counts as a
// request body until the client has read it.
func (a *api) serveList(w http.ResponseWriter, r *http.Request, limit int, write func(o *response.Buffer) error) error {
	release, ok := a.lists.acquire(r.Context(), limit)
	if !ok {
		return response.NewOverload("too many lists in flight: retry, or use a smaller limit")
	}
	o := response.NewBuffer()
	defer o.Free()
	o.Open()
	err := func() error {
		defer release()
		return write(o)
	}()
	if err != nil {
		return err
	}
	o.Close()
	reserved, ok := a.bodies.ReserveAnswer(min(o.Cap(), a.bodies.Large())) // one answer always fits
	defer reserved.Release()
	if !ok {
		return response.NewOverload("too many response bytes in flight: retry with a smaller limit or fewer requests")
	}
	o.Send(w, http.StatusOK)
	return nil
}
