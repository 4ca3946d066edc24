// Package notify makes one attempt to deliver a job over HTTP, and says what came of it.
//
// A Sender takes a job.Request and returns a policy.Result. It builds and signs the request, sends it over the connections of
// package conn, reads a bounded part of the answer, and names the class of a failure.
//
// # What a Sender promises
//
// One request an attempt. Redirects are answers, and not followed. A request is sent again within the attempt only when the
// connection taken from the pool turned out to be dead before a byte of the request had been written to it, the last time
// over a new connection, or when a receiver refused it unread over HTTP/2 (REFUSED_STREAM; five times at most, and not
// without a body). So receivers that close kept connections soon cost no attempts, but for requests that were under way when
// it happened: these may have been heard.
//
// The body goes out byte for byte, with the time of the attempt, and signed when the request brings a signer. Both are new
// whenever a request is sent. A body whose request asks for that (job.Request.Sent) is released when it was written to its
// connection, however long the receiver takes to answer. Over HTTP/2 that is a second later: a request that the receiver
// refuses after that is not sent again.
//
// One limit an attempt, from the look-up of the name to the last byte of the answer. When it runs out, the result's class
// names the phase in which it did. An attempt that its caller cancels is of class shutdown, whatever the phase. One that fails
// because our own process or machine has no descriptor, memory or port left is of class local_resources, and idle connections
// are closed then. A receiver that refuses a client certificate with TLS 1.3 does so in the middle of the request: that is
// tls_client when its alert was read, and reset when the connection broke before.
//
// Everything is bounded: see packages conn and h1 for connections and headers. MaxRead bytes are read of a body. What is kept
// of it is what the request asks for, at most MaxRead; of the header job.MaxAttemptHeader bytes.
//
// Where Options.ProxyFor names a forward proxy, names must resolve here, and a proxy that decides by names sees addresses
// alone. What the proxy refuses, or breaks, is of class proxy; time that runs out before there is a tunnel is timeout_dial.
//
// No error of ours says what a secret header of the request held, or a proxy's password. Where a receiver repeats such a
// header as it was sent, the result has [redacted] in its place, if it has ten bytes or more.
//
// # What it does not do
//
// It decides nothing: whether to try again is policy's. It keeps no record, holds no cookies, and speaks to no SOCKS proxy.
//
// A Sender is safe for concurrent use.
package notify
