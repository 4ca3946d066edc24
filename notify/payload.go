package notify

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
)

// refusalPatience is the time after a request was written during which a refusal over HTTP/2 makes it be sent again. Then
// the body is released: a hanging receiver would keep it for the whole attempt.
const refusalPatience = time.Second

// payload is the body of an attempt whose caller wants to know when it was sent. It is released when it was written to a
// connection: a written request is only sent again if the receiver refuses it over HTTP/2.
type payload struct {
	mu     sync.Mutex
	body   []byte
	reader *bytes.Reader // of the first request
	sent   func()        // nil: called, or not wanted
	timer  *time.Timer
}

// takePayload moves the body from the request to a payload, the only reference to it.
func takePayload(req *job.Request) *payload {
	if req.Sent == nil || len(req.Body) == 0 {
		return nil
	}
	p := &payload{body: req.Body, sent: req.Sent}
	req.Body, req.Sent = nil, nil
	return p
}

// filled returns the request with its body.
func (p *payload) filled(req job.Request) job.Request {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		req.Body = p.body
	}
	return req
}

// feed makes the attempt's first request read the body from the payload.
func (p *payload) feed(r *http.Request) {
	if p != nil {
		p.reader = bytes.NewReader(p.body)
		r.Body = io.NopCloser(p.reader)
	}
}

// written releases the body: at once, or over HTTP/2 after refusalPatience without a refusal.
func (p *payload) written(http2 bool) {
	if !http2 {
		p.release()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent != nil && p.timer == nil {
		p.timer = time.AfterFunc(refusalPatience, p.release)
	}
}

// release releases the written body and calls sent. The end of the attempt waits for that call.
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

// keep keeps the body until the end of the attempt, to send it again; false: it was released.
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
