package api

import (
	"net/http"

	"github.com/ringback/ringback/api/ndjson"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// answerSize is what an answer with a job's body takes: the body, and its form in the answer.
func answerSize(j *job.Job) int64 { return 2 * int64(len(j.Body)) }

// refuseUnread answers with a problem before the request was read to its end, and sees to it that the client gets the answer:
// it goes on reading, and forgets what comes, since a connection that is closed with something unread is reset.
func (a *api) refuseUnread(w http.ResponseWriter, r *http.Request, p *response.Problem) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // unsupported only where answers never wait for the request
	w.Header()["Connection"] = closeIt
	limits := ndjson.NewDeadlines(rc)
	stop := a.onShutdown(func() { limits.End(p) })
	defer stop()
	p.Write(w)
	_ = limits.Linger(r.Body, rc.Flush) // fails only when client disconnected
}
