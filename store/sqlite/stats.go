package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// statsLanes is how many lanes of a topic are looked at for its oldest due moment.
const statsLanes = 1000

// countJobs bounds how many jobs that came due one transaction counts, so that others wait for milliseconds at most.
const countJobs = 8192

// TopicStats implements store.Shard. It reads memory, and no jobs but the first of lanes whose head is not known, and
// once each those that came due where the carrier does not look, since their lane is blocked. The names of a page come
// from the database.
func (s *Store) TopicStats(ctx context.Context, f store.StatsFilter) ([]store.TopicStats, error) {
	names := f.Topics
	if len(names) == 0 {
		err := s.db.Read(ctx, "list topics", func(ctx context.Context, c *db.Conn) error {
			return c.Query(ctx, table.PageTopics, func(v []driver.Value) error {
				names = append(names, db.Text(v[0]))
				return nil
			}, f.Namespace, f.After, int64(max(0, f.Limit)))
		})
		if err != nil || len(names) == 0 {
			return nil, err
		}
	}
	var rows []store.TopicStats
	err := s.count(ctx, func(u *unit.Unit, room *int) error {
		rows = make([]store.TopicStats, 0, len(names))
		for _, name := range names {
			t := u.Mem.Topics[memory.TopicName{Namespace: f.Namespace, Name: name}]
			if f.NamesOnly {
				if t != nil && t.Registered > 0 {
					rows = append(rows, store.TopicStats{Namespace: f.Namespace, Topic: name, Registered: t.Registered})
				}
				continue
			}
			if err := appendStats(u, t, &rows, room); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b store.TopicStats) int { return cmp.Compare(a.Topic, b.Topic) })
	return rows, nil
}

// Totals implements store.Shard.
func (s *Store) Totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	var total store.TopicStats
	err := s.count(ctx, func(u *unit.Unit, room *int) error {
		total = store.TopicStats{Namespace: namespace}
		for name, t := range u.Mem.Topics {
			if name.Namespace != namespace || t.Registered == 0 || store.IsInternal(name.Name) {
				continue
			}
			row, err := topicStats(u, t, maps.Keys(t.Queues), room)
			if err != nil {
				return err
			}
			total = total.Add(row)
		}
		total.Namespace, total.Topic = namespace, ""
		return nil
	})
	if err != nil {
		return store.TopicStats{}, err
	}
	return total, nil
}

// Usage implements store.Counts. It reads memory.
func (s *Store) Usage(ctx context.Context, namespace string) (usage store.Usage, err error) {
	err = s.count(ctx, func(u *unit.Unit, _ *int) error {
		usage = store.Usage{}
		for name, t := range u.Mem.Topics {
			if name.Namespace == namespace && !store.IsInternal(name.Name) {
				usage = usage.Add(store.Usage{
					Jobs: t.Waiting + t.Running, Bytes: t.Bytes, KeptBytes: t.KeptDone.Bytes + t.KeptDead.Bytes,
				})
			}
		}
		return nil
	})
	return usage, err
}

// count makes transactions that read counts, until one has room to count all jobs that are due. What read has written
// is the caller's only if count returns no error.
func (s *Store) count(ctx context.Context, read func(u *unit.Unit, room *int) error) error {
	for {
		room := countJobs
		err := s.db.Submit(ctx, &op{Verb: "count jobs", Weight: 1, Run: func(u *unit.Unit) error {
			room = countJobs
			return read(u, &room)
		}})
		if err != nil || room > 0 {
			return err
		}
	}
}

// countDue counts the jobs of a queue that came due as ready, as far as there is room, which it takes.
func countDue(u *unit.Unit, q *memory.Queue, room *int) error {
	if q.Ready >= q.Waiting {
		return nil
	}
	if !q.Limits().Ordered { // whose head may wait while others are due
		if err := u.LoadHead(q); err != nil || !q.Due(u.Now) {
			return err
		}
	}
	wasSilent := q.Ready == 0
	counted, err := u.MarkReady(q, *room)
	if *room -= counted; counted > 0 && wasSilent {
		q.Silent = true
	}
	return err
}

// appendStats adds a topic's row, unless no job was ever registered in it.
func appendStats(u *unit.Unit, t *memory.Topic, all *[]store.TopicStats, room *int) error {
	if t == nil || t.Registered == 0 {
		return nil
	}
	queues, err := someQueues(u, t)
	if err != nil {
		return err
	}
	row, err := topicStats(u, t, slices.Values(queues), room)
	if err != nil {
		return err
	}
	*all = append(*all, row)
	return nil
}

// topicStats returns the counts of a topic. The oldest due time is that of some queues.
func topicStats(u *unit.Unit, t *memory.Topic, queues iter.Seq[*memory.Queue], room *int) (store.TopicStats, error) {
	for q := range t.Queues {
		if err := countDue(u, q, room); err != nil {
			return store.TopicStats{}, err
		}
	}
	row := store.TopicStats{
		Namespace: t.Name.Namespace, Topic: t.Name.Name,
		Registered: t.Registered, Delivered: t.Delivered, Dead: t.Dead, Cancelled: t.Cancelled,
		Scheduled: t.Waiting - t.Ready, Ready: t.Ready, Running: t.Running, Bytes: t.Bytes,
	}
	for q := range t.OpenBreakers {
		if q.BreakerOpen(u.Now) {
			row.OpenBreakers++
		}
	}
	for q := range queues {
		if q.Waiting == 0 {
			continue
		}
		first, err := u.FirstDue(q)
		if err != nil {
			return row, err
		}
		if first == memory.NoHead {
			continue
		}
		if at := clock.Time(first.Due); row.OldestDue.IsZero() || at.Before(row.OldestDue) {
			row.OldestDue = at
		}
	}
	return row, nil
}

// someQueues are at most statsLanes of a topic's queues. When there are more in memory, many may be idle, so it asks
// the database for those with pending jobs.
func someQueues(u *unit.Unit, t *memory.Topic) (queues []*memory.Queue, err error) {
	if len(t.Queues) <= statsLanes {
		return slices.Collect(maps.Keys(t.Queues)), nil
	}
	err = u.Query(table.TopicQueues, func(v []driver.Value) error {
		if q := u.Mem.ByID[db.Int(v[0])]; q != nil {
			queues = append(queues, q)
		}
		return nil
	}, t.Name.Namespace, t.Name.Name, int64(statsLanes))
	return queues, err
}

// LaneStats implements store.Shard. The lanes are read from the database, of which a page costs the same however many
// there are; only what is ready or runs, and the throttle of a lane, is in memory.
func (s *Store) LaneStats(
	ctx context.Context, namespace, topic, after string, limit int,
) ([]store.LaneStats, error) {
	var lanes []store.LaneStats
	var ids, pending []int64
	err := s.db.Read(ctx, "count lanes", func(ctx context.Context, c *db.Conn) error {
		return c.Query(ctx, table.CountLanes, func(v []driver.Value) error {
			ids, pending = append(ids, db.Int(v[0])), append(pending, db.Int(v[2]))
			lanes = append(lanes, store.LaneStats{Lane: db.Text(v[1])})
			return nil
		}, namespace, topic, after, int64(max(0, limit)))
	})
	if err != nil || len(lanes) == 0 {
		return nil, err
	}
	inMemory := make([]store.LaneStats, len(ids))
	err = s.count(ctx, func(u *unit.Unit, room *int) error {
		clear(inMemory)
		for i, id := range ids {
			if q := u.Mem.ByID[id]; q != nil {
				if err := countDue(u, q, room); err != nil {
					return err
				}
				l := store.LaneStats{Ready: q.Ready, Running: q.Running, BreakerOpen: q.BreakerOpen(u.Now)}
				l.CooldownUntil, l.CooldownCause = q.Cooldown(u.Now)
				l.Health = q.Health
				inMemory[i] = l
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, m := range inMemory {
		l := &lanes[i]
		l.CooldownUntil, l.CooldownCause, l.BreakerOpen = m.CooldownUntil, m.CooldownCause, m.BreakerOpen
		l.Health = m.Health
		l.Running = min(m.Running, pending[i]) // which may be a commit apart
		l.Ready = min(m.Ready, pending[i]-l.Running)
		l.Scheduled = pending[i] - l.Running - l.Ready
	}
	return lanes, nil
}

// QueueState implements store.Counts. A lane that is not in memory has no unfinished jobs and no throttle.
func (s *Store) QueueState(ctx context.Context, name job.Queue) (state store.QueueState, err error) {
	err = s.count(ctx, func(u *unit.Unit, room *int) (err error) {
		state = store.QueueState{LaneStats: store.LaneStats{Lane: name.Lane}, Led: s.Led()}
		q := u.Mem.Queues[name]
		if q == nil {
			return nil
		}
		if err := countDue(u, q, room); err != nil {
			return err
		}
		state.Scheduled, state.Ready, state.Running = q.Waiting-q.Ready, q.Ready, q.Running
		state.BreakerOpen, state.NextStart, state.Health = q.BreakerOpen(u.Now), q.NextStart(u.Now), q.Health
		state.CooldownUntil, state.CooldownCause = q.Cooldown(u.Now)
		state.Next, err = u.NextInTurn(q)
		return err
	})
	return state, err
}

// TopicState implements store.Counts.
func (s *Store) TopicState(
	ctx context.Context, namespace, topic string, rate policy.Rate,
) (state store.TopicState, err error) {
	err = s.count(ctx, func(u *unit.Unit, _ *int) error {
		state = store.TopicState{}
		if t := u.Mem.Topics[memory.TopicName{Namespace: namespace, Name: topic}]; t != nil {
			state.Running = t.Running
			if t.Grants != nil {
				state.NextStart = u.Now.TimeAt(t.Grants.Starts.Free(rate, u.Now))
			}
		}
		return nil
	})
	return state, err
}

// ReadHistory implements store.Counts. It reads the database.
func (s *Store) ReadHistory(ctx context.Context, namespace string, topics []string) ([]store.History, error) {
	all := make([]store.History, len(topics))
	err := s.db.Read(ctx, "read history", func(ctx context.Context, c *db.Conn) error {
		for i, topic := range topics {
			all[i] = store.History{Topic: topic}
			err := c.Query(ctx, table.ReadHistory, func(v []driver.Value) error {
				b := store.HistoryBucket{At: clock.Time(db.Int(v[1]))}
				for k, n := range b.Numbers() {
					*n = db.Int(v[2+k])
				}
				if db.Int(v[0]) == time.Hour.Milliseconds() {
					all[i].Hours = append(all[i].Hours, b)
				} else {
					all[i].Minutes = append(all[i].Minutes, b)
				}
				return nil
			}, namespace, topic)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// ListHealth implements store.Counts. It reads memory.
func (s *Store) ListHealth(ctx context.Context, f store.HealthFilter) (all []store.LaneHealth, err error) {
	err = s.count(ctx, func(u *unit.Unit, _ *int) error {
		all = nil
		for q := range u.Mem.Unhealthy {
			if f.Selects(q.Name, q.Health) {
				all = append(all, store.LaneHealth{Queue: q.Name, Health: q.Health})
			}
		}
		all = f.First(all)
		return nil
	})
	return all, err
}
