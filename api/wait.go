package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// defaultMaxWaiting is the default of Options.MaxWaiting.
const defaultMaxWaiting = 1334

// beginWait counts a request that waits for the end of a job. Without an error, call endWait once.
func (a *api) beginWait() error { return enterWait(a.waiting, "requests that wait") }

func (a *api) endWait() { <-a.waiting }

// beginLeaseWait counts a request that waits for jobs to lease. Consumers take at most three quarters of the requests
// that wait, since they may wait all the time. Without an error, call endLeaseWait once.
func (a *api) beginLeaseWait() error {
	if err := enterWait(a.leaseWaits, "requests that wait for jobs to lease"); err != nil {
		return err
	}
	err := a.beginWait()
	if err != nil {
		<-a.leaseWaits
	}
	return err
}

func (a *api) endLeaseWait() {
	a.endWait()
	<-a.leaseWaits
}

func enterWait(waiting chan struct{}, what string) error {
	select {
	case waiting <- struct{}{}:
		return nil
	default:
		return response.NewProblem(response.TooManyWaiting, fmt.Sprintf(
			"this process serves %d %s, and not one more: retry, or leave out wait", cap(waiting), what,
		))
	}
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
	if err := a.beginWait(); err != nil {
		return err
	}
	defer a.endWait()
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
	reserved := a.reserveChange(&found)
	defer reserved.Release()
	o := newDetailBuffer(w, r, &found, explanation)
	defer o.Free()
	o.Durability(registered.Durability)
	o.Close()
	o.Send(w, status)
}
