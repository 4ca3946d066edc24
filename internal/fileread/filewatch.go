// This part of the package loads files again when their content changes, such as certificates and tokens that are
// rotated.
//
// It reads the files at intervals, because notifications get lost on network volumes, and links to mounted secrets are
// replaced. Content counts when two looks in a row have found it: at one look a file may be half written. Content that
// changes while it is loaded is loaded again. A file that is not regular, such as a pipe, is not read again.

package fileread

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// WatchInterval is the time between two looks at the files. A change takes up to two, which are less than the minute
// that the docs promise.
const WatchInterval = 20 * time.Second

// A Watcher looks at files. It is safe for concurrent use.
type Watcher struct {
	log *slog.Logger

	mu   sync.Mutex
	sets []*fileSet
}

// fileSet is a set of files that are loaded together.
type fileSet struct {
	names  []string
	load   func() error
	seen   string // the content at the last look; empty: one file is not regular
	loaded string // the content that was last loaded; empty: none, or others could not be used since
	failed string // the content and the error that were last logged
	looked bool   // load was called
}

// NewWatcher returns a Watcher that logs what it loads.
func NewWatcher(log *slog.Logger) *Watcher { return &Watcher{log: log} }

// Add adds files. load is called when the content of one of them has changed, at each look after one at which it failed
// (a mode or an owner may be what is wrong), and once in the beginning: it may have changed since the caller has read
// it. When load fails, what was loaded before must stay in force.
func (w *Watcher) Add(load func() error, names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sets = append(w.sets, &fileSet{names: names, load: load})
}

// Run looks at the files until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	ticker := time.NewTicker(WatchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.Look()
		}
	}
}

// Look loads the files whose content has changed, and was the same at the look before.
func (w *Watcher) Look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sets {
		now, regular := contentOf(s.names)
		before := s.seen
		s.seen = now
		if !regular || now != before || now == s.loaded {
			continue
		}
		files := strings.Join(s.names, ", ")
		err, first := s.load(), !s.looked
		s.looked = true
		if again, _ := contentOf(s.names); again != now {
			// load may have read half of a change: it is called again, also if the old content returns
			s.seen, s.loaded = "", ""
			continue
		}
		if err != nil {
			if failed := now + err.Error(); failed != s.failed {
				w.log.Warn("changed file cannot be used, keeping what was loaded before", "file", files, "err", err)
				s.failed = failed
			}
			s.loaded = ""
		} else {
			if !first {
				w.log.Info("changed file loaded", "file", files)
			}
			s.loaded, s.failed = now, ""
		}
	}
}

// contentOf returns a hash of the content of files and of errors in reading them. regular is false if one is not a
// regular file.
func contentOf(names []string) (content string, regular bool) {
	hash := sha256.New()
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			return "", false
		}
		text, err := os.ReadFile(name)
		fmt.Fprintf(hash, "%d %v\n", len(text), err)
		hash.Write(text)
	}
	return string(hash.Sum(nil)), true
}
