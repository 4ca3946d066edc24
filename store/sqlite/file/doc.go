// Package file finds, locks and watches the files of a SQLite database: the database itself, its write-ahead log
// (-wal), its shared memory (-shm) and the lock file (.lock) that keeps a second process away.
//
// It opens no connection and knows nothing of what the files contain.
package file

// WAL and SHM are the suffixes of the write-ahead log and of the shared memory.
const (
	WAL = "-wal"
	SHM = "-shm"

	lockSuffix = ".lock"
)

// Suffixes are those of the files that belong to an open database.
var Suffixes = [...]string{"", WAL, SHM}
