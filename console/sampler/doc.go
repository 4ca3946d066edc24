// Package sampler keeps what charts of the console show: attempts a second by verdict and their lateness, in steps of 5
// seconds for an hour.
//
// The API has counters and a live stream of attempts, but no history. So there is one sampler per audience, a token in
// a namespace, from its first visit until ten minutes after its last one. It reads the counters every 5 seconds, and
// follows the stream:
//
//	Visit ─▶ sampler ─▶ GET /v1/stats ─▶ delivered, every step ─▶ ring of steps ─▶ Samples
//	                 ─▶ GET /v1/stream ─▶ verdicts, lateness    ─▶
//
// The counters tell what was delivered where the stream is not enough.
//
// A sampler sees what its token may see, and ends when that is refused. It costs two goroutines and about 100 kB. The
// samplers that were visited longest ago end if there are too many, and all end at the shutdown.
//
// # Estimates
//
// The stream sends at most 100 events a second, and says how many it skipped. Those are taken to be like the ones that
// were sent, except that the number of delivered jobs is then the counter's, which is exact. Lateness is that of the
// attempts that were sent. A step without the stream has the delivered jobs only, by the counter, and one without both
// is a gap.
//
// Known gap: the first two seconds of a stream have the attempts of one process only.
//
// # Costs
//
// The counters of a namespace are read once for all its samplers and pages, and used again for 50 times as long as that
// took, up to 10 seconds: with 100,000 lanes it takes some 30 ms on SQLite, and up to a second on Redis. A step without
// a read has none, and one with a read has the mean since the one before.
package sampler
