// Package pool attempts what is due: it hears the bell, claims jobs, hands them to per-topic workers, asks policy for the
// verdict and settles.
//
// # How it flows
//
// For each shard there are two goroutines. The listener waits for the bell and heats the queues whose tokens it took.
// The desk makes one trip to the store at a time: it takes every settlement that is waiting and, for the room they leave,
// asks for jobs of hot queues, both in one call. While a trip is under way the next one's settlements gather, so trips
// grow under load and are immediate when idle; there is no timer.
//
//	bell ─▶ listener ─▶ hot queues ─┐
//	                                ├─▶ desk: settle + claim ─▶ topic's workers ─▶ deliver ─▶ judge ─┐
//	            settlements ────────┘◀───────────────────────────────────────────────────────────────┘
//
// A token names a queue, not a job. A queue stays hot as long as a claim says that more is left, and is claimed from
// without another token. A queue that is hot but cannot be served here, because its topic or the process is full, is
// rung again for other processes after 10 ms, doubling to 250 ms. The listener listens even then: what comes due later
// may be of a topic that has room.
//
// # What is fair
//
// Topics with hot lanes take turns for the room of the process, lanes take turns for the room of their topic, and the
// desks of several shards take turns for both. A lane starts with two slots; an answer doubles them up to the policy's
// lane_concurrency, a timeout halves them down to one.
//
// Lanes whose last attempt timed out get at most half of their topic's workers, and of the process's; together with lanes
// whose last answer took more than a second, at most three quarters. The rest is for those that answer quickly or are new.
// So fifty receivers that hang hold at most a hundred slots at first and fifty later, and the others do not feel them.
//
// # Stopping
//
// Run ends in two steps when its context does: it stops claiming (hot queues are rung for others, jobs that a trip still
// brings are released), then it lets attempts end until the grace is over, cancels the rest (they are released, and do
// not count), and settles all.
package pool
