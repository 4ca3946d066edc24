// Package outbox registers jobs in a database transaction of the program: they are written to a table together with the
// program's own changes, and a Relay registers them with Ringback after the commit. It imports the standard library and
// Package client only.
//
//	box := outbox.PostgreSQL
//	tx, err := db.BeginTx(ctx, nil)
//	…                                                          // the program's own statements
//	err = box.Add(ctx, tx, client.Job{Topic: "order.close", URL: url, Delay: 30 * time.Minute, Body: order})
//	err = tx.Commit()
//	relay.Wake()
//
//	relay := outbox.NewRelay(db, box, c, outbox.Options{})
//	relays.Go(func() { relay.Run(ctx) })                       // in one program or several, as long as they run
//
//	stop()                                                     // when the program ends: ctx
//	relays.Wait()                                              // a sync.WaitGroup
//	db.Close()
//
// # Guarantees
//
// A job whose transaction was committed is registered at least once, always with the id that Add gave it, so that
// Ringback has it once. A job whose transaction was rolled back is never registered. Neither a crash of the program nor
// one of the database or of Ringback changes that: a row is deleted only after Ringback has confirmed its job.
//
// A job is due as if it had been registered by Add: Delay and ExpiresIn count from Add, by the clock of the program
// that called it.
//
// A job that Ringback refuses (an invalid field, an id that is taken) stays in the table with its problem, and is tried
// again after 10 s, 20 s, … and at last every hour, until it is accepted or you delete its row. The jobs behind it do
// not wait.
//
// # Order
//
// Rows are registered in the order of their insertion, a hundred at a time. That is not the order of commits: of two
// transactions at the same time the later insertion may be committed, and registered, first. Several relays register
// different rows at once, and jobs that are tried again come later: while there is a backlog, every second hundred is
// of these. For ordered lanes run one relay, and add the jobs of a lane one transaction after the other.
//
// # Relays
//
// A relay reserves rows by setting next_try_at to the end of a lease, and lets go of its locks before it calls
// Ringback: no transaction is open meanwhile, and neither the program nor other relays wait for it. If a relay dies,
// its rows are free again when the lease ends, and within two leases if the clock was set back. A relay that comes back
// after the end of its lease changes nothing, since its lease is no longer in the row.
//
// A request that Ringback refuses as a whole for what one job is (400, 413, 415, 422) is divided until the job is
// found. With any other status, all rows are tried again later: a proxy that answers 403 to one job holds up those
// behind it.
package outbox
