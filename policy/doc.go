// Package policy is Ringback's retry policy: the wait before each retry, which responses are a success, and when to
// give up.
//
// Every function is pure. The caller passes time and randomness; the package reads no clock, keeps no state and does
// not know jobs. Decisions are functions of the small types Terms, Result and Verdict, so that tests are tables and a
// ladder of days runs in fake time.
//
// Settings are resolved field by field, job → lane → topic → built-in, at every attempt, so that changed lane settings
// and topic policies apply to jobs already registered. A zero or nil field is not set.
//
// All values are safe for concurrent use as long as no goroutine writes to them.
package policy
