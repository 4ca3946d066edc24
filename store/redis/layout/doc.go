// Package layout defines how data are laid out in Redis: the names of keys, a job's record, its run and its attempts,
// and the text forms that scripts read.
//
// Each shard's keys share a hash tag, such as {rb:5.168}, so that they are in one slot of a cluster. A job is a record
// (what was registered) in one hash and a run (its progress, written from the first claim or edit on) in another.
// Queues have numbers, which name their keys.
//
// The Lua side of the formats is in the folder include. This package also assembles scripts, and runs them: see New.
package layout
