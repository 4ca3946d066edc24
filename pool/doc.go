// Package pool attempts due jobs: it waits for due queues, claims jobs, hands them to workers, asks policy for the
// verdict and settles. Package pool/sched decides what to claim and what to start; this package makes the calls.
//
// # Data flow
//
// For each shard there are two goroutines. The listener waits for wake-ups and marks their queues as runnable. The
// shard loop makes one exchange with the store at a time: it settles all attempts that have ended and claims from
// runnable queues, both in one call. Attempts that end during an exchange are settled by the next one, so exchanges
// grow under load and are immediate when idle.
//
//	wake-up ─▶ listener ─▶ runnable queues ─┐
//	                                        ├─▶ exchange: settle + claim ─▶ workers ─▶ deliver ─▶ judge ─┐
//	                      settlements ──────┘◀───────────────────────────────────────────────────────────┘
//
// A wake-up names a queue, not a job. A queue stays runnable as long as a claim says that it has more jobs. Other
// processes are notified of a runnable queue that cannot be served, because its topic or the process is full, after 10
// ms, doubling to 250 ms until another queue joins it. The listener keeps listening: a queue that comes due later may
// belong to a topic with room.
//
// While workers have prefetched jobs, an exchange waits until half as many settlements have gathered, for 2 ms at most,
// unless a topic without prefetched jobs is queued: an exchange costs the store much the same whatever it carries. Jobs
// that no worker took within 250 ms are released for other processes, and so are those of lanes in cooldown or paused,
// and all when the process stops.
//
// # Results
//
// A settlement changes its lane for all processes, in the same step, and changes nothing when it is refused. A receiver
// that asked for a pause sets its lane's cooldown (policy.Verdict.LaneWait). Each process counts a lane's failures in a
// row. The settlement that reaches the limit opens the lane's breaker: the store gives nothing of the lane until the
// cooldown is over, then one job, the probe. Its settlement closes the breaker or opens it again. A probe that was not
// attempted (its job had expired) changes nothing, and the next claim brings another.
//
// # Rates
//
// The store counts starts at the claim: a lane's with its queue, a topic's on one shard, which is asked for a permit
// before jobs are claimed. A start counts for the rate's window after the last moment at which it may begin, which is
// the call's beginning plus the start window: a 64th of the rate's window (10 ms to 1 s), four times the duration of
// recent calls, and more after starts that came too late, up to 30 s. An attempt that cannot begin by then is released,
// and costs no retry. Its start counts all the same, as does each that was granted and not used in time. A topic
// requests as many starts as its queued lanes could use at once, and what one claim leaves is for the next. So an
// expired job, which is claimed without an attempt, takes none. A topic without starts requests some once a second,
// together with others of its shard, and other processes are not notified of its lanes. A job that was claimed under
// another rate than its topic has by then is released.
//
// # Local shortages
//
// An attempt that failed because the process or the machine had no descriptor, memory or port left (class
// local_resources) shows nothing of its receiver: its job is released for a second or two, with a line in its history.
// It costs no retry, but its start counts towards the rate. The process then has half as many attempts in flight, not
// counting those that hang, and a sixteenth more every second. While no attempt succeeds, claims pause for up to a
// second.
//
// # Signing
//
// An attempt is signed with its lane's secrets, or else its topic's. A callback is signed with those of its job's
// topic, unless its own lane has secrets. An attempt whose secret cannot be opened is released, and its lane is in
// cooldown for 10 s: nothing is sent unsigned. A lane with secrets does not wait for its topic's.
//
// # Stopping
//
// Run ends in two steps when its context does. It stops claiming: other processes are notified of runnable queues, and
// jobs that an exchange still brings are released. Then it lets attempts end until the grace is over, cancels and
// releases the rest, and writes all settlements.
package pool
