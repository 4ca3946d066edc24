// Package sim simulates the whole service from a seed: several dispatchers on one store, with carriers, pools,
// schedules, events, consumers, handlers, bulk work and callbacks, in fake time. All of it is test code.
//
// A seed decides what goes wrong and when: calls of the store that fail before or after they take effect, are made
// twice or come late; processes that die, stop, or sleep; receivers that fail, hang or answer late; clocks that step;
// settings that change, those of schedules also within milliseconds of a tick, and while all workers sleep. Its draws
// are keyed by the process, the call and the fake second, so that a seed repeats its steps, deaths and outages at the
// same instants and its faults in the same seconds. What the runtime orders may differ, and so may what follows from
// the jitter of backoffs, which no seed decides: a seed that fails is run again, often.
//
// A ledger that is part of no process records what the store has done and what receivers have got, and checks the
// promises: after each step, and at the end, when all faults are over and every job has ended.
//
//	make sim                          the seeds of make test
//	make sim SEED=17                  one seed, with its story
//	make sim SEEDS=10000              that many, from 1 on
//	make sim SEEDS=1000 FROM=5001     that many, from another one on
package sim
