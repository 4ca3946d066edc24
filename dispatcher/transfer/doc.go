// Package transfer moves jobs and settings between stores of any kind, by a file of JSON lines: Export writes it,
// Import reads it.
//
// # The file
//
// Each line is an object with one member:
//
//	ringback_export  the first line: format, version, id of the export, the stores that it is from
//	document         a namespace, a token, the policy of a topic, the settings of a lane, or a schedule
//	job              a job with its progress and history; one that waits is scheduled
//	section          the lines since the section before: how many, and their SHA-256
//	end              the last line: how many lines, sections and documents, and the ledger of the jobs
//
// A section has at most store.MaxBatch lines and, unless it has a single one, store.RecordBytes. Documents come before
// jobs. The jobs of an ordered queue are in the order of their registration.
//
// An import stores a section once its checksum is right, so nothing of a damaged section is stored. It notes its begin
// and its end in a document of the main store under the id of the export. One that was interrupted is repeated from the
// beginning of the file: what is stored already is left as it is. Until it is complete, no process delivers:
// CheckImports.
//
// # Stores in use
//
// Both hold the carrier locks of all shards meanwhile, so that no process delivers. Export fails if counters or
// settings of the store have changed at its end.
package transfer
