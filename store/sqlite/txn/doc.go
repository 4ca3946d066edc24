// Package txn is a transaction of the engine, which changes the database and what is in memory together: lanes and topics are
// found or made, jobs arrive and leave, leases begin and end, records are written, throttles change.
//
// Each change of memory leaves an undo, which a failed transaction runs. What follows from the changes, numbers in rows and
// places in the agenda, is written once, at the end. Which changes a call of the contract makes is decided in store/sqlite.
package txn
