package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/ringback/ringback/store"
)

// files are the database and the files beside it as they were when they were opened. Writes to files that
// were removed or replaced are lost with the process. So while they are not the same files, durable calls fail, and no other
// connection is opened.
type files struct {
	path string

	mu    sync.Mutex
	known [3]fs.FileInfo // of the suffixes; nil: not seen yet
}

// suffixes are those of the files that belong to an open database.
var suffixes = [...]string{"", "-wal", "-shm"}

// look remembers the files. Those beside the database are there from the first transaction to the close of the last
// connection.
func (f *files) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, suffix := range suffixes {
		info, err := os.Stat(f.path + suffix)
		if err != nil {
			return fmt.Errorf("look at the database's files: %w", err)
		}
		f.known[i] = info
	}
	return nil
}

// forgetLog forgets the files beside the database: the last connection is about to be closed, which removes them.
func (f *files) forgetLog() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[1], f.known[2] = nil, nil
}

// connect opens another connection, unless a file was removed or replaced.
func (f *files) connect(reader bool) (*conn, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	return connect(f.path, reader)
}

// check answers a store.UnavailableError when a file was removed or replaced.
func (f *files) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, suffix := range suffixes {
		if f.known[i] == nil {
			continue
		}
		name := f.path + suffix
		info, err := os.Stat(name)
		if err == nil && os.SameFile(info, f.known[i]) {
			continue
		}
		what := "was replaced"
		if errors.Is(err, fs.ErrNotExist) {
			what = "was removed"
		} else if err != nil {
			what = "cannot be found"
		}
		return &store.UnavailableError{Reason: "the database file " + filepath.Base(name) + " " + what + " while it is in use", Err: err}
	}
	return nil
}
