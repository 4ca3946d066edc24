package notify

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
)

// refusalPatience is for how long a receiver may give a request back over HTTP/2 whose body was written, so that it is sent
// again. After that the body is let go: one that hangs would keep it for as long as the attempt may take.
const refusalPatience = time.Second

// A payload is the body of an attempt whose caller wants to know when it was sent. It is let go when it was written to a
// connection: from then on a request is not sent again within its attempt, but for one that a receiver gives back over HTTP/2.
type payload struct {
	mu     sync.Mutex
	body   []byte
	reader *bytes.Reader // what the first request is written from
	sent   func()        // nil: it was called, or will not be
	timer  *time.Timer
}

// takePayload takes the body out of the request, so that nothing else keeps it.
func takePayload(req *job.Request) *payload {
	if req.Sent == nil || len(req.Body) == 0 {
		return nil
	}
	p := &payload{body: req.Body, sent: req.Sent}
	req.Body, req.Sent = nil, nil
	return p
}

// filled is the request with its body.
func (p *payload) filled(req job.Request) job.Request {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		req.Body = p.body
	}
	return req
}

// feed has the attempt's first request read the body from here.
func (p *payload) feed(r *http.Request) {
	if p != nil {
		p.reader = bytes.NewReader(p.body)
		r.Body = io.NopCloser(p.reader)
	}
}

// written lets the body go: at once, or over HTTP/2 when the receiver has not refused the request for a while.
func (p *payload) written(http2 bool) {
	if http2 {
		p.releaseLater()
		return
	}
	p.release()
}

// release lets the body go: it was written, and nobody reads it any more. The end of the attempt waits for the caller to take
// note of it.
func (p *payload) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent == nil {
		return
	}
	p.body = nil
	p.reader.Reset(nil)
	p.sent()
	p.sent = nil
}

// releaseLater releases the body after refusalPatience.
func (p *payload) releaseLater() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent != nil && p.timer == nil {
		p.timer = time.AfterFunc(refusalPatience, p.release)
	}
}

// keep keeps the body until the attempt's end, since it is to be sent again; false: it is gone.
func (p *payload) keep() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = nil
	if p.timer != nil {
		p.timer.Stop()
	}
	return p.body != nil
}
