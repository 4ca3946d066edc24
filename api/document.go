package api

import (
	"errors"
	"net/http"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// answerDocument answers with a document whose members write writes.
func answerDocument(
	w http.ResponseWriter, r *http.Request, status int, revision int64, write func(o *response.Buffer),
) {
	w.Header().Set("Etag", request.ETag(revision))
	response.Answer(w, status, func(o *response.Buffer) {
		o.ShowHeadersTo(request.PrincipalOf(r.Context()))
		write(o)
	})
}

// notModified answers a GET whose If-None-Match names the revision, and reports whether it did.
func notModified(w http.ResponseWriter, r *http.Request, revision int64) (bool, error) {
	same, err := request.NotModified(r, revision)
	if same {
		w.Header().Set("Etag", request.ETag(revision))
		w.WriteHeader(http.StatusNotModified)
	}
	return same, err
}

// orNotFound returns an error, explained if nothing was found.
func orNotFound(err error, detail string) error {
	if errors.Is(err, store.ErrNotFound) {
		return response.NewProblem(response.NotFound, detail)
	}
	return err
}

// setPause changes whether settings are paused, and the pause.
type setPause func(paused *bool, pause *policy.Pause)

// pauses returns the handlers that pause and resume settings: those whose name key reads from the path, and that change
// changes and answers with.
func pauses[K any](
	key func(a onStore, r *http.Request) (K, error),
	change func(a onStore, w http.ResponseWriter, r *http.Request, of K, set setPause) error,
) (pause, resume func(onStore, http.ResponseWriter, *http.Request) error) {
	pause = func(a onStore, w http.ResponseWriter, r *http.Request) error {
		of, err := key(a, r)
		if err != nil {
			return err
		}
		note, err := request.ReadPause(w, r)
		if err != nil {
			return err
		}
		return change(a, w, r, of, func(paused *bool, p *policy.Pause) {
			*p = request.NewPause(r, *paused, *p, note)
			*paused = true
		})
	}
	resume = func(a onStore, w http.ResponseWriter, r *http.Request) error {
		of, err := key(a, r)
		if err == nil {
			err = request.RequireNoBody(r)
		}
		if err != nil {
			return err
		}
		return change(a, w, r, of, func(paused *bool, p *policy.Pause) { *paused, *p = false, policy.Pause{} })
	}
	return pause, resume
}
