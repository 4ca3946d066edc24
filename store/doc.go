// Package store is the contract of an engine that stores jobs, and the errors that engines return. Package router calls
// the shards of one.
//
// # Guarantees of an engine
//
// One place: the id of an unfinished job is in exactly one of due, ready, claimed and outbox, and its record exists. (A
// claimed job is running in the API; the keys and scripts of Redis call it held.) A finished job is in the list of
// delivered, cancelled or dead jobs, or retention has removed it. The one exception: an outbox entry is removed after
// its job was inserted into the job's queue. While both exist, another insertion finds the job and changes nothing.
//
// Atomic and repeatable: each method that changes data takes effect completely or not at all, and takes a Token. A
// repeat of the call with the same token within TokenTTL returns the first result and changes nothing, so that a client
// that lost the reply can send the call again. That holds in the process that made the call, unless Settle was given a
// shared token (Token.IsShared): then it holds over restarts, also if the jobs were edited, claimed again or removed.
//
// Fenced: a claimed job belongs to the token of its claim until a settlement with that token or the expiry of the
// lease. A settlement with another token fails with ErrLeaseLost and changes nothing.
//
// One clock: the engine's, in integer milliseconds. Callers pass durations. The only instants that they pass are RunAt
// and ExpiresAt, which clients choose.
//
// Bounded: each call works on at most the number of items that its arguments or the constants of this package allow.
//
// # Rules of a claim
//
// Holding back: a queue returns no jobs while it is paused, in a cooldown, or at its lane's concurrency or rate, nor
// while its topic is delivered in another way than QueueClaim.Deliver. Then More is not set, and the queue is notified
// in its own group, without delay when a cooldown or a rate lets it continue.
//
// Concurrency: the jobs claimed from a queue are at most its lane's concurrency. While all are leased to one owner, and
// neither a rate nor an open breaker limits the queue, that owner may have QueueClaim.Ahead more, of which it attempts
// no more at a time than the concurrency; so no two owners together do. An engine may refuse this.
//
// Order: an ordered queue (policy.Limits.Ordered) returns one job at a time, in the order of registration. A job's turn
// lasts from FirstDueAt until it has ended, also while it waits for another attempt, and is not skipped; a revived
// job has that of its registration. What is in flight when a queue becomes ordered ends first.
//
// Rate: in no window of the rate's length are more jobs claimed than it allows, over all callers. A start counts as if
// it happened as late as it may (ClaimRequest.Slack). Up to CountedStarts starts per window are counted exactly; of
// larger rates a start may count for 1/64 of the window longer. A job whose time to live is over is no start.
//
// Probe: while the breaker of a lane is open, its queue returns one job at a time, after the cooldown.
//
// # Errors
//
// A method that cannot reach its data, or cannot write, returns an error for which errors.Is(err, ErrUnavailable) is
// true. It is then unknown whether the call took effect; the caller may repeat it with its token. Errors that a caller
// can act on are the sentinels and types of this package. A method whose context ends returns the context's error
// (wrapped); the call may have taken effect.
//
// All methods are safe for concurrent use.
package store
