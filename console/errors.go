package console

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

// failure is the data of the view error.
type failure struct {
	Status int
	Title  string
	Detail string
	Errors []client.FieldError
	Again  bool   // the same request may succeed later
	SignIn string // the link of the form, with status 401
}

// failUnknown answers with the error of visit: nothing waits for a reader who is not known, see limits.Open.
func (c *console) failUnknown(w http.ResponseWriter, r *http.Request, err error) {
	limits.Open(w, r)
	c.fail(w, r, nil, err)
}

// fail answers with an error. v is nil if it is not known who visits.
func (c *console) fail(w http.ResponseWriter, r *http.Request, v *web.Visit, err error) {
	if errors.Is(err, errSignIn) {
		c.askToSignIn(w, r)
		return
	}
	f := failure{
		Status: http.StatusInternalServerError, Title: "This page failed",
		Detail: "The log of the server says why.",
	}
	p, ok := errors.AsType[*client.Problem](err)
	switch {
	case ok:
		f = failure{
			Status: p.Status, Title: titleOf(p), Detail: p.Detail, Errors: p.Errors,
			Again: p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests,
		}
		if p.RetryAfterMS != nil {
			w.Header().Set("Retry-After", strconv.FormatInt((*p.RetryAfterMS+999)/1000, 10))
		}
	case r.Context().Err() != nil: // the reader is gone
		f.Status = http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrUnavailable):
		f = failure{
			Status: http.StatusServiceUnavailable, Title: "The store does not answer in time", Again: true,
			Detail: "Deliveries may be delayed, too. What the server's log and its readiness say is the next thing " +
				"to look at.",
		}
		w.Header().Set("Retry-After", "5")
	default:
		c.failed.Error("console page failed", "path", r.URL.Path, "err", err)
	}
	c.showFailure(w, r, v, f)
}

// showFailure answers with the page of an error.
func (c *console) showFailure(w http.ResponseWriter, r *http.Request, v *web.Visit, f failure) {
	if v == nil {
		place := placeOf(r)
		v = &web.Visit{
			Request: r, Who: &client.Principal{}, Base: place.base, Root: place.root,
			Here: place.here(r), Now: c.now(),
		}
	}
	c.render(w, r, "error", "layout",
		c.view(r, v, &web.Page{View: "error", Title: f.Title, Status: f.Status, Data: f}), f.Status)
}

// titleOf returns the title of an error of the API.
func titleOf(p *client.Problem) string {
	switch p.Code {
	case "revision_mismatch", "contended":
		return "It has changed meanwhile"
	case "id_taken":
		return "The id is taken"
	case "wrong_state":
		return "The state does not allow this"
	case "store_unavailable", "not_ready":
		return "The store does not answer now"
	}
	switch p.Status {
	case http.StatusForbidden:
		return "Your token does not allow this"
	case http.StatusNotFound:
		return "Not found"
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return "The server cannot answer now"
	case http.StatusTooManyRequests:
		return "Too many requests"
	default:
		return "The request is refused"
	}
}
