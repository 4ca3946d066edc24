package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ringback/ringback/api/cursor"
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

// standardLimit is the default number of items in a list of names.
const standardLimit = 100

// A page is a part of a list whose items have names: the first limit ones after the name after.
type page struct {
	names cursor.Kind
	limit int
	after string
}

// readPage reads the parameters of a page. The caller returns the error of q.
func readPage(q *request.Query, names cursor.Kind) page {
	return page{names: names, limit: q.Limit(standardLimit), after: q.Cursor(names)}
}

// pageOf reads the parameters of a request for a page that has no others.
func pageOf(r *http.Request, names cursor.Kind) (page, error) {
	q := request.NewQuery(r)
	p := readPage(q, names)
	return p, q.Err()
}

// writePage writes the items of a page and the cursor of the next one. found has one item more than the page if it is not
// the last.
func writePage[T any](o *response.Buffer, p page, found []T, write func(*T), name func(*T) string) {
	shown := found[:min(p.limit, len(found))]
	response.Objects(o, "items", shown, write)
	if len(found) > len(shown) {
		o.Text("next_cursor", p.names.Encode(name(&shown[len(shown)-1])))
	} else {
		o.Null("next_cursor")
	}
}

// answerPage answers with a page of a list that is read as a whole. Error: store.ErrCursor when the last item of the previous
// page is gone.
func answerPage[T any](w http.ResponseWriter, p page, all []T, write func(*response.Buffer, *T), name func(*T) string) error {
	if p.after != "" {
		last := slices.IndexFunc(all, func(item T) bool { return name(&item) == p.after })
		if last < 0 {
			return store.ErrCursor
		}
		all = all[last+1:]
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		writePage(o, p, all, func(item *T) { write(o, item) }, name)
	})
	return nil
}

// serveJobs answers with a page of jobs.
func (a *api) serveJobs(w http.ResponseWriter, r *http.Request, filter store.Filter) error {
	return a.serveList(w, r, filter.Limit, func(o *response.Buffer) error {
		found, err := a.service.List(r.Context(), filter)
		next := ""
		if err == nil && found.More {
			next, err = cursor.EncodeJobs(&filter, found.Reached)
		}
		if err == nil {
			o.JobPage(found, next)
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
