// Package notify makes one attempt to deliver a job over HTTP, and says what came of it.
//
// # What a Sender promises
//
// One request an attempt. Redirects are answers, not orders; net/http's own replays are closed off; a request is sent
// anew within the attempt only when the connection taken from the pool turned out to be dead before a byte of the
// request had been written to it.
//
// One limit an attempt, from the look-up of the name to the last byte of the answer. When it runs out, the result's
// class names the phase in which it did. An attempt that its caller cancels is of class shutdown, whatever the phase.
//
// Everything is bounded: the answer's header (MaxHeader), what is read of its body (MaxRead) and what is kept of both
// (job.MaxAttemptBody, job.MaxAttemptHeader), idle connections, and the time of a dial that nobody waits for any more.
//
// Every address is checked by a Guard at the moment it is dialled, so that a name which resolves differently a second
// time gains nothing.
//
// # What it does not do
//
// It decides nothing: whether to try again is policy's. It keeps no record, knows no proxies, and holds no cookies.
//
// Sender and Guard are safe for concurrent use.
package notify
