package sim

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/storetest"
)

// engines are those under the simulation, with the share of the seeds that each runs in make test: a seed on SQLite
// costs three times as much.
var engines = []struct {
	name  string
	open  func(*testing.T) engine
	every int
}{
	{"model", onModel, 1},
	{"sqlite", onSQLite, 8},
}

func onModel(*testing.T) engine {
	m := storetest.NewModel(storetest.ModelOptions{Shards: 2, Defaults: defaults})
	return engine{store: m, clock: m.Clock, step: m.Step}
}

func onSQLite(t *testing.T) engine {
	var ahead atomic.Int64 // the steps of the wall clock, in milliseconds
	machine := clock.New(nil)
	o := sqlite.Options{
		Path: filepath.Join(t.TempDir(), "test.db"), Limits: defaults.Limits(), Logger: slog.New(slog.DiscardHandler),
		Clock: func() clock.Instant {
			now := machine()
			now.Millis += ahead.Load()
			return now
		},
	}
	open := func() store.Store {
		s, err := sqlite.Open(context.Background(), o)
		require.NoError(t, err)
		return s
	}
	return engine{
		store: open(),
		open:  open,
		clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Millisecond) },
		step:  func(d time.Duration) { ahead.Add(d.Milliseconds()) },
	}
}

// once runs a seed in a bubble. Of one whose steps panic, or that does not end, it tells the story so far.
func once(t *testing.T, seed int, open func(*testing.T) engine) (broken []breach, told *story) {
	t.Helper()
	told = new(story)
	tell := func(what any) { _, _ = fmt.Fprintf(os.Stderr, "%s, seed %d: %v\n%s\n", t.Name(), seed, what, told) }
	stuck := time.AfterFunc(5*time.Minute, func() { tell("has not ended for five minutes") })
	defer stuck.Stop()
	tellPanic := func() {
		if reason := recover(); reason != nil {
			tell(reason)
			panic(reason)
		}
	}
	defer tellPanic() // if all of its goroutines are blocked
	synctest.Test(t, func(t *testing.T) {
		defer tellPanic()
		broken = run(uint64(seed), open(t), told)
	})
	return broken, told
}

// seedsInTests is the number of seeds of make test.
const seedsInTests = 200

// number returns the number in a variable.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

func TestSeeds_KeepThePromises(t *testing.T) {
	t.Parallel()
	first := number(t, "FROM", 1)
	last, seed := first+number(t, "SEEDS", seedsInTests)-1, number(t, "SEED", 0)
	if seed != 0 {
		first, last = seed, seed
	}
	var again sync.Once
	for _, e := range engines {
		for n := first; n <= last; n++ {
			if n%e.every != 0 && seed == 0 {
				continue
			}
			t.Run(fmt.Sprint(e.name, "/", n), func(t *testing.T) {
				t.Parallel()
				broken, told := once(t, n, e.open)
				if len(broken) == 0 {
					if seed != 0 {
						t.Log(told)
					}
					return
				}
				t.Errorf("seed %d on %s: %s\n%s", n, e.name, textOf(broken), told)
				again.Do(func() { t.Log(repeated(t, n, e.open, broken[0].kind)) })
			})
		}
	}
}

func textOf(broken []breach) string {
	texts := make([]string, len(broken))
	for i := range broken {
		texts[i] = broken[i].text
	}
	return strings.Join(texts, "\n")
}

// repeated runs a seed that failed again, for a minute at most, and says how often it fails, and in the same way: what
// the runtime orders differs.
func repeated(t *testing.T, seed int, open func(*testing.T) engine, kind string) string {
	t.Helper()
	runs, failed, same := 0, 0, 0
	for began := time.Now(); runs < 100 && time.Since(began) < time.Minute; runs++ {
		broken, _ := once(t, seed, open)
		if len(broken) > 0 {
			failed++
		}
		if slices.ContainsFunc(broken, func(b breach) bool { return b.kind == kind }) {
			same++
		}
	}
	return fmt.Sprintf("run %d times again, it failed %d times, %d times so: make sim SEED=%d", runs, failed, same,
		seed)
}

// TestFoundSeeds_KeepThePromises runs seeds that have found something, of the service or of the ledger. Others find it
// after a change of the steps: put a fault in once, and look for them.
func TestFoundSeeds_KeepThePromises(t *testing.T) {
	t.Parallel()
	for _, found := range []struct {
		engine string
		seed   int
		fault  string // "the ledger": it asked for more than the service promises
	}{
		{"model", 23, "an old policy made a process claim and release jobs of a resumed topic endlessly"},
		{"model", 36, "the same, in another lane"},
		{"model", 31, "a client that waited for the end of a job was not told"},
		{"sqlite", 200, "a job that was to be cancelled was tried again when its lease was lost"},
		{"sqlite", 5608, "a restart after a step ahead of the clock ended cooldowns and rate windows"},
		{"model", 7730, "leases may have been handed out too late for their rate, after others had been released"},
		{"model", 111, "the ledger: bulk work had skipped a job, and a call of it that had failed came later"},
		{"model", 7573, "the ledger: the callback of an alarm's end came when all jobs had ended"},
		{"model", 7691, "the ledger: the settlement of an attempt came a minute late, by the ladder of that time"},
	} {
		t.Run(fmt.Sprint(found.engine, "/", found.seed), func(t *testing.T) {
			t.Parallel()
			for _, e := range engines {
				if e.name == found.engine {
					broken, told := once(t, found.seed, e.open)
					if len(broken) > 0 {
						t.Errorf("once found: %s\n%s\n%s", found.fault, textOf(broken), told)
					}
				}
			}
		})
	}
}
