// Package sqlite is the embedded engine: a store of one shard in one database file, for one process.
//
// # Durability
//
// Registrations, edits, cancellations, revivals, purges, policies, lanes' settings and alarms are answered after fsync.
// Claims, settlements, permits and carrier rounds are committed without fsync: a power cut takes the last of them back,
// so that an attempt is repeated, never lost, and a rate may be exceeded by them. A process that dies loses nothing
// that was answered.
//
// # How it works
//
// One goroutine writes. It takes the waiting calls, runs them as one transaction and answers all of them. Reads have
// separate connections and see the last commit.
//
// Counters and heads of queues, leases, throttles, the agenda and the wake-ups are in memory. The database has all of
// it that must survive the process. Open reads the queues that are pending or throttled, and of the jobs only those
// that were claimed, whose attempts end as lost.
//
// "Ready" is derived: a job without a lease whose due time has come. A claim leases due jobs in one step, so Carry only
// sends wake-ups, expires leases and returns the outbox.
//
// DESIGN.md says more.
//
// # What it does not do
//
// It serves one process: a second one is refused. Tokens are remembered in memory, since their callers end with the
// process.
//
// A Store is safe for concurrent use.
package sqlite
