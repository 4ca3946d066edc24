// Package redis is the engine that keeps jobs in Redis 6.2 or later, so that many processes can share them.
//
// # What it guarantees
//
// Every change is one Lua script over keys of one hash slot, so that it takes effect whole or not at all, on a single
// server, behind sentinels and on a cluster. Every such call leaves a small key under its caller's token for
// store.TokenTTL: a repeat of the call, whoever repeats it, answers as the first did. The clock is Redis's own.
//
// How durable an answer is, is Redis's setting: with appendfsync everysec a power cut can lose the last second, and a
// replica that takes over lacks what it had not got. With Options.Wait the answers to changes wait for more, and say
// what was reached. Open warns when nothing persists at all, and refuses a server that would evict jobs. While Redis's
// memory is full nothing new is taken, and what is there is delivered.
//
// # How it lies in Redis
//
// Each shard's keys carry one hash tag, such as {rb:5.168}: the last number spreads the shards over the slots of a
// cluster. Two hashes hold the jobs (jobs: what they ask for, as a binary record;
// runs: how far they have come, made at the first claim), one their attempts (tries). A queue has a sorted set of due
// jobs, a short list of ready ones and a sorted set of held ones, named by the queue's number. The agenda is a sorted
// set of queue numbers by the next moment at which someone must look; the bell is a list of queue numbers. A queue that
// something keeps back (a hold, its breaker, its rate) has a line for that, its gate. The scripts
// in the folder scripts are the engine's whole behaviour: each begins with a table of its keys, arguments and result, and
// includes files of the folder include (script.go).
//
// A Store is safe for concurrent use. It starts no goroutine that outlives a call.
package redis
