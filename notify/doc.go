// Package notify makes one attempt to deliver a job over HTTP and returns its result.
//
// A Sender takes a job.Request and returns a policy.Result. It builds and signs the request, sends it over the connections of
// package conn, reads a bounded part of the response, and classifies errors.
//
// # What a Sender guarantees
//
// An attempt is one request. Redirects are responses and are not followed. A request is sent again within its attempt in two
// cases: an idle connection turned out to be dead before a byte of the request was written to it (the last try uses a new
// connection), or a receiver gave it back unread over HTTP/2 (REFUSED_STREAM, or a GOAWAY with a lower last stream; at most
// five times, and only while the body is kept). So receivers that close idle connections early cost no attempts, except for requests in flight at that time: these
// may have been processed.
//
// The body is sent byte for byte, with the time of the attempt, and signed if the request has a signer. Time and signature
// are new whenever a request is sent. With job.Request.Sent the body is released when it was written to its connection,
// however slow the receiver. Over HTTP/2 it is released a second later: a request refused after that is not sent again.
//
// An attempt has one limit, from the DNS lookup to the last byte of the response. The class of a timeout names its phase. An
// attempt cancelled by its caller has class shutdown. An attempt that fails because this process or machine has no descriptor,
// memory or port left has class local_resources, and idle connections are closed. A receiver that refuses a client
// certificate with TLS 1.3 does so during the request: the class is tls_client if its alert was read, and reset if the
// connection broke before.
//
// Everything is bounded: for connections and headers see packages conn and h1. At most MaxRead bytes of a body are read. The
// result has the part of the body that the request wants, and at most job.MaxAttemptHeader bytes of the header.
//
// With a forward proxy (Options.ProxyFor) names are resolved by this process, and the proxy gets addresses only. Errors of
// the proxy have class proxy; a timeout before the tunnel is open has class timeout_dial.
//
// Results contain no secret header of the request and no password of a proxy. If a receiver repeats a secret header of at
// least ten bytes, it is replaced by [redacted].
//
// # What it does not do
//
// It decides nothing: package policy decides about retries. It stores nothing, has no cookies, and supports no SOCKS proxies.
//
// A Sender is safe for concurrent use.
package notify
