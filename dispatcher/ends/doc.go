// Package ends lets callers wait for the end of a job.
//
// A Watcher learns at once which jobs its process may have ended. For ends by other processes it asks each shard every
// PollEvery, or every PollAloneEvery if there can be no others, in one call for up to store.MaxBatch jobs. While nobody
// waits it makes no calls.
//
// A Watcher is safe for concurrent use. It does not bound the number of callers that wait.
package ends
