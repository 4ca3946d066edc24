package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// openFileLock is fcntl's F_OFD_SETLK: a lock of the open file, which ends with its descriptor and is not lost when
// another descriptor of the same file is closed.
const openFileLock = 37

// lockedByte is the byte of the database file that is locked: far from those that SQLite locks (from 0x40000000 on).
const lockedByte = 1 << 62

// lockInode keeps other processes away from the database file, whatever path they reach it by: a bind mount, for
// instance. ok is false while another process holds the lock. File systems without such locks are left to the lock file.
func lockInode(path string) (lock io.Closer, ok bool, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, false, fmt.Errorf("lock the database: %w", err)
	}
	err = syscall.FcntlFlock(file.Fd(), openFileLock, &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: lockedByte, Len: 1})
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		return nil, false, file.Close() //nolint:wrapcheck // closing what was only opened
	case err != nil:
		return noLock{}, true, file.Close() //nolint:wrapcheck // closing what was only opened
	}
	return file, true, nil
}
