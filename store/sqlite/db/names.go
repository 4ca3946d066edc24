package db

// WAL and SHM are the suffixes of the write-ahead log and of the shared memory.
const (
	WAL = "-wal"
	SHM = "-shm"

	lockSuffix = ".lock"
)

// Suffixes are those of the files that belong to an open database.
var Suffixes = [...]string{"", WAL, SHM}
