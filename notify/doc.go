// Package notify makes one attempt to deliver a job over HTTP and returns its result.
//
// A Sender takes a job.Request and returns a policy.Result. It builds and signs the request, sends it over the
// connections of package conn, reads a bounded part of the response, and classifies errors.
//
// # What a Sender guarantees
//
// An attempt is one request. Redirects are responses and are not followed. A request is sent again within its attempt
// in three cases, only while its body is kept:
//
//   - An idle connection turned out to be dead before a byte of the request was written to it. The last try uses a new
//     connection.
//   - The receiver gave it back unread over HTTP/2, with REFUSED_STREAM or with a GOAWAY whose last stream is lower: at
//     most five times.
//   - A reused connection ended within conn.RaceWindow without a byte of a response: once, over a new connection. The
//     receiver may have processed the request. It recognises the second one by its webhook-id, as it must a later
//     attempt.
//
// So receivers that close idle connections cost no attempts. Neither do those that close HTTP/2 connections with
// GOAWAY, except for requests that they have taken and do not answer.
//
// The body is sent byte for byte, with the time of the attempt, and signed if the request has a signer. Time and
// signature are new whenever a request is sent. With job.Request.Sent the body is released when it was written to its
// connection, however slow the receiver; over HTTP/2 and over a reused connection conn.RaceWindow later.
//
// An attempt has one limit, from the DNS lookup to the last byte of the response. The class of a timeout names its
// phase. An attempt cancelled by its caller has class shutdown. An attempt that fails because this process or machine
// has no descriptor, memory or port left has class local_resources, and idle connections are closed. A receiver that
// refuses a client certificate with TLS 1.3 does so during the request: the class is tls_client if its alert was read,
// and reset if the connection broke before.
//
// Everything is bounded: for connections and headers see packages conn and h1. At most MaxRead bytes of a body are
// read. The result has the part of the body that the request wants, and at most job.MaxAttemptHeader bytes of the
// header.
//
// With a forward proxy (Options.ProxyFor) names are resolved by this process, and the proxy gets addresses only. Errors
// of the proxy have class proxy; a timeout before the tunnel is open has class timeout_dial.
//
// Results contain no secret header of the request and no password of a proxy. If a receiver repeats a secret header of
// at least ten bytes, it is replaced by [redacted].
//
// # What it does not do
//
// It decides nothing: package policy decides about retries. It stores nothing, has no cookies, and supports no SOCKS
// proxies.
//
// A Sender is safe for concurrent use.
package notify
