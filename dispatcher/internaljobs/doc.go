// Package internaljobs runs the jobs of store.GroupInternal: Ringback's own work, such as bulk work, which no request
// makes.
//
// A job's topic selects its Handler, which makes one bounded step. The step's settlement replaces the job's body,
// writes new jobs to the outbox, and ends the job or makes it due again, all at once. So a job whose process dies
// repeats at most its last step, from the body before it: a Handler must be prepared for that.
//
// Any process that delivers may make the next step. A process makes the steps of one queue one after the other. Jobs
// whose step fails are repeated with growing pauses, without an end.
package internaljobs
