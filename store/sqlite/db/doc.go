// Package db is one SQLite database file in use by one process: its connections and prepared statements, the goroutine
// that writes, the connections that read, the write-ahead log, and copies of the file.
//
// A Writer runs the calls that wait as one transaction and answers all of them after its commit, with fsync if one of
// them is durable. Reads have separate connections and see the last commit. The log is moved into the file by a third
// connection, so that no commit waits for it.
//
// A database has up to four files: the database itself, its write-ahead log (-wal), its shared memory (-shm), and the
// lock file (.lock) that keeps a second process away. While they are in use they are checked to be the files that were
// opened.
//
// The package knows no tables but wal_check, by which Open recognises a log that was written for another file, and
// nothing of what the rows mean. A Writer is safe for concurrent use; a Conn and a Tx are not.
package db
