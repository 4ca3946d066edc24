package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/store"
)

// standardLimit is the default number of items in a list of names.
const standardLimit = 100

// A page is a part of a list whose items have names: the first limit ones after the name after.
type page struct {
	names request.CursorKind
	limit int
	after string
}

// readPage reads the parameters of a page. The caller returns the error of q.
func readPage(q *request.Query, names request.CursorKind) page {
	return page{names: names, limit: q.Limit(standardLimit), after: q.Cursor(names)}
}

// pageOf reads the parameters of a request for a page that has no others.
func pageOf(r *http.Request, names request.CursorKind) (page, error) {
	q := request.NewQuery(r)
	p := readPage(q, names)
	return p, q.Err()
}

// writePage writes the items of a page and the cursor of the next one. found has one item more than the page if it is
// not the last.
func writePage[T any](
	o *response.Buffer, p page, found []T, write func(*response.Buffer, *T), name func(*T) string,
) {
	shown := found[:min(p.limit, len(found))]
	response.Objects(o, "items", shown, func(item *T) { write(o, item) })
	if len(found) > len(shown) {
		o.Text("next_cursor", p.names.Encode(name(&shown[len(shown)-1])))
	} else {
		o.Null("next_cursor")
	}
}

// answerPage answers with a page of a list that is read as a whole. Error: store.ErrCursor when the last item of the
// previous page is gone.
func answerPage[
	T any,
](w http.ResponseWriter, p page, all []T, write func(*response.Buffer, *T), name func(*T) string) error {
	if p.after != "" {
		last := slices.IndexFunc(all, func(item T) bool { return name(&item) == p.after })
		if last < 0 {
			return store.ErrCursor
		}
		all = all[last+1:]
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		writePage(o, p, all, write, name)
	})
	return nil
}

// members writes an item of a list by the tags of its fields.
func members[T any](o *response.Buffer, item *T) { o.Members(item) }

// searchStep is the time after which a search lets others read lists.
const searchStep = 50 * time.Millisecond

// serveJobs answers with a page of jobs.
func (a onStore) serveJobs(w http.ResponseWriter, r *http.Request, filter store.Filter) error {
	return a.answerList(w, r, func(o *response.Buffer, grow func() error) error {
		return a.searchJobs(r, filter, o, grow)
	})
}

// searchJobs writes a page of jobs. It looks for them in steps, and has a place among the lists during a step only. Its
// time begins with the first step, and bounds the waits for later ones. An error of a later step ends the page: if it
// lasts, the next page fails.
func (a onStore) searchJobs(r *http.Request, filter store.Filter, o *response.Buffer, grow func() error) error {
	within := cmp.Or(filter.Within, store.ListTime)
	var until time.Time
	var tooLarge error
	last, scanned := store.Page{More: true}, 0
	step := func(turn context.Context) error {
		release, err := a.lists.Acquire(turn, a.holderOf(r), filter.Limit)
		if err != nil {
			return err
		}
		defer release()
		if until.IsZero() {
			until = time.Now().Add(within)
		}
		filter.Within = max(min(searchStep, time.Until(until)), 1)
		page, err := a.store.List(r.Context(), filter)
		if err != nil {
			return err
		}
		response.Items(o, page.Jobs, o.Job)
		tooLarge = grow()
		last, filter.After = page, page.Reached
		filter.Limit -= len(page.Jobs)
		scanned += page.Scanned
		return nil
	}
	o.Array("items")
	if filter.Limit > 0 {
		if err := step(r.Context()); err != nil {
			return err
		}
	}
	turns, cancel := context.WithDeadline(r.Context(), until)
	defer cancel()
	for tooLarge == nil && last.More && filter.Limit > 0 && time.Now().Before(until) {
		if step(turns) != nil {
			break // the page has what was found
		}
	}
	if tooLarge != nil {
		return tooLarge
	}
	o.CloseArray()
	if err := writeCursor(o, &filter, &last); err != nil {
		return err
	}
	o.Number("scanned", int64(scanned))
	return nil
}

// boundCount lets a count read as many jobs as the longest list has at a time.
func (a *api) boundCount(r *http.Request, by *store.GroupBy) {
	by.AcquireTurn = func(ctx context.Context) (release func(), err error) {
		return a.lists.Acquire(ctx, a.holderOf(r), request.MaxListLimit)
	}
}

// serveList answers with a list of at most limit items, whose members write reads and encodes.
func (a *api) serveList(w http.ResponseWriter, r *http.Request, limit int, write func(o *response.Buffer) error) error {
	return a.answerList(w, r, func(o *response.Buffer, _ func() error) error {
		release, err := a.lists.Acquire(r.Context(), a.holderOf(r), limit)
		if err != nil {
			return err
		}
		defer release()
		return write(o)
	})
}

// answerList answers with a list that write encodes. The encoded list counts as a request body until the client has
// read it; write calls grow when it has encoded more, unless it ends then.
func (a *api) answerList(
	w http.ResponseWriter, r *http.Request, write func(o *response.Buffer, grow func() error) error,
) error {
	o := response.NewBuffer()
	defer o.Free()
	o.ShowHeadersTo(request.PrincipalOf(r.Context()))
	reserved := a.bodies.Meter(nil, a.holderOf(r))
	defer reserved.Release()
	grow := func() error { return reserved.GrowAnswer(min(o.Cap(), a.bodies.Large())) } // one answer always fits
	o.Open()
	if err := write(o, grow); err != nil {
		return err
	}
	o.Close()
	if err := grow(); err != nil {
		return err
	}
	o.Send(w, http.StatusOK)
	return nil
}

// writeCursor writes the cursor of the page after one that a filter selects.
func writeCursor(o *response.Buffer, filter *store.Filter, page *store.Page) (err error) {
	next := ""
	if page.More {
		next, err = request.EncodeJobsCursor(filter, page.Reached)
	}
	o.TextOrNull("next_cursor", next)
	return err
}
