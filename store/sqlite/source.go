package sqlite

import (
	"cmp"
	"container/heap"
	"context"
	"database/sql/driver"
	"math"
	"slices"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// The number of rows that a source reads at once doubles from minChunk (or what the page can take) to maxChunk.
const (
	minChunk = 4
	maxChunk = 500
)

// A key orders the rows of a source: by due time or end, in Unix milliseconds, then by number.
type key struct{ ms, n int64 }

// A source is jobs in the order of the list: the unfinished ones of a lane, or those of a topic that ended in one
// state.
type source struct {
	l        *jobList
	of       int64 // the lane or the topic
	state    job.State
	from, to int64 // of the key's ms, to exclusive
	decode   func([]driver.Value) *table.Row
	chunk    int          // rows to read next
	rows     []*table.Row // read ahead
	at       key          // before the rows that are not read yet
	within   bool         // there may be more rows of the millisecond at.ms
	end      bool         // there are no more to read
}

// newSource returns the jobs from a position on.
func (l *jobList) newSource(of int64, state job.State, from, to int64, at store.Position) *source {
	s := &source{l: l, of: of, state: state, from: from, to: to, at: l.before(to - 1)}
	if l.filter.Oldest {
		s.at = l.before(from)
	}
	s.skipTo(at.At)
	if place := (key{at.At, l.tie}); at.Tie != "" && l.compare(place, s.at) > 0 {
		s.at, s.within = place, true
	}
	return s
}

// before returns the key before the rows of a millisecond, and after those of the one that comes before it.
func (l *jobList) before(ms int64) key {
	if l.filter.Oldest {
		return key{ms - 1, math.MaxInt64}
	}
	return key{ms + 1, math.MinInt64}
}

// skipTo skips the milliseconds before one, unless that is 0.
func (s *source) skipTo(ms int64) {
	if at := s.l.before(ms); ms != 0 && s.l.compare(at, s.at) > 0 {
		s.at, s.within = at, false
	}
}

// compare orders two keys in the list.
func (l *jobList) compare(a, b key) int {
	if !l.filter.Oldest {
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(a.ms, b.ms), cmp.Compare(a.n, b.n))
}

// The statements of sources, by whether the oldest come first: those that read within a millisecond, and beyond it. One
// for both would look at every row of a moment again for each chunk.
var (
	unfinishedWithin = map[bool]db.Statement{true: table.UnfinishedAt, false: table.UnfinishedAtNewest}
	unfinishedBeyond = map[bool]db.Statement{true: table.UnfinishedAfter, false: table.UnfinishedBefore}
	endedWithin      = map[bool]db.Statement{true: table.EndedAt, false: table.EndedAtNewest}
	endedBeyond      = map[bool]db.Statement{true: table.EndedAfter, false: table.EndedBefore}
)

// load reads the next rows.
func (s *source) load(ctx context.Context, c *db.Conn) error {
	oldest := s.l.filter.Oldest
	within, beyond, bound := unfinishedWithin[oldest], unfinishedBeyond[oldest], s.from
	if s.state.Ended() {
		within, beyond = endedWithin[oldest], endedBeyond[oldest]
	}
	if oldest {
		bound = s.to
	}
	for len(s.rows) == 0 && !s.end {
		limit := min(s.chunk, max(s.l.filter.ScanLimit-s.l.read, 1))
		statement, last := beyond, bound
		if s.within {
			statement, last = within, s.at.n
		}
		err := c.Query(ctx, statement, func(v []driver.Value) error {
			s.rows = append(s.rows, s.decode(v))
			return nil
		}, s.of, string(s.state), s.at.ms, last, int64(limit))
		if err != nil {
			return err
		}
		if len(s.rows) > 0 {
			s.at = s.keyOf(s.rows[len(s.rows)-1])
		}
		s.l.read += len(s.rows)
		switch full := len(s.rows) == limit; {
		case full:
			s.within = true
		case s.within:
			s.within = false
		default:
			s.end = true
		}
	}
	s.chunk = min(2*s.chunk, maxChunk)
	return nil
}

// loadLeased reads the leased jobs of a lane, instead of all its jobs. They are all read for each page.
func (s *source) loadLeased(ctx context.Context, c *db.Conn, marks []table.Mark) error {
	s.end = true
	for _, m := range marks {
		if err := c.Query(ctx, table.JobWithoutBodyByN, func(v []driver.Value) error {
			if r := s.decode(v); s.l.compare(s.keyOf(r), s.at) > 0 && clock.Millis(r.DueAt) >= s.from &&
				clock.Millis(r.DueAt) < s.to {
				s.rows = append(s.rows, r)
			}
			return nil
		}, m.N); err != nil {
			return err
		}
	}
	s.l.read += len(marks)
	slices.SortFunc(s.rows, func(a, b *table.Row) int { return s.l.compare(s.keyOf(a), s.keyOf(b)) })
	return nil
}

func (s *source) keyOf(r *table.Row) key {
	if s.state.Ended() {
		return key{clock.Millis(r.FinishedAt), r.N}
	}
	return key{clock.Millis(r.DueAt), r.N}
}

// next returns the key of the next row, or one before it.
func (s *source) next() key {
	if len(s.rows) > 0 {
		return s.keyOf(s.rows[0])
	}
	return s.at
}

// merge lists the jobs of sources. It loads a source only when its rows are the next. done: the page ends there.
func (l *jobList) merge(ctx context.Context, c *db.Conn, all sources) (done bool, err error) {
	heap.Init(&all)
	for len(all) > 0 {
		s := all[0]
		switch {
		case len(s.rows) > 0:
			r := s.rows[0]
			s.rows = s.rows[1:]
			if l.look(r) {
				return true, nil
			}
		case s.end:
			heap.Pop(&all)
			continue
		case l.read >= l.filter.ScanLimit && l.page.Scanned > 0:
			return l.stop(), nil
		default:
			if err := s.load(ctx, c); err != nil {
				return false, err
			}
		}
		heap.Fix(&all, 0)
	}
	return false, nil
}

// sources is a heap: the source with the next row comes first.
type sources []*source

func (a sources) Len() int           { return len(a) }
func (a sources) Less(i, j int) bool { return a[i].l.compare(a[i].next(), a[j].next()) < 0 }
func (a sources) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }

// Push is for container/heap.
func (a *sources) Push(x any) {
	s, _ := x.(*source)
	*a = append(*a, s)
}

// Pop is for container/heap.
func (a *sources) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
