// Package sqlite is the embedded engine: a store of one shard in one database file, for one process.
//
// # Durability
//
// Registrations, edits, cancellations, revivals, purges, policies, lanes' settings and alarms are answered after fsync.
// Claims, settlements, grants and carries are committed without one: a power cut takes the last of them back, so that an
// attempt is repeated, never lost, and a rate may be exceeded by them. A process that dies loses nothing that was answered.
//
// # How it works
//
// One goroutine writes. It takes what is waiting, runs it as one transaction and answers everyone: under load a commit
// is shared by many calls, when idle nothing waits for company. Reads have connections of their own and see the last
// commit.
//
// What the engine needs at every call is in memory: the queues' counters and heads, who holds what until when, the
// agenda and the bell, and what keeps a lane back. The database holds all of it that must outlive the process: at Open the
// rows of queues with pending jobs or something that keeps them back are read, and of the jobs only those that were held,
// which go back as lost.
//
// "Ready" is derived: a job that nobody holds and whose moment has come. A claim takes from due to held in one step, so
// a carry only rings, ends lapsed leases and hands out the outbox.
//
// # What it does not do
//
// It serves one process: a second one is refused. Tokens are remembered in memory, since their callers end with the
// process.
//
// A Store is safe for concurrent use.
package sqlite
