package api

import (
	"context"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/store"
)

func (a *api) leaseEndpoints() []endpoint {
	return []endpoint{
		at("POST /v1/topics/{topic}/lease", access.LeaseJobs, ofPath, a.on(onStore.lease), endless),
		at("POST /v1/leases", access.SettleLeases, ofRequest, a.on(onStore.settleLeases), endless),
	}
}

// lease leases jobs of a pulled topic. It waits for the first one.
func (a onStore) lease(w http.ResponseWriter, r *http.Request) error {
	l, err := request.ReadLease(w, r)
	if err == nil {
		err = checkConsumer(r.Context())
	}
	if err != nil {
		return err
	}
	if l.Wait > 0 {
		leave, err := a.enterWait(r, a.leaseWaits)
		if err != nil {
			return err
		}
		defer leave()
	}
	ctx, cancel := waitContext(w, r, l.Wait)
	defer cancel()
	leased, err := a.store.Lease(ctx, l)
	if err == nil && l.Wait > 0 {
		err = a.afterWait(w, r)
	}
	if err != nil {
		a.releaseLeases(r, leased)
		return err
	}
	return a.answerLeases(w, r, leased, func(*response.Buffer) {})
}

// settleLeases ends or extends leases, and leases the next jobs. Reports are never refused because too many requests
// wait: then the answer has the jobs that are there.
func (a onStore) settleLeases(w http.ResponseWriter, r *http.Request) error {
	f, err := request.ReadLeases(w, r)
	if err != nil {
		return err
	}
	wait := time.Duration(0)
	for i := range f.Reports {
		topic := f.Reports[i].Lease.Queue.Topic
		if topic == "" { // the text is not a lease, which is lost
			continue
		}
		if err := checkTopic(r.Context(), topic); err != nil {
			return err
		}
	}
	if f.Next != nil {
		if err := checkTopic(r.Context(), f.Next.Topic); err != nil {
			return err
		}
		if err := checkConsumer(r.Context()); err != nil {
			return err
		}
		if f.Next.Wait > 0 {
			if leave, err := a.enterWait(r, a.leaseWaits); err == nil {
				defer leave()
			} else if f.Next.Wait = 0; len(f.Reports) == 0 {
				return err
			}
		}
		wait = f.Next.Wait
	}
	ctx, cancel := waitContext(w, r, wait)
	defer cancel()
	errs, leased, err := a.store.SettleLeases(ctx, namespaceOf(r), f.Reports, f.Next)
	if err != nil {
		return err
	}
	if wait > 0 {
		if err := a.afterWait(w, r); err != nil {
			a.releaseLeases(r, leased)
			if leased = nil; len(f.Reports) == 0 { // reports are recorded, so the answer must not be refused
				return err
			}
		}
	}
	return a.answerLeases(w, r, leased, func(o *response.Buffer) {
		for _, list := range request.LeaseLists {
			o.Array(list.Name)
			index := 0
			for i := range f.Reports {
				if f.Reports[i].Result == list.Result {
					o.LeaseResult(index, &f.Reports[i], errs[i])
					index++
				}
			}
			o.CloseArray()
		}
	})
}

// checkConsumer refuses to lease jobs to a token that may not read bodies: it would process placeholders.
func checkConsumer(ctx context.Context) error {
	if request.PrincipalOf(ctx).Bodies {
		return nil
	}
	return response.NewProblem(response.Forbidden, "this token may not read bodies, so it cannot lease jobs")
}

// waitContext returns the context of a request that may be answered after a wait.
func waitContext(w http.ResponseWriter, r *http.Request, wait time.Duration) (context.Context, context.CancelFunc) {
	allowWait(w, wait)
	return context.WithTimeoutCause(r.Context(), wait+limits.Timeout, response.ErrTimeout)
}

// releaseLeases releases leased jobs that their client does not receive, also if it has left.
func (a onStore) releaseLeases(r *http.Request, leased []store.LeasedJob) {
	if len(leased) > 0 {
		a.store.ReleaseLeases(context.WithoutCancel(r.Context()), namespaceOf(r), leased)
	}
}

// answerLeases answers with leased jobs, after the members that first writes. It releases those that the client cannot
// have received.
func (a onStore) answerLeases(
	w http.ResponseWriter, r *http.Request, leased []store.LeasedJob, first func(*response.Buffer),
) error {
	sent := false
	defer func() {
		if !sent {
			a.releaseLeases(r, leased)
		}
	}()
	size := int64(0)
	for i := range leased {
		size += answerSize(&leased[i].Job)
	}
	reserved, err := a.bodies.ReserveAnswer(a.holderOf(r), min(size, a.bodies.Large())) // one answer always fits
	defer reserved.Release()
	if err != nil {
		a.releaseLeases(r, leased)
		leased = nil // the settlements are recorded, so the answer must not be refused
	}
	o := response.NewBuffer()
	defer o.Free()
	o.ShowHeadersTo(request.PrincipalOf(r.Context()))
	o.Open()
	first(o)
	response.Objects(o, "items", leased, o.LeasedJob)
	o.Close()
	sent = r.Context().Err() == nil && o.SendNow(w, http.StatusOK) == nil
	return nil
}
