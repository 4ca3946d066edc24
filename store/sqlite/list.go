package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"math"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// What one page looks at, at most, whatever its limit: rows, and lanes.
const (
	listRows  = 5000
	listLanes = 500
	listChunk = 500
)

// A spot is where a list stands: behind a job of a lane. Lists of ended jobs run over all lanes at once, and name none.
type spot struct {
	Lane string `json:"l,omitempty"`
	MS   int64  `json:"t"`
	N    int64  `json:"n"`
}

func (p spot) cursor() string { return base64.RawURLEncoding.EncodeToString([]byte(encodeJSON(p))) }

func parseSpot(cursor string) (spot, error) {
	var p spot
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return spot{}, store.ErrCursor
	}
	return p, nil
}

// A listing is one page under way.
type listing struct {
	filter   store.Filter
	from, to int64 // of the state's time, to exclusive
	at       spot  // behind what was looked at last
	looked   int
	page     store.Page
	now      instant
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, shard int, filter store.Filter) (store.Page, error) {
	s.check(shard)
	l := listing{filter: filter, from: millisUp(filter.After), to: math.MaxInt64, at: spot{N: -1}, now: s.clock()}
	if !filter.Before.IsZero() {
		l.to = millisUp(filter.Before)
	}
	if filter.Cursor != "" {
		var err error
		if l.at, err = parseSpot(filter.Cursor); err != nil {
			return store.Page{}, err
		}
	}
	err := s.read(ctx, "list jobs", func(ctx context.Context, c *conn) error {
		if filter.State.Ended() {
			return l.ended(ctx, c)
		}
		return l.open(ctx, c)
	})
	if err != nil {
		return store.Page{}, err
	}
	return l.page, nil
}

// stop says that the page ends here, and where the next begins.
func (l *listing) stop() bool {
	if len(l.page.Jobs) < l.filter.Limit && l.looked < listRows {
		return false
	}
	l.page.Cursor = l.at.cursor()
	return true
}

// add takes a row that the filter lets through.
func (l *listing) add(r *row) {
	if l.filter.Lane != "" && r.Lane != l.filter.Lane {
		return
	}
	if l.filter.Label != "" {
		if value, ok := r.Labels[l.filter.Label]; !ok || value != l.filter.Value {
			return
		}
	}
	l.page.Jobs = append(l.page.Jobs, r.view(l.now))
}

// open lists unfinished jobs, a lane after the other.
func (l *listing) open(ctx context.Context, c *conn) error {
	state := job.Scheduled
	switch l.filter.State {
	case job.Scheduled:
		l.from = max(l.from, l.now.ms+1)
	case job.Ready:
		l.to = min(l.to, l.now.ms+1)
	case job.Running:
		state = job.Running
	default:
		return nil // a state that this version does not know has no jobs
	}
	type lane struct {
		q    int64
		name string
	}
	var lanes []lane
	first := l.at.Lane
	if l.filter.Lane != "" {
		first = l.filter.Lane
	}
	err := c.query(ctx, listQueues, func(v []driver.Value) error {
		lanes = append(lanes, lane{integer(v[0]), text(v[1])})
		return nil
	}, l.filter.Namespace, l.filter.Topic, first, int64(listLanes))
	if err != nil {
		return err
	}
	for _, lane := range lanes {
		if l.filter.Lane != "" && lane.name != l.filter.Lane {
			return nil
		}
		if lane.name != l.at.Lane {
			l.at = spot{Lane: lane.name, MS: l.from, N: -1}
		}
		if done, err := l.lane(ctx, c, lane.q, state); err != nil || done {
			return err
		}
	}
	if len(lanes) == listLanes && l.filter.Lane == "" {
		l.page.Cursor = spot{Lane: l.at.Lane, MS: math.MaxInt64}.cursor()
	}
	return nil
}

// lane lists one lane from where the listing stands; done says that the page is full.
func (l *listing) lane(ctx context.Context, c *conn, q int64, state job.State) (done bool, err error) {
	if l.at.MS < l.from {
		l.at.MS, l.at.N = l.from, -1
	}
	for {
		chunk := l.chunk()
		rows := 0
		err := c.query(ctx, listOpen, func(v []driver.Value) error {
			rows++
			r, err := decode(v, false)
			if err != nil || done {
				return err
			}
			r.Topic, r.Lane = l.filter.Topic, l.at.Lane
			l.at.MS, l.at.N = millis(r.DueAt), r.n
			l.looked++
			l.add(r)
			done = l.stop()
			return nil
		}, q, string(state), l.at.MS, l.at.N, l.to, int64(chunk))
		if err != nil || done || rows < chunk {
			return done, err
		}
	}
}

// ended lists delivered, dead or cancelled jobs by the time of their end.
func (l *listing) ended(ctx context.Context, c *conn) error {
	if l.at.MS < l.from {
		l.at.MS, l.at.N = l.from, -1
	}
	for {
		chunk := l.chunk()
		rows, done := 0, false
		err := c.query(ctx, listEnded, func(v []driver.Value) error {
			rows++
			r, err := decode(v, false)
			if err != nil || done {
				return err
			}
			r.Topic, r.Lane = text(v[columnCount]), text(v[columnCount+1])
			l.at.MS, l.at.N = millis(r.FinishedAt), r.n
			l.looked++
			l.add(r)
			done = l.stop()
			return nil
		}, l.filter.Namespace, l.filter.Topic, string(l.filter.State), l.at.MS, l.at.N, l.to, int64(chunk))
		if err != nil || done || rows < chunk {
			return err
		}
	}
}

// chunk is how many rows to read at once: no more than the page can take, unless a filter may drop some.
func (l *listing) chunk() int {
	if l.filter.Label == "" && (l.filter.Lane == "" || !l.filter.State.Ended()) {
		return max(1, min(listChunk, l.filter.Limit-len(l.page.Jobs)))
	}
	return listChunk
}
