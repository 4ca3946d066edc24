package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/ringback/ringback/store"
)

// A fileWatch detects that the database or a file beside it was removed or replaced since it was opened: what is
// written to such a file is lost with the process. It is safe for concurrent use.
type fileWatch struct {
	path string

	mu    sync.Mutex
	known [3]fs.FileInfo // of Suffixes; nil: not recorded yet
}

// newWatch returns a watch of the database at path that has recorded nothing yet.
func newWatch(path string) *fileWatch { return &fileWatch{path: path} }

// Record records the files as they are now. The log and the shared memory exist from the first transaction until the
// last connection is closed.
func (w *fileWatch) Record() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, suffix := range Suffixes {
		info, err := os.Stat(w.path + suffix)
		if err != nil {
			return fmt.Errorf("look at the database's files: %w", err)
		}
		w.known[i] = info
	}
	return nil
}

// ForgetLog drops what was recorded of the log and the shared memory. It is called before the last connection is
// closed, which removes them.
func (w *fileWatch) ForgetLog() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known[1], w.known[2] = nil, nil
}

// Check returns a store.UnavailableError if a recorded file was removed or replaced.
func (w *fileWatch) Check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, suffix := range Suffixes {
		if w.known[i] == nil {
			continue
		}
		name := w.path + suffix
		info, err := os.Stat(name)
		if err == nil && os.SameFile(info, w.known[i]) {
			continue
		}
		what := "was replaced"
		if errors.Is(err, fs.ErrNotExist) {
			what = "was removed"
		} else if err != nil {
			what = "cannot be found"
		}
		return &store.UnavailableError{Reason: "the database file " + filepath.Base(name) + " " + what +
			" while it is in use", Err: err}
	}
	return nil
}
