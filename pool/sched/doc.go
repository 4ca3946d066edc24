// Package sched decides which queues a process claims from, how many jobs, and which claimed job a worker begins next.
// It is a plain data structure: it has no locks, goroutines, timers or clock, and makes no calls. Package pool guards
// it with its mutex, passes the time in and does what it decides.
//
//	MarkRunnable ─▶ queued lanes ─ Pick ─▶ claim ─ Claimed ─▶ prefetched jobs ─ Next ─▶ attempt ─ EndAttempt ─▶ Settle
//	                     ▲                                                                                       │
//	                     └──────────────── a runnable lane with a free slot is queued again ─────────────────────┘
//
// # Fairness
//
// Topics with runnable lanes take turns for the free workers of the process, lanes take turns for those of their topic,
// and shards take turns for both. A lane starts with two slots. An answer doubles them up to the policy's
// lane_concurrency; a timeout, a 429 and a 503 halve them down to one. A lane that was just woken takes turns with all
// those that have a backlog, as in fq_codel (RFC 8290): beside 1,000 lanes with many jobs, its first job is claimed at
// once.
//
// Receivers that hang keep their slots for as long as an attempt may take, which can be ten minutes. So no topic may
// have all workers, and a lane's health is updated while its attempts hang:
//
//	its last attempt                     and one is under way for more than a second
//	was answered within a second  ok                                        slow
//	was answered later            slow                                      slow
//	no answer yet                 unknown                                   timing out
//	timed out                     timing out                                timing out
//
// Lanes that time out get at most half of their topic's workers, and of the process's; together with slow lanes, at
// most three quarters. Together with unknown lanes they get at most seven eighths of their topic's workers.
//
// The fewer attempts are free in the process, the fewer a topic may have: see capacity.Threshold. The bytes of bodies
// are shared in the same way: see byteBudget.
//
// A lane of which two claims in a row bring no job, though it has some and is not blocked, is claimed from alone: its
// next body is longer than the room that the other queues of the claim leave.
//
// # Prefetch
//
// Where attempts end quickly, more jobs are claimed than there are workers: as many as the topic ends in 50 ms, or in
// the time of three exchanges with the store. A worker then begins the next job without waiting for an exchange, and
// goes on with the jobs of one lane, whose connection it has, unless a job waits of a lane without a backlog. Nothing
// is prefetched under a rate, nor while lanes that are slow or time out are queued. All prefetched jobs have at most
// half of what the process's workers do not use.
//
// A lane at its lane_concurrency is prefetched from, too (store.QueueClaim.Ahead): claimed jobs count against it, but
// only attempts must not exceed it. The store gives a process jobs beyond the limit only while no other process has
// jobs of the lane, and this process begins an attempt only while the lane has a free slot. Lanes that are slow, have a
// rate or fewer slots than their limit have nothing beyond it.
//
// # Results
//
//	result                                       slots      breaker
//	a success, whatever its status               doubled    reset; a probe closes it
//	a failure that a function reported           doubled    reset; a probe closes it
//	another answer than the following            doubled    reset; a probe closes it
//	429                                          halved     reset; a probe closes it
//	502, 504, 520 to 530, 598, 599               doubled    a failure
//	503                                          halved     a failure
//	a timeout                                    halved     a failure
//	another error of the receiver or the network unchanged  a failure
//	blocked, invalid, no_url, shutdown,
//	local_resources                              unchanged  unchanged
//
// A lane whose breaker opens or closes has one slot.
package sched
