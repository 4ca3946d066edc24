package memory

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
)

// stored is the stored form of a throttle or of grants. Its times are Unix milliseconds, since the monotonic clock ends
// with the process. At is when it was written: it shows whether the clock was set back meanwhile.
type stored struct {
	At     int64               `json:"at"`
	Until  int64               `json:"until,omitempty"`
	Cause  store.CooldownCause `json:"cause,omitempty"`
	Open   bool                `json:"open,omitempty"`
	Per    int64               `json:"per,omitempty"`    // in milliseconds
	Starts [][4]int64          `json:"starts,omitempty"` // from, to, number, latest
}

// Column returns the stored form; NULL for nil.
func (g *Throttle) Column(now clock.Instant) driver.Value {
	if g == nil {
		return nil
	}
	s := stored{At: now.Millis, Open: g.Open, Starts: g.Starts.stored(now)}
	if g.Until != clock.Past {
		s.Until, s.Cause = now.WallAt(g.Until), g.Cause
	}
	return db.JSON(s)
}

// Column returns the stored form; NULL for nil.
func (g *Grants) Column(now clock.Instant) driver.Value {
	if g == nil {
		return nil
	}
	return db.JSON(stored{At: now.Millis, Per: clock.CeilMillis(g.Per), Starts: g.Starts.stored(now)})
}

func (w Window) stored(now clock.Instant) [][4]int64 {
	all := make([][4]int64, len(w))
	for i, s := range w {
		all[i] = [4]int64{s.from, s.to, s.n, now.WallAt(s.latest)}
	}
	return all
}

// Parse reads a stored throttle; nil for NULL.
func Parse(column driver.Value, now clock.Instant) (*Throttle, error) {
	s, moment, err := parse(column, now)
	if err != nil || s == nil {
		return nil, err
	}
	g := None
	g.Open, g.Starts = s.Open, s.window(moment)
	if s.Until != 0 {
		g.Until, g.Cause = moment(s.Until), s.Cause
	}
	return &g, nil
}

// ParseGrants reads stored grants; nil for NULL.
func ParseGrants(column driver.Value, now clock.Instant) (*Grants, error) {
	s, moment, err := parse(column, now)
	if err != nil || s == nil {
		return nil, err
	}
	return &Grants{Starts: s.window(moment), Per: time.Duration(s.Per) * time.Millisecond}, nil
}

// parse reads a column. moment converts its times to monotonic ones of this process. A clock that shows less than when
// the column was written is taken to show the same, since time does not run backwards.
func parse(column driver.Value, now clock.Instant) (s *stored, moment func(ms int64) int64, err error) {
	if column == nil {
		return nil, nil, nil
	}
	s = &stored{}
	if err := json.Unmarshal([]byte(db.Text(column)), s); err != nil {
		return nil, nil, fmt.Errorf("read a throttle: %w", err)
	}
	back := max(0, s.At-now.Millis)
	return s, func(ms int64) int64 { return now.MonoAt(ms - back) }, nil
}

func (s *stored) window(moment func(int64) int64) Window {
	w := make(Window, len(s.Starts))
	for i, g := range s.Starts {
		w[i] = starts{from: g[0], to: g[1], n: g[2], latest: moment(g[3])}
	}
	return w
}
