package api

import (
	"net/http"
	"slices"

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

// serveJobs answers with a page of jobs.
func (a onStore) serveJobs(w http.ResponseWriter, r *http.Request, filter store.Filter) error {
	return a.serveList(w, r, filter.Limit, func(o *response.Buffer) error {
		found, err := a.store.List(r.Context(), filter)
		next := ""
		if err == nil && found.More {
			next, err = request.EncodeJobsCursor(&filter, found.Reached)
		}
		if err == nil {
			o.JobPage(found, next)
		}
		return err
	})
}

// serveList answers with a list of at most limit items, whose members write reads and encodes. The encoded list counts
// as a request body until the client has read it.
func (a *api) serveList(w http.ResponseWriter, r *http.Request, limit int, write func(o *response.Buffer) error) error {
	release, ok := a.lists.Acquire(r.Context(), limit)
	if !ok {
		return response.NewOverload("too many lists in flight: retry, or use a smaller limit")
	}
	o := response.NewBuffer()
	defer o.Free()
	o.ShowHeadersTo(request.PrincipalOf(r.Context()))
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
