package console

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

// failure is the data of the view error.
type failure struct {
	Status int
	Title  string
	Detail string
	Errors []client.FieldError
	Again  bool // the same request may succeed later
}

// fail answers with an error. v is nil if it is not known who visits.
func (c *console) fail(w http.ResponseWriter, r *http.Request, v *web.Visit, err error) {
	if errors.Is(err, errSignIn) {
		c.askToSignIn(w, r)
		return
	}
	f := failure{Status: http.StatusInternalServerError, Title: "This page failed", Detail: "The log of the server says why."}
	p, ok := errors.AsType[*client.Problem](err)
	switch {
	case ok:
		f = failure{Status: p.Status, Title: titleOf(p.Status), Detail: p.Detail, Errors: p.Errors, Again: p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests}
		if p.RetryAfterMS != nil {
			w.Header().Set("Retry-After", strconv.FormatInt((*p.RetryAfterMS+999)/1000, 10))
		}
	case r.Context().Err() != nil: // the reader is gone
		f.Status = http.StatusServiceUnavailable
	default:
		c.log.Error("console page failed", "path", r.URL.Path, "err", err)
	}
	if v == nil {
		place := placeOf(r)
		v = &web.Visit{Request: r, Who: &client.Principal{}, Base: place.base, Root: place.root, Here: place.here(r), Now: c.now()}
	}
	page := &web.Page{View: "error", Title: f.Title, Data: f}
	c.render(w, r, "error", "layout", c.view(nil, r, v, page), f.Status)
}

// titleOf returns the title of an error of the API.
func titleOf(status int) string {
	switch status {
	case http.StatusForbidden:
		return "Your token does not allow this"
	case http.StatusNotFound:
		return "Not found"
	case http.StatusConflict, http.StatusPreconditionFailed:
		return "It has changed meanwhile"
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return "The store does not answer now"
	case http.StatusTooManyRequests:
		return "Too many requests"
	default:
		return "The request is refused"
	}
}
