package api

import (
	"net/http"

	"github.com/ringback/ringback/api/ndjson"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// answerSize returns the bytes of an answer with a job's body: the body, and its JSON form.
func answerSize(j *job.Job) int64 { return 2 * int64(len(j.Body)) }

// refuseUnread answers a request that was not read to its end. It discards the rest of the request, since closing a
// connection with unread bytes resets it, and the client would lose the answer.
func (a *api) refuseUnread(w http.ResponseWriter, r *http.Request, p *response.Problem) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // unsupported only where answers never wait for the request
	w.Header()["Connection"] = closeIt
	limits := ndjson.NewDeadlines(rc)
	stop := a.onShutdown(func() { limits.End(p) })
	defer stop()
	p.Write(w)
	_ = limits.Linger(r.Body, rc.Flush) // fails only when the client is gone
}
