package notify

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/job"
)

// maxRefusals is how often a request is sent again that the receiver refused unread over HTTP/2. The first time needs no
// wait: by then it is known how many requests the receiver admits. Before the second time is a wait of refusalWait, which
// doubles each time after.
const (
	maxRefusals = 5
	refusalWait = 50 * time.Millisecond
)

// resend sends the attempt's request again over a connection from the pool, and then over a new one if that is dead too. So
// a receiver that closes connections soon costs no attempt, however many closed ones are in the pool.
func (s *Sender) resend(a *attempt, by *route, req job.Request) (resp *http.Response, err error) {
	for _, transport := range []*transport{by.transport, by.alone} {
		a.again()
		var r *http.Request
		if r, err = s.request(a, time.Now(), a.payload.filled(req)); err != nil {
			return nil, err
		}
		if resp, err = transport.RoundTrip(r); err == nil || !a.safeToResend() {
			break
		}
	}
	return resp, err
}

// retryRefusedStream sends the attempt's request again for as long as the receiver refuses it unread.
func (s *Sender) retryRefusedStream(a *attempt, by *route, req job.Request, err error) (resp *http.Response, _ error) {
	for n := 0; n < maxRefusals && a.refused(err); n++ {
		if n > 0 && !a.wait(refusalWait<<(n-1)) {
			break
		}
		resp, err = s.resend(a, by, req)
	}
	return resp, err
}

// wait reports whether the attempt still has time after d.
func (a *attempt) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.Done():
		return false
	}
}
