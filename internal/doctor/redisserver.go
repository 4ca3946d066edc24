package doctor

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// server is what was read of a server. What it does not tell is missing.
type server struct {
	addr      string
	trips     []time.Duration // round trips, sorted
	ahead     time.Duration   // the clock, ahead of this machine's; known if there are trips
	precision time.Duration   // of ahead
	info      map[string]string
	settings  map[string]string
	rights    *rights // nil: not known
	down      bool    // nothing could be read
	err       error   // why something is missing
}

// pings is the number of round trips that are measured.
const pings = 10

// readServer reads what a server tells.
func (f *facts) readServer(ctx context.Context, c *redis.Client) server {
	s := server{addr: c.Options().Addr}
	for range pings {
		began := time.Now()
		at, err := c.Time(ctx).Result()
		took := time.Since(began)
		if err != nil {
			s.err, s.down = connect.MapError(ctx, err), !connect.IsNotPermitted(err) && ctx.Err() == nil
			break
		}
		if len(s.trips) == 0 || took < 2*s.precision { // the fastest is the most exact
			s.ahead, s.precision = at.Sub(began.Add(took/2)), took/2
		}
		s.trips = append(s.trips, took)
	}
	if s.down {
		return s
	}
	slices.Sort(s.trips)
	if text, err := c.Info(ctx).Result(); err == nil {
		s.info = connect.ParseInfo(text)
	} else {
		s.err = connect.MapError(ctx, err)
	}
	settings, err := connect.ReadSettings(ctx, c, "maxmemory-policy", "appendonly", "appendfsync", "save",
		"timeout", "tcp-keepalive", "min-replicas-to-write")
	if s.settings = settings; err != nil {
		s.err = err
	}
	n := max(f.shards, 1)
	if s.rights, err = readRights(ctx, c, f.needed(c), []string{layout.MetaKey(f.Prefix), "{" +
		layout.Tags(f.Prefix, n)[0] + "}:due:1"}); err != nil {
		s.err = err
	}
	return s
}

// number returns a number of INFO; known is false if the server does not tell it.
func (s *server) number(name string) (n int64, known bool) {
	n, err := strconv.ParseInt(s.info[name], 10, 64)
	return n, err == nil
}

// setting returns a numeric setting.
func (s *server) setting(name string) (n int64, known bool) {
	n, err := strconv.ParseInt(s.settings[name], 10, 64)
	return n, err == nil
}

// median returns the median round trip.
func (s *server) median() time.Duration { return s.trips[len(s.trips)/2] }
