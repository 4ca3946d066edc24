// Package pull leases the jobs of pulled topics to clients that ask for them, and settles what clients report.
//
// # Leases
//
// A lease is a claim in the store: the lane's limits, rates, pause, time to live and order are those of all claims, and
// so is the token that rejects late settlements. The client gets a text (store.ClientLease) that names the job and the
// token and has what policy needs to judge the attempt, so that any process can settle it, also after a restart. The
// text is authenticated with a key that the store's processes share: a lease that was changed is lost.
//
// # Waiting clients
//
// A process waits for the wake-ups of all pulled topics that clients ask for, with one call for each shard. A topic is
// left out again some seconds after its last client has left. A wake-up names a queue, not a job. The queue is runnable
// from then on until a claim finds that it has no more claimable jobs. A runnable queue wakes one client, which claims
// from up to claimQueues runnable queues whose lanes it asks for, in turns and with an equal share of its jobs for
// each, and wakes the next client when there is more. So 1,000 waiting clients make no calls. Their number is for
// callers to bound. Other processes are notified of runnable queues that no client here asks for.
//
// A client that leaves while it waits has claimed nothing. What a claim brings that no client takes is released.
//
// # Settlements
//
// A client reports that an attempt is done, to be retried, dead, or takes longer. policy.Judge decides about retries,
// with a wait of the client or that of the ladder. The claim of the next jobs goes in the same call as a shard's
// settlements.
package pull
