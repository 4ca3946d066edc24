package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
)

// A state is the stored form of a throttle, or of a topic's grants. Moments are Unix milliseconds, since the monotonic clock
// ends with the process. At says when it was written, so that a clock that was set back meanwhile is noticed.
type state struct {
	At     int64      `json:"at"`
	Until  int64      `json:"until,omitempty"`
	Open   bool       `json:"open,omitempty"`
	Per    int64      `json:"per,omitempty"`    // in milliseconds
	Starts [][4]int64 `json:"starts,omitempty"` // from, to, number, latest
}

// stored is the column of a throttle; NULL where there is none.
func (g *throttle) stored(now clock.Instant) driver.Value {
	if g == nil {
		return nil
	}
	s := state{At: now.Millis, Open: g.open, Starts: g.starts.stored(now)}
	if g.until != clock.Past {
		s.Until = now.WallAt(g.until)
	}
	return db.JSON(s)
}

// stored is the column of a topic's grants.
func (g *grants) stored(now clock.Instant) driver.Value {
	if g == nil {
		return nil
	}
	return db.JSON(state{At: now.Millis, Per: clock.CeilMillis(g.per), Starts: g.starts.stored(now)})
}

func (w window) stored(now clock.Instant) [][4]int64 {
	all := make([][4]int64, len(w))
	for i, s := range w {
		all[i] = [4]int64{s.from, s.to, s.n, now.WallAt(s.latest)}
	}
	return all
}

// decodeThrottle reads a stored throttle; nil for none.
func decodeThrottle(column driver.Value, now clock.Instant) (*throttle, error) {
	s, moment, err := parseState(column, now)
	if err != nil || s == nil {
		return nil, err
	}
	g := noThrottle
	g.open, g.starts = s.Open, s.window(moment)
	if s.Until != 0 {
		g.until = moment(s.Until)
	}
	return &g, nil
}

// parseGrants reads a topic's stored grants; nil for none.
func parseGrants(column driver.Value, now clock.Instant) (*grants, error) {
	s, moment, err := parseState(column, now)
	if err != nil || s == nil {
		return nil, err
	}
	return &grants{starts: s.window(moment), per: time.Duration(s.Per) * time.Millisecond}, nil
}

// parseState reads a column that a process wrote, maybe another one. Moment turns its moments into this process's: a clock
// that shows less than it did then is taken to show the same, since time has not run backwards.
func parseState(column driver.Value, now clock.Instant) (s *state, moment func(ms int64) int64, err error) {
	if column == nil {
		return nil, nil, nil
	}
	s = &state{}
	if err := json.Unmarshal([]byte(db.Text(column)), s); err != nil {
		return nil, nil, fmt.Errorf("read a throttle: %w", err)
	}
	back := max(0, s.At-now.Millis)
	return s, func(ms int64) int64 { return now.MonoAt(ms - back) }, nil
}

func (s *state) window(moment func(int64) int64) window {
	w := make(window, len(s.Starts))
	for i, g := range s.Starts {
		w[i] = starts{from: g[0], to: g[1], n: g[2], latest: moment(g[3])}
	}
	return w
}
