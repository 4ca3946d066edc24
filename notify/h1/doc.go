// Package h1 is an HTTP/1.1 client for one connection at a time.
//
// It exists for speed: net/http's transport passes each request through two goroutines per connection. A Conn works in
// the goroutine of its caller. Responses are parsed by net/http's ReadResponse.
//
// # What it does
//
// It writes a request with a body of known length, skips interim responses (1xx, not 101), reads the final response,
// and reports whether the connection is reusable. It bounds the header of a response while reading it (MaxHeader,
// MaxHeaderLines). It returns a response even if the request could not be written whole: a receiver may respond and
// close the connection without reading all of it.
//
// Idle connections are not read. HasUnread checks the socket for an end or surplus bytes. Bytes that arrive in the
// microseconds between that check and the first byte of a request cannot be distinguished from a response. Bytes before
// the first request of a connection fail with ErrSpokeFirst.
//
// # What it does not do
//
// No TLS: HasUnread does not see bytes buffered by TLS. No request bodies longer than MaxBody: it does not read while
// it writes, so a receiver that responds before it has read such a body would block. No chunked requests, request
// trailers, Expect, pipelining, upgrades, redirects, cookies, compression or retries. It sets no deadlines, does not
// dial and does not pool connections.
//
// The caller must validate the request: the method is a token, header names and values contain no line breaks, and the
// request target contains no spaces and no control characters.
//
// A Conn serves one caller at a time.
package h1
