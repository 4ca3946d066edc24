package api

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
)

// enterWait counts a request that waits. Without an error, a *capacity.FullError, call leave once.
func (a *api) enterWait(r *http.Request, waiting *capacity.Semaphore) (leave func(), err error) {
	holder := a.holderOf(r)
	if err := waiting.TryAcquire(holder, 1); err != nil {
		return nil, err
	}
	return func() { waiting.Release(holder, 1) }, nil
}

// allowWait extends the deadlines of a request's connection by a wait, which is none of the client's.
func allowWait(w http.ResponseWriter, wait time.Duration) {
	rc := http.NewResponseController(w)
	until := time.Now().Add(wait + 2*limits.Timeout)
	_ = rc.SetReadDeadline(until) // its end would look as if the client had left
	_ = rc.SetWriteDeadline(until)
}

// afterWait returns an error when the token of a request that has waited is not valid any more. If the process is about
// to stop by now, the answer closes the connection.
func (a *api) afterWait(w http.ResponseWriter, r *http.Request) error {
	closeWhile(a.closing, w)
	_, err := a.callers.Principal(r.Context(), r)
	return err
}

// waitForEnd returns a job once it has ended, or as it is after wait or when the process stops. The request's token
// must still be valid then.
func (a onStore) waitForEnd(w http.ResponseWriter, r *http.Request, last job.Job, wait time.Duration) (job.Job, error) {
	allowWait(w, wait)
	found, err := a.store.WaitForEnd(r.Context(), last, wait)
	if err == nil {
		err = a.afterWait(w, r)
	}
	return found, err
}

// getEnded answers with a job once it has ended, or as it is after wait.
func (a onStore) getEnded(w http.ResponseWriter, r *http.Request, ref job.Ref, wait time.Duration) error {
	leave, err := a.enterWait(r, a.waiting)
	if err != nil {
		return err
	}
	defer leave()
	var last job.Job
	last.Namespace, last.ID = ref.Namespace, ref.ID
	found, err := a.waitForEnd(w, r, last, wait)
	if err != nil {
		return err
	}
	return a.showJob(w, r, &found, a.store.Explain(r.Context(), &found))
}

// answerEnd answers a registration with the job once it has ended, or as it is after wait. It never refuses: if the
// job's state cannot be read any more, the answer says only what was registered.
func (a onStore) answerEnd(w http.ResponseWriter, r *http.Request, status int, registered job.Job, wait time.Duration) {
	limits.Metered(r).Release()
	registered.BodyKind, registered.Body = job.BodyNone, nil // bodies of up to maxBody would wait
	found, err := a.waitForEnd(w, r, registered, wait)
	if err != nil {
		hideBodies(r, &registered)
		response.Answer(w, status, func(o *response.Buffer) { o.UnreadJob(&registered) })
		return
	}
	explanation := a.store.Explain(r.Context(), &found)
	hideBodies(r, &found)
	explanation = hideSettings(r, &found, explanation)
	reserved := a.reserveChange(r, &found)
	defer reserved.Release()
	o := newDetailBuffer(w, r, &found, explanation)
	defer o.Free()
	o.Durability(registered.Durability)
	o.Close()
	o.Send(w, status)
}
