// Package metrics exports Prometheus metrics of registrations, attempts, lateness, the backlog and the store.
//
// A Metrics has its own registry; there is no global state. It observes attempts as a pool.Observer, the store as a
// decorator, and reads the rest from a Source at a scrape:
//
//	m := metrics.New(…)
//	jobs := m.Store("main", engine)  // everything above the engine uses this
//	d := dispatcher.New(… jobs … m)  // the pool's observer
//	m.Watch(dispatcher.NewService(d, …))
//	mux.Handle("GET /metrics", m.Handler())
//
// # Metrics
//
// Metrics marked "store" describe the store: every process on it exports the same value. The others describe the
// process.
//
//	name                               type       labels                          unit      of
//	ringback_attempts_total            counter    namespace,topic,verdict,outcome jobs      process
//	ringback_lateness_seconds          histogram  namespace,topic                 seconds   process
//	ringback_attempt_duration_seconds  histogram  namespace,topic                 seconds   process
//	ringback_jobs_inserted_total       counter    namespace,topic,outcome         jobs      process
//	ringback_jobs_ended_total          counter    namespace,topic,state,reason    jobs      process
//	ringback_settlements_total         counter    outcome                         attempts  process
//	ringback_jobs                      gauge      namespace,topic,state           jobs      store
//	ringback_jobs_finished             gauge      namespace,topic,state           jobs      store
//	ringback_oldest_due_seconds        gauge      namespace,topic                 seconds   store
//	ringback_breakers_open             gauge      namespace,topic                 breakers  store
//	ringback_lanes_failing             gauge      namespace,topic                 lanes     store
//	ringback_work_unfinished           gauge      namespace                       works     store
//	ringback_work_jobs_total           counter    action,outcome                  jobs      process
//	ringback_ticks_total               counter    outcome                         ticks     process
//	ringback_events_total              counter    namespace,topic,outcome         events    process
//	ringback_event_jobs_total          counter    namespace,topic                 jobs      process
//	ringback_store_up                  gauge      store                           0,1       process
//	ringback_sqlite_log_bytes          gauge      store                           bytes     process
//	ringback_store_seconds             histogram  store,method,outcome            seconds   process
//	ringback_wakeup_failures_total     counter    store,outcome                   calls     process
//	ringback_carrier_moves_total       counter    what                            jobs      process
//	ringback_clock_steps_total         counter    direction                       steps     process
//	ringback_swept_total               counter    what                            jobs,ids  process
//	ringback_store_repairs_total       counter    store,kind                      repairs   process
//	ringback_workers                   gauge      -                               attempts  process
//	ringback_in_flight                 gauge      -                               attempts  process
//	ringback_lease_clients             gauge      -                               clients   process
//	ringback_waiting_requests          gauge      -                               requests  process
//	ringback_max_waiting_requests      gauge      -                               requests  process
//	ringback_stream_clients            gauge      -                               clients   process
//	ringback_stream_skipped_total      counter    -                               updates   process
//	ringback_log_lines_dropped_total   counter    -                               lines     process
//	ringback_build_info                gauge      version,go                      1         process
//
// Meanings:
//
//   - attempts: claimed jobs by verdict (delivered, again, dead, released) and outcome: the class of the status (1xx to
//     9xx), a policy.ErrorClass, accepted by a consumer, or none without an attempt. Counted at the verdict, before it
//     is recorded.
//   - lateness: from the due time of an attempt, by the store's clock, to its start: a request, a lease or a call.
//   - attempt duration: requests that were sent or tried, leases until their report, and calls; not requests that the
//     guard rejected or a shutdown interrupted.
//   - inserted: jobs passed to the store, including callbacks: created, existing (the same registration again),
//     conflict (another registration with the same id), failed.
//   - ended: deliveries (reason none) and deaths (their policy.Reason) that the store has recorded, once each, but
//     again when a consumer repeats its report, as attempts and settlements do. Cancelled jobs are only in
//     jobs_finished; a job that was cancelled during its last attempt counts as dead.
//   - settlements: recorded, the ends of attempts; extended, leases that a consumer of a pulled topic extended;
//     lease_lost, when the attempt is repeated; failed, when the store did not respond and the settlement is sent
//     again.
//   - jobs, jobs_finished: scheduled, ready, running; delivered, dead, cancelled. Their sum is all jobs ever
//     registered. A revival removes a job from the finished ones, so these are gauges.
//   - oldest due: how long the oldest unclaimed due job has been due, by this process's clock. It also grows while a
//     topic is paused or a lane is throttled.
//   - breakers open: breakers that are open or wait for their probe. A lane has one.
//   - lanes failing: lanes whose receiver fails, see policy.Health.Failing. Of a namespace at most 512 are counted.
//   - work unfinished, work jobs: bulk work that has not ended, and the jobs that it has treated, by action (revive,
//     purge, cancel, run, edit, replay) and outcome (done, failed, skipped). Counted before they are recorded, so a
//     repeated step counts them again.
//   - events, event jobs: events whose lanes have got their jobs: sent; unsubscribed if there is no such lane; refused
//     if the job of each was; and those jobs. Counted before they are recorded, too.
//   - store up: whether the counts of the store could be read for this scrape. If not, the other metrics marked "store"
//     of its namespaces are missing; without main those of all.
//   - sqlite log: the size of the -wal of a SQLite store, which grows while something keeps a snapshot of the database.
//   - log lines dropped: the log never delays deliveries; 1 MiB of lines is buffered while stderr blocks.
//   - store: calls of the store by method in snake case, except waits for wake-ups. Outcome refused is caused by the
//     caller (no such job, another version or state, another leader, a cancelled context), unavailable by an
//     unreachable or silent store, error is a fault. A carrier's rounds are the method carry.
//   - wake-up failures: failed waits for wake-ups, by outcome unavailable and error.
//   - carrier moves: jobs that were moved to ready (moved), returned by an expired lease (lease_expired), or taken from
//     the outbox (outbox; counted again when an insertion is repeated).
//   - clock steps: steps of the store's clock of half a second or more, once for each shard that this process carries.
//   - swept: ended jobs removed by retention (jobs), and ids whose id window ended (ids).
//   - workers, in flight: the limit of attempts of this process, and those claimed, requested, or not yet settled.
//   - build info: 1, for its labels.
//
// The metrics of the Go runtime (go_…) and the process (process_…) are included.
//
// # Alerts
//
// Deliveries stop: oldest due grows. They are late: lateness. Receivers fail: the share of verdicts other than
// delivered, breakers open. Manual work: jobs ended with state dead. Repeated work: settlements with lease_lost,
// carrier moves with lease_expired. The store is unavailable: store up is 0, store with outcome unavailable or error.
// No carrier: no calls of carry with outcome ok over all processes. docs/metrics.md has the expressions.
//
// # Cardinality
//
// Only the labels namespace and topic have values chosen by clients. The first 200 topics of a process, of all
// namespaces together, have their own series until it ends; the others share topic="_other". Jobs in the store are
// counted for up to 10 namespaces. Lanes, hosts, URLs and jobs are never labels.
//
// # Cost
//
// An attempt costs a few atomic additions and no allocation; a call of the store two clock readings and a look-up of
// its series. The store's counts (Totals, and the rows of topics with series) are read at most once in 5 s, for any
// number of scrapes. A scrape waits for them at most 2 s. Of more than 4 concurrent scrapes the rest are answered 503.
//
// All methods are safe for concurrent use.
package metrics
