// Package storetest tests engines of package store. It has the test cases of the contract (Run), an in-memory reference
// model (NewModel), random sequences of operations that compare an engine with the model, and stores that inject faults
// (Faulty) or intercept calls (WrapShards).
//
// The model is a complete engine without durability. Its code is simple rather than fast, but it handles a hundred
// thousand jobs. It blocks on channels and timers only, so that it works inside a testing/synctest bubble.
//
// The tests accept what the contract does not specify: the order of jobs due in the same millisecond, the order across
// lanes, when retention removes what Sweep would remove (an id beyond its window may go with its purged job),
// superfluous wake-ups, and the starts that a lane without a rate remembers.
//
// The package is for tests only. The model and Faulty are safe for concurrent use.
package storetest
