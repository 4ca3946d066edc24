// Package h1 is an HTTP/1.1 client for one connection at a time.
//
// It exists because net/http's transport has two goroutines a connection and hands each request from one to the next, which
// costs more than what they do. A Conn does all work in its caller's goroutine. net/http's ReadResponse reads the responses.
//
// # What it does
//
// It writes a request with a body of known length, reads the final response, skips interim ones (1xx, not 101), and says
// whether the connection can serve another request. It bounds the header of a response while it comes in (MaxHeader,
// MaxHeaderLines). A response is returned though the request could not be written whole: a receiver may answer, and hang up,
// without reading all of it.
//
// Nobody reads a connection that is idle. What has come over it meanwhile, its end or bytes that are no response, shows when
// HasUnread looks at the socket. That look and the first byte of a request are some microseconds apart: what comes between
// cannot be distinguished from a response. A receiver that sends something before the first request of a connection fails it with
// ErrSpokeFirst.
//
// # What it does not do
//
// No TLS: HasUnread does not see what TLS has read ahead. No request bodies longer than MaxBody: it does not read while it
// writes, so a receiver that answers before it has read such a body would block. No chunked requests, trailers of requests,
// Expect, pipelining, upgrades, redirects, cookies, compression or retries. It sets no deadlines. It neither dials nor pools
// connections.
//
// It trusts its caller with the request: the method is a token, header names and values hold no line breaks, and the
// request target holds neither blanks nor control characters.
//
// A Conn serves one caller at a time.
package h1
