// Package client is a client of Ringback's HTTP API. It imports the standard library only.
//
//	c, err := client.New("https://ringback.internal", client.Options{Token: token})
//	job, err := c.Register(ctx, client.Job{Topic: "order.close", URL: url, Delay: 30 * time.Minute, Body: order})
//
// # Repeats
//
// Requests are repeated after network faults, after 429 and after the statuses of ErrUnavailable, until their context
// ends or Options.MaxRetries is reached, with growing waits and jitter, and not before Retry-After. A request that a
// repeat would apply twice (starting bulk work, creating a token) is repeated only if the server has surely not
// processed it. A job without an ID gets one before its first request, so Register and RegisterAll register each job
// once, however often they repeat. Give calls a context with a deadline: without one they try as long as the server is
// away.
//
// # Errors
//
// An error of the server is a *Problem, which errors.AsType finds, and errors.Is compares with ErrNotFound, ErrConflict
// and the other sentinels by its status.
//
// # Lists
//
// Lists are iterators that request page after page as they are consumed, and nothing more after a break. An error is
// the last pair. Methods whose names end in Page read a single page, from a cursor on.
//
// # Values
//
// Fields that are zero are left out of requests, so they have their defaults. Fields for which zero is a value are
// pointers: Retries: new(0). In responses null is the zero value. States, kinds and reasons that this version does not
// know are passed on as they are, and Raw of a response has all members that the server sent, also unknown ones.
//
// A Client is safe for concurrent use.
package client
