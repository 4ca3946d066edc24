//go:build !linux

package sqlite

import "io"

// lockInode does nothing here: other systems have no lock that goes with the open file and leaves SQLite's own alone.
func lockInode(string) (lock io.Closer, ok bool, err error) { return noLock{}, true, nil }
