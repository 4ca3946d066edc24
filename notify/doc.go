// Package notify makes one attempt to deliver a job over HTTP, and says what came of it.
//
// # What a Sender promises
//
// Requests over http, with bodies up to 16 KiB, go over connections of package h1. All others go by
// net/http's transport: those over https, by HTTP/2 where the receiver speaks it, longer ones, those to names that are not
// ASCII or addresses with a zone, those through a forward proxy, and all on systems that are no Unix.
//
// One request an attempt. Redirects are answers, not orders; net/http's own replays are closed off; a request is sent
// anew within the attempt only when the connection taken from the pool turned out to be dead before a byte of the
// request had been written to it, the last time over a connection of its own, or when a receiver gave it back over HTTP/2
// as one that it has not looked at (REFUSED_STREAM; five times at most, and not without a body). So receivers that close kept
// connections soon cost no attempts, but for requests that were under way when it happened: these may have been heard.
//
// What a receiver sends beyond an answer ends the connection, and is not taken for the answer to another attempt, unless
// it comes after that one's request was written: then nothing tells the two apart. So a connection over HTTP/1 serves
// attempts of one queue alone. Over HTTP/2, where answers name their requests, all share it.
//
// A body whose request asks for that (job.Request.Sent) is let go when it was written to its connection, however long the
// receiver takes to answer. Over HTTP/2 that is a second later: a request that the receiver gives back after that is not sent
// again.
//
// The body goes out byte for byte, with the time of the attempt, and signed when the request brings a signer. Both are new
// whenever a request is sent.
//
// One limit an attempt, from the look-up of the name to the last byte of the answer. When it runs out, the result's
// class names the phase in which it did. An attempt that its caller cancels is of class shutdown, whatever the phase.
//
// An attempt that fails because our own process or machine has no descriptor, memory or port left is of class local_resources.
// The connections that lie idle are closed then.
//
// Everything is bounded: what a receiver may send in a TLS handshake (32 KiB, 10 certificates), the answer's header
// (h1.MaxHeader, h1.MaxHeaderLines), what is read of its body (MaxRead) and what is kept of both (what the request asks for, at
// most MaxRead; job.MaxAttemptHeader), idle connections, the client certificates that have connections of their own (64),
// the connections over TLS that one attempt opens (5), and the time of a dial
// that nobody waits for any more.
//
// Every address is checked by a Guard at the moment it is dialled, so that a name which resolves differently a second
// time gains nothing.
//
// TLS is of version 1.2 or 1.3. Attempts with different client certificates share neither connections nor sessions.
//
// No error of ours says what a secret header of the request held, or a proxy's password. Where a receiver repeats such a
// header as it was sent, [redacted] stands in its place in the result, if it has ten bytes or more.
//
// # Forward proxies
//
// Where Options.ProxyFor names a proxy, each connection is a tunnel through it (CONNECT), for http as well as for https.
// The guard judges the target, not the proxy, which is the operator's. This process resolves the name, and asks the proxy
// for a tunnel to an address that was checked; the receiver is told the name, in its Host field and over TLS. So a name
// that resolves differently for the proxy gains nothing. It costs something: names must resolve here, and a proxy that
// decides by names sees addresses alone. At most four addresses of a name are tried. What the proxy refuses, or breaks, is
// of class proxy; time that runs out before there is a tunnel is timeout_dial.
//
// # What it does not do
//
// It decides nothing: whether to try again is policy's. It keeps no record, holds no cookies, and speaks to no SOCKS proxy.
//
// Sender and Guard are safe for concurrent use.
package notify
