// Package pool attempts what is due: it hears the bell, claims jobs, hands them to per-topic workers, asks policy for the
// verdict and settles.
//
// # How it flows
//
// For each shard there are two goroutines. The listener waits for the bell and heats the queues whose tokens it took.
// The desk makes one trip to the store at a time: it takes every settlement that is waiting and, for the room they leave,
// asks for jobs of hot queues, both in one call. While a trip is under way the next one's settlements gather, so trips
// grow under load and are immediate when idle.
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
// # Ahead of the workers
//
// Where attempts end quickly, more is claimed than there are workers: what the topic ends in three trips' time, so that who
// ends an attempt begins with the next and does not wait for a trip. While there is such stock a trip waits until half as
// many settlements have gathered, for 2 ms at most, unless a topic without stock is in line: a trip costs the store much the
// equalBreakers whatever it carries. The lane's limit holds for what is claimed. Nothing is claimed ahead under a rate, nor while
// lanes in trouble are in line; and all stock has half of what the process's workers do not use. What no worker took within
// 250 ms is put back for other processes, what waits of a lane that is held back or paused meanwhile as well, and all of it
// when the process stops.
//
// # What is fair
//
// Topics with hot lanes take turns for the room of the process, lanes take turns for the room of their topic, and the
// desks of several shards take turns for both. A lane starts with two slots; an answer doubles them up to the policy's
// lane_concurrency; a timeout, a 429 and a 503 halve them down to one.
//
// Receivers that hang keep what they have for as long as an attempt may take, which can be ten minutes. So nobody may have
// everything, and whether a receiver hangs is learned while it does. A lane has, by the answer it gave last and by the attempts
// under way:
//
//	its last attempt                   and one is under way for more than a second
//	it answered within a second  none                                         slow
//	it answered later            slow                                         slow
//	it has not answered yet      unknown                                      stuck
//	it timed out                 stuck                                        stuck
//
// Lanes that are stuck get at most half of their topic's workers, and of the process's; together with slow ones, at most three
// quarters. With those of which nothing is known they get seven eighths of their topic's: the rest is for lanes that answer.
// So fifty receivers that hang hold at most a hundred slots at first and fifty later, and the others do not feel them.
//
// A topic may have the fewer of the process's attempts, the fewer are free: see allowance. So one topic with any number of
// workers, nine, or fifty, all of whose receivers hang, leave room for those that come later.
//
// So it is with the bytes of bodies, which count until the deliverer has sent them and keeps them no more: a topic may hold the
// less of them, the less is free. There its lanes that answer within a second count as one topic, and its others as another. A
// claim brings up to half of what its topics may hold. Only its first job may be longer. It is put back when it does not fit,
// and its lane waits for the room; one job at a time may go beyond the budget, so that the largest has its turn. So there are at
// most MaxBytes of bodies and the longest one in flight, and for each shard one that is put back.
//
// # What an attempt shows of its receiver
//
// Its settlement tells the store, in the settlement's own step, so that all processes heed it and none does when it is
// refused. A receiver that asked to be left alone holds its whole lane back (policy.Verdict.LaneWait). Failures in a row,
// counted by each process for itself, open the lane's breaker: the store gives nothing of the lane until its hold is over,
// then one job to whoever asks first, the probe. Its settlement closes the breaker or opens it again. A probe that was not
// attempted (its job had expired) says nothing, and the next claim brings another. Lanes come back with one slot.
//
//	result                                       slots      breaker
//	a success, whatever its status               doubled    counts anew; a probe closes it
//	an answer but 429, 502, 503 and 504          doubled    counts anew; a probe closes it
//	429                                          halved     counts anew; a probe closes it
//	502, 504                                     doubled    a failure
//	503                                          halved     a failure
//	a timeout                                    halved     a failure
//	another error of the receiver or the way     as before  a failure
//	blocked, invalid, shutdown, local_resources  as before  as before
//
// # Rates
//
// The store counts starts at the claim: a lane's with its queue, a topic's on one shard, which is asked for a permit
// before jobs are claimed. A start counts for the rate's window after the last moment at which it may begin, which is the
// call's beginning and a slack: a 64th of the window (10 ms to 1 s), four times what calls have taken of late, and more
// after starts that came too late, up to 30 s. An attempt that cannot begin by then is put back, and costs no retry. Nor does
// what was claimed and not attempted (it came too late, or its job had expired) cost a start: the topic's goes back with
// the next permit, the lane's with the settlement, both at once. While a topic is short of starts it asks once a second,
// since another process may give some back, in one call with others of its shard, and its lanes are not rung for others.
// An attempt that was claimed under another rate than its topic has by then is put back.
//
// # Our own shortages
//
// An attempt that was not made because the process or the machine had no descriptor, memory or port left (class
// local_resources) shows nothing of its receiver: it is released for a second or two, with a line in its record, costs
// neither retry nor start, and changes neither slots nor breaker. So that not all that is due is claimed in vain, the process
// has half as many attempts in flight from then on, those that hang left aside, and a sixteenth more every second. While none
// gets any further, claims pause for up to a second.
//
// # Proofs
//
// An attempt is signed with its lane's secrets, else its topic's; one that tells of another job, with those of that job's
// topic unless its own lane has some. One whose secret cannot be opened is put back, and its lane held for 10 s: nothing
// is sent that could not prove itself. A lane with secrets of its own does not wait for its topic's.
//
// # Stopping
//
// Run ends in two steps when its context does: it stops claiming (hot queues are rung for others, jobs that a trip still
// brings are released), then it lets attempts end until the grace is over, cancels the rest (they are released, and do
// not count), and settles all.
package pool
