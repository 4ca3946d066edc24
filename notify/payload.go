package notify

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/conn"
)

// payload is the body of an attempt whose caller wants to know when it was sent. It is released when it was written to
// a connection: a hanging receiver would keep it for the whole attempt. If the request may have to be sent again after
// that, it is released conn.RaceWindow later.
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

// written releases the body: at once, or unless that is final after conn.RaceWindow.
func (p *payload) written(final bool) {
	if final {
		p.release()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sent != nil && p.timer == nil {
		p.timer = time.AfterFunc(conn.RaceWindow, p.release)
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
