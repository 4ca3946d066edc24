package api

import (
	"net/http"

	"github.com/ringback/ringback/api/response"
)

// Tracer makes spans of requests.
type Tracer interface {
	// StartRequest begins the span of a request. It returns the request with the span in its context, and a function
	// that ends the span with the status of the answer.
	StartRequest(r *http.Request) (traced *http.Request, end func(status int))
}

// traced returns a handler that serves requests that register jobs in spans.
func (a *api) traced(serve handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		r, end := a.tracer.StartRequest(r)
		status := http.StatusInternalServerError // of a panic
		defer func() { end(status) }()
		err := serve(w, r)
		switch {
		case err != nil:
			status = response.FromError(err).Status
		case w.Header()["Location"] != nil:
			status = http.StatusCreated
		default:
			status = http.StatusOK
		}
		return err
	}
}
