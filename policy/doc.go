// Package policy decides what happens to a job: how long to wait on which rung, whether an answer is a success, when to
// give up.
//
// Every function is pure. Times and randomness are given by the caller, no clock is read, nothing is remembered, and no
// job is known here: decisions are made over the small types Terms, Result and Verdict. That makes the whole behaviour
// a table that tests can hold, and lets the dispatcher walk a ladder of days in fake time.
//
// Settings are resolved field by field, job → topic → built-in, at every attempt, so that a changed topic policy holds
// for jobs already registered. A zero (or nil) field means "not said here".
//
// All values are safe for concurrent use as long as nobody writes to them.
package policy
