// Package metrics tells Prometheus what an owner of callbacks watches: what is registered, what comes of attempts, how
// late they are, what waits, and how the store does.
//
// A Metrics has a registry of its own; there is no global state. It hears of attempts as a pool.Observer, of the store
// as a decorator around it, and asks a Source for the rest when it is scraped:
//
//	m := metrics.New(…)
//	jobs := m.Store(engine)          // everything above the engine uses this
//	d := dispatcher.New(… jobs … m)  // the pool's observer
//	m.Watch(d)
//	mux.Handle("GET /metrics", m.Handler())
//
// # The metrics
//
// Those marked "store" tell of the store, so that every process on it shows the same number; the others tell of this
// process. A counter begins with 0 when its process starts.
//
//	name                               type       labels                unit      of
//	ringback_attempts_total            counter    topic,verdict,outcome jobs      process
//	ringback_lateness_seconds          histogram  topic                 seconds   process
//	ringback_attempt_duration_seconds  histogram  topic                 seconds   process
//	ringback_jobs_inserted_total       counter    topic,outcome         jobs      process
//	ringback_jobs_ended_total          counter    topic,state,reason    jobs      process
//	ringback_settlements_total         counter    outcome               attempts  process
//	ringback_jobs                      gauge      topic,state           jobs      store
//	ringback_jobs_finished             gauge      topic,state           jobs      store
//	ringback_oldest_due_seconds        gauge      topic                 seconds   store
//	ringback_lanes_open                gauge      topic                 lanes     store
//	ringback_store_up                  gauge      -                     0,1       process
//	ringback_store_seconds             histogram  method,outcome        seconds   process
//	ringback_bell_failures_total       counter    outcome               calls     process
//	ringback_carried_total             counter    what                  jobs      process
//	ringback_clock_steps_total         counter    direction             steps     process
//	ringback_swept_total               counter    what                  jobs,ids  process
//	ringback_store_repairs_total       counter    kind                  repairs   process
//	ringback_workers                   gauge      -                     attempts  process
//	ringback_in_flight                 gauge      -                     attempts  process
//	ringback_log_lines_dropped_total   counter    -                     lines     process
//	ringback_build_info                gauge      version,go            1         process
//
// What each of them means:
//
//   - attempts: each claimed job, by the verdict over it (delivered, again, dead, released) and by the outcome of its
//     request: the class of the status (1xx to 9xx), or a policy.ErrorClass, or none when no request was made. Counted when
//     the verdict falls, whatever becomes of its record.
//   - lateness: from the moment at which an attempt was due, by the store's clock, to its beginning. Of requests alone.
//   - attempt duration: of requests that were sent, or tried to be; not of those that the guard refused, and not of those
//     that a stop of this process cut short.
//   - inserted: every job given to the store, callbacks among them: created, existing (the same registration again), conflict
//     (another under the same id), failed.
//   - ended: deliveries (reason none) and deaths (their policy.Reason) that the store has recorded, once each. What was
//     cancelled is in jobs_finished alone; a job that was cancelled during its last attempt counts as dead here when that
//     one was to be its end.
//   - settlements: recorded; lease_lost, when the attempt will be repeated, or has been elsewhere; failed, when the store did
//     not answer, after which the same are sent again.
//   - jobs, jobs_finished: scheduled, ready, running; delivered, dead, cancelled. All six together are all jobs ever
//     registered. A revival takes a job out of the finished, so these are gauges.
//   - oldest due: for how long the unheld job that is due longest has been so, by this process's clock. It grows while a
//     topic is paused, and while a lane is held back.
//   - lanes open: those whose breaker is open or waits for its probe.
//   - store up: whether the counts of this scrape could be read. When not, what else is marked "store" is missing.
//   - log lines dropped: the log never delays deliveries; its buffer holds 1 MiB of lines that stderr has not taken.
//   - store: each answer of the store by method, in snake case, waits for the bell left out. Outcome refused is the caller's
//     own doing (no such job, another version or state, another leader, a caller that went away), unavailable the store's
//     absence or silence, error a fault to look into. A carrier's rounds are the method carry.
//   - bell failures: waits for the bell that ended in a fault, by unavailable and error.
//   - carried: jobs that went to ready (moved), came back from a lapsed lease (lapsed), or were given out from the outbox to
//     be inserted (outbox; the same one more than once, when its insertion is not seen to succeed).
//   - clock steps: how often the store's clock was found to have been set ahead or back by half a second or more, once for
//     each shard that this process carries.
//   - swept: ended jobs that retention removed (jobs), and ids of ended jobs that were forgotten (ids).
//   - workers, in flight: how many attempts this process may make at once, and how many it has claimed, asked for, or not
//     settled yet.
//   - build info: 1, for its labels.
//
// The Go runtime's (go_…) and the process's (process_…) metrics come with them.
//
// # What to alert on
//
// Deliveries stand still: oldest due grows. They are late: lateness. Receivers fail: the share of verdicts other than
// delivered, lanes open. Work for people: jobs ended with state dead. Work is repeated: settlements with lease_lost,
// carried with lapsed. The store is away: store up is 0, store with outcome unavailable or error. No carrier: no calls of
// carry with outcome ok, all processes together. docs/metrics.md has the expressions.
//
// # Labels are bounded
//
// Of all labels only the topic is chosen by clients. At most Options.Topics of them have series of their own, in order of
// appearance in this process, and keep them until it ends; the others are counted together under topic="_other". Lanes,
// hosts, URLs and jobs are never labels. The namespace is none either: topics of one name are counted together.
//
// # What it costs
//
// An attempt costs a few atomic additions and no memory; a call of the store two readings of the clock and one addition, and a few
// for each of its items. The store is asked for its counts at most once in Options.Fresh, however many scrapes come; that
// reads Totals, and the rows of the topics that have series. A scrape waits for it no longer than Options.Timeout, and
// is answered without it then.
//
// All methods are safe for concurrent use.
package metrics
