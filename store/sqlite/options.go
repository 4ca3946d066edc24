package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite/clock"
)

// Options are the options of Open.
type Options struct {
	// Path of the database file; it is made when it is missing, its folder is not. Two files beside it belong to it
	// (-wal, -shm) and a third keeps other processes away (.lock).
	Path string
	// Limits are the limits of topics without a policy, every field set but Rate; see Defaults.
	Limits policy.Limits
	// Logger gets faults that no caller sees; nil: slog.Default().
	Logger *slog.Logger
	// Clock reads the store's clocks; nil: the machine's.
	Clock clock.Reader

	driver driver.Driver // of tests that inject errors
}

// The default retention: a file is cheaper than memory.
const (
	keepFor time.Duration = 7 * 24 * time.Hour
	keepMax int64         = 1_000_000
)

// Defaults returns a policy with this engine's retention: 7 days and 1,000,000 jobs, delivered and dead alike. Its
// bounds in bytes stay.
func Defaults(base policy.Topic) policy.Topic {
	for _, keep := range []*policy.Retention{&base.KeepDelivered, &base.KeepDead} {
		keep.For = new(keepFor)
		keep.Max = new(keepMax)
	}
	return base
}

// validate joins everything that is wrong with the options.
func (o Options) validate() error {
	var faults []error
	if o.Path == "" {
		faults = append(faults, errors.New("the path is empty"))
	}
	d := o.Limits
	for _, field := range []struct {
		name    string
		missing bool
	}{
		{"lane_concurrency", d.Concurrency <= 0},
		{"keep_delivered", incomplete(d.KeepDelivered)},
		{"keep_dead", incomplete(d.KeepDead)},
		{"id_window", d.IDWindow == nil},
	} {
		if field.missing {
			faults = append(faults, fmt.Errorf("the default policy lacks %s", field.name))
		}
	}
	return errors.Join(faults...)
}

func incomplete(k policy.Retention) bool { return k.For == nil || k.Max == nil || k.MaxBytes == nil }
