// Package unit is the engine's unit of work: it changes the database, in one transaction, and memory together. Lanes
// and topics are found or made, jobs arrive and leave, leases begin and end, records are written, throttles change.
//
// Each change of memory leaves an undo, which a failed transaction runs. What follows from the changes, numbers in rows
// and places in the agenda, is written once, at the end. Which changes a call of the contract makes is decided in
// store/sqlite.
package unit
