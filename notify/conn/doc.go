// Package conn sends the requests of attempts, and opens, shares and bounds the connections that they need.
//
// A Pool has a Transport per client certificate. A Transport sends plain HTTP requests by package h1 where that
// supports them, and others by net/http's transport: https (HTTP/2 if the receiver supports it), longer bodies, hosts
// that are not ASCII or addresses with a zone, requests through a forward proxy, and all requests on systems other than
// Unix.
//
// A request's context is a Progress. It records the phase of the request, and reports after a failure whether it may be
// sent again. Replays by net/http are disabled.
//
// # What it guarantees
//
// A Guard checks every address when it is dialled. For a host behind a forward proxy, this process resolves the name,
// the Guard checks its addresses, and the proxy opens a tunnel (CONNECT) to one of them.
//
// Bytes after a response end the connection and are not read as the response to another request, unless they arrive
// after that request was written: then they cannot be distinguished. So an HTTP/1 connection serves one queue only.
// Over HTTP/2, where responses name their requests, all queues share connections.
//
// A connection gets its last request at an age of at most two minutes (see generation), also through a proxy, so that a
// host whose address changes is followed. A request under way is not ended by that.
//
// There are bounds on idle connections, client certificates with connections (64), the bytes and certificates of a TLS
// handshake (32 KiB, 10), a response's header (see h1), the TLS connections opened for one request (MaxDials), and the
// duration of a dial: the deadline of the request that started it.
//
// TLS versions are 1.2 and 1.3. Requests with different client certificates share no connections and no sessions.
//
// # What it does not do
//
// It builds no requests, reads no bodies, follows no redirects, sends no request twice, and supports no SOCKS proxies.
//
// Pool and Transport are safe for concurrent use. A Progress belongs to one request at a time.
package conn
