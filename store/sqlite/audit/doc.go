// Package audit checks the tables of a database against each other, and repairs them while no process uses it.
//
// A process that has the database open keeps its counters and queues in memory, and would not see a repair. An audit
// without repair reads one snapshot, so that it finds no fault which a change beside it makes. It reads the tables by
// their keys, some thousand rows at a time, and keeps a few numbers of each lane and topic.
package audit
