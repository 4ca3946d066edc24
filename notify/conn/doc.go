// Package conn sends the requests of attempts, and opens, shares and bounds the connections that they need.
//
// A Pool has a Transport for each client certificate. A Transport sends a request over http that package h1 supports by that
// package, and all others by net/http's transport: those over https, by HTTP/2 where the receiver speaks it, those with longer
// bodies, those to names that are not ASCII or addresses with a zone, those through a forward proxy, and all on systems that
// are no Unix.
//
// A request's context is a Progress, which records how far the request came, and says after a failure whether it may be sent
// again. net/http's own replays are closed off.
//
// # What it guarantees
//
// Every address is checked by a Guard at the moment it is dialled. Where a forward proxy leads to a host, this process resolves
// the name, the Guard checks its addresses, and the proxy is asked for a tunnel (CONNECT) to one of them.
//
// What a receiver sends beyond a response ends the connection, and is not taken for the response to another request, unless it
// comes after that request was written: then nothing tells the two apart. So a connection over HTTP/1 serves requests of one
// queue alone. Over HTTP/2, where responses name their requests, all queues share it.
//
// Bounded are idle connections, client certificates with connections (64), what a receiver may send in a TLS handshake (32
// KiB, 10 certificates), a response's header (see h1), connections over TLS that are opened for one request (MaxDials), and
// the time of a dial that nobody waits for any more: that of the request it was begun for.
//
// TLS is of version 1.2 or 1.3. Requests with different client certificates share neither connections nor sessions.
//
// # What it does not do
//
// It neither builds requests nor reads bodies, follows no redirects, and sends no request twice. It speaks to no SOCKS proxy.
//
// Pool and Transport are safe for concurrent use. A Progress belongs to one request at a time.
package conn
