package client

import (
	"context"
	"net/http"
	"time"
)

// Request is a request of Call.
type Request struct {
	Method string
	Path   string // escaped; it may have a query
	Header http.Header
	Body   []byte // sent as application/json unless Header has a Content-Type; nil: none
	// Wait is the time for which the request asks the server to wait.
	Wait time.Duration
	// Once: a repeat would be applied again, so the request is repeated only if the server has surely not processed it.
	Once bool
}

// Call makes a request of the API as the other methods do, with their bounds and repeats, and returns the body of the
// answer.
func (c *Client) Call(ctx context.Context, r Request) ([]byte, error) {
	var body []byte
	err := c.do(ctx,
		call{method: r.Method, path: r.Path, header: r.Header, body: r.Body, wait: r.Wait, once: r.Once, into: &body})
	return body, err
}
