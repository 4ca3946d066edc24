package db

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// openFileLock is fcntl's F_OFD_SETLK, a lock of the open file description: closing another descriptor of the same file
// does not release it.
const openFileLock = 37

// lockedByte is the byte of the database file that is locked: far from those that SQLite locks (from 0x40000000 on).
const lockedByte = 1 << 62

// lockInode locks the database file itself, so that a process which reaches it by another path, such as a bind mount,
// is refused too. ok is false while another process has the lock. A file system without such locks has only the lock
// file.
func lockInode(path string) (lock io.Closer, ok bool, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, false, fmt.Errorf("lock the database: %w", err)
	}
	err = syscall.FcntlFlock(file.Fd(), openFileLock,
		&syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: lockedByte, Len: 1})
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		return nil, false, file.Close()
	case err != nil:
		return io.NopCloser(nil), true, file.Close()
	}
	return file, true, nil
}
