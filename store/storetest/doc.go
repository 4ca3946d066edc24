// Package storetest holds what engines are measured against: the contract of package store as sentences of behaviour
// (Run), an in-memory reference model of it (NewModel), random sequences of operations that compare the two, and a
// decorator that loses calls and replies (Faulty).
//
// The model is a complete engine without durability. It is written to be plainly right rather than fast, but bears a
// hundred thousand jobs; it blocks on channels and timers only, so that it works inside a testing/synctest bubble.
//
// What the contract leaves to an engine is left open here too: the order of jobs due in the same millisecond, the order
// across lanes, whether a due job that nobody holds counts as scheduled or as ready, when retention removes what Sweep
// would remove (an id whose window has passed may go with its purged job), whether a bell is rung once more than needed,
// what a lane remembers of its starts while it has no rate, and which of two grants of one millisecond is given back.
//
// Everything here is for tests only. The model and Faulty are safe for concurrent use.
package storetest
