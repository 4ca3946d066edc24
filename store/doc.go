// Package store is the contract of an engine that keeps jobs, the errors it answers with, and the routing of calls over
// an engine's shards.
//
// # What an engine promises
//
// One place: an unfinished job's id is in exactly one of due, ready, held and outbox, and its record exists. A finished
// one is among the dead, the delivered or the cancelled, or gone by retention. (An outbox entry stands until the job it
// holds stands in its own queue: for that moment both exist, and the second insertion finds the first.)
//
// Atomic, and repeatable: every method that changes something takes effect whole or not at all, and takes a Token of
// its caller. The same call with the same token within TokenTTL answers as the first did and changes nothing more,
// so that a client which lost the reply may send it again.
//
// Fenced: a held job belongs to the token of the claim that took it, until a settlement with that token or the lapse of
// its lease. A settlement with any other token gets ErrLeaseLost and changes nothing.
//
// One clock: the engine's, in integer milliseconds. Callers hand over waits, never instants; the exceptions are the
// instants a client chose itself (RunAt, ExpiresAt).
//
// Bounded: no call works on more than it was told to, or than the bounds named here.
//
// # Errors
//
// A method that could not reach its data, or could not write them, returns an error for which errors.Is(err,
// ErrUnavailable) holds; whether the call took effect is then unknown, and it may be repeated with its token. Faults
// that a caller can act on are the sentinels and types of this package. A method whose context ends returns the
// context's error (wrapped); the call may have taken effect.
//
// All methods are safe for concurrent use.
package store
