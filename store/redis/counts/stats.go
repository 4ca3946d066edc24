package counts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

const (
	// statsChunk is how many topics are read in one trip.
	statsChunk = 256
	// lanesChunk is how many of a topic's lanes are looked at at a time.
	lanesChunk = 1000
	// scriptLanes is how many lanes a script looks at, which takes it about a millisecond.
	scriptLanes = 250
)

// TopicStats reads the counters of some topics.
func (s *Counts) TopicStats(ctx context.Context, f store.StatsFilter) ([]store.TopicStats, error) {
	var names []string
	if len(f.Topics) > 0 {
		names = make([]string, len(f.Topics))
		for i, topic := range f.Topics {
			names[i] = layout.TopicName(f.Namespace, topic)
		}
		slices.Sort(names)
	} else {
		var err error
		if names, err = s.pageOfTopics(ctx, f.Namespace, f.After, f.Limit); err != nil {
			return nil, fmt.Errorf("topic stats: %w", err)
		}
	}
	var rows []store.TopicStats
	for chunk := range slices.Chunk(names, statsChunk) {
		read := s.stats
		if f.NamesOnly {
			read = s.registered
		}
		part, err := read(ctx, chunk)
		if err != nil {
			return nil, fmt.Errorf("topic stats: %w", err)
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

// eachTopics calls do with the names of a namespace's topics, in order, statsChunk at a time.
func (s *Counts) eachTopics(ctx context.Context, namespace string, do func(names []string) error) error {
	after := ""
	for {
		names, err := s.pageOfTopics(ctx, namespace, after, statsChunk)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			if err := do(names); err != nil {
				return err
			}
		}
		if len(names) < statsChunk {
			return nil
		}
		_, after, _ = strings.Cut(names[len(names)-1], "/")
	}
}

// pageOfTopics reads the full names of a namespace's topics behind one, in order, without those of store.GroupInternal.
func (s *Counts) pageOfTopics(ctx context.Context, namespace, after string, limit int) (page []string, err error) {
	from, end := "("+layout.TopicName(namespace, after), "("+namespace+"0" // 0 is the byte after the slash
	for len(page) < limit {
		count := limit - len(page)
		names, err := s.Client.ZRangeByLex(ctx, s.Keys.Topics,
			&redis.ZRangeBy{Min: from, Max: end, Count: int64(count)}).Result()
		if err != nil {
			return nil, connect.MapError(ctx, err)
		}
		for _, name := range names {
			if _, topic, _ := strings.Cut(name, "/"); !store.IsInternal(topic) {
				page = append(page, name)
			}
		}
		if len(names) < count {
			break
		}
		from = "(" + names[len(names)-1]
	}
	return page, nil
}

// stats reads topics by name; those that the shard has never seen are left out.
func (s *Counts) stats(ctx context.Context, names []string) ([]store.TopicStats, error) {
	if len(names) == 0 {
		return nil, nil
	}
	pipe := s.Client.Pipeline()
	counters := make([]*redis.MapStringStringCmd, len(names))
	lanes := make([]*redis.StringSliceCmd, len(names))
	for i, name := range names {
		counters[i] = pipe.HGetAll(ctx, s.Keys.TopicByName(name).Stats)
		lanes[i] = pipe.ZRangeByLex(ctx, s.Keys.TopicLanes(name),
			&redis.ZRangeBy{Min: "-", Max: "+", Count: lanesChunk})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, connect.MapError(ctx, err)
	}
	open, err := s.openLanes(ctx, names)
	if err != nil {
		return nil, err
	}
	rows := make([]store.TopicStats, 0, len(names))
	for i, name := range names {
		if len(lanes[i].Val()) == 0 && layout.Num(counters[i].Val()["reg"]) == 0 {
			continue
		}
		namespace, topic, _ := strings.Cut(name, "/")
		row := store.TopicStats{Namespace: namespace, Topic: topic, OpenBreakers: open[i]}
		c := counters[i].Val()
		if waits(c) {
			var counted laneCounts
			if counted, err = s.countLanes(ctx, name, lanes[i].Val()); err != nil {
				return nil, err
			}
			c, row.Ready, row.OldestDue = counted.counters, counted.due, layout.Time(counted.oldest)
		}
		row.Registered, row.Running = layout.Num(c["reg"]), layout.Num(c["claimed"])
		row.Delivered, row.Dead, row.Cancelled = layout.Num(c["d"]), layout.Num(c["x"]), layout.Num(c["c"])
		open := row.Registered - row.Running - row.Delivered - row.Dead - row.Cancelled
		row.Ready = min(row.Ready+layout.Num(c["ready"]), max(open, 0))
		row.Scheduled = open - row.Ready
		row.Bytes = max(0, layout.Num(c["b"]))
		rows = append(rows, row)
	}
	return rows, nil
}

// registered reads topics by name as stats does, without counting their lanes.
func (s *Counts) registered(ctx context.Context, names []string) (rows []store.TopicStats, err error) {
	pipe := s.Client.Pipeline()
	counters, lanes := make([]*redis.StringCmd, len(names)), make([]*redis.IntCmd, len(names))
	for i, name := range names {
		counters[i], lanes[i] = pipe.HGet(ctx, s.Keys.TopicByName(name).Stats, "reg"), pipe.ZCard(ctx,
			s.Keys.TopicLanes(name))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, connect.MapError(ctx, err)
	}
	for i, name := range names {
		if n := layout.Num(counters[i].Val()); n != 0 || lanes[i].Val() > 0 {
			namespace, topic, _ := strings.Cut(name, "/")
			rows = append(rows, store.TopicStats{Namespace: namespace, Topic: topic, Registered: n})
		}
	}
	return rows, nil
}

// waits reports whether a topic has jobs that are neither claimed nor ended, by its counters.
func waits(c map[string]string) bool {
	return layout.Num(c["reg"])-layout.Num(c["claimed"])-layout.Num(c["d"])-layout.Num(c["x"])-layout.Num(c["c"]) != 0
}

// laneCounts are the counts of the jobs in some lanes of a topic that have no lease.
type laneCounts struct {
	counters map[string]string // of the topic, read after the lanes: what comes to ready meanwhile is counted there
	// jobs that are due and in no ready list: of queues that are kept back, or whose list is full
	due    int64
	oldest int64 // the first due moment of all; 0: none
}

// countLanes counts the jobs in a topic's lanes. lanes are the first of them, up to lanesChunk.
func (s *Counts) countLanes(ctx context.Context, name string, lanes []string) (sum laneCounts, err error) {
	stats := s.Keys.TopicByName(name).Stats
	for {
		part, _, err := s.countLanesOf(ctx, stats, lanes, true)
		if err != nil {
			return sum, err
		}
		sum.add(part)
		if len(lanes) < lanesChunk {
			return sum, nil
		}
		if lanes, err = s.Client.MembersAfter(ctx, s.Keys.TopicLanes(name), lanes[len(lanes)-1], lanesChunk); err !=
			nil {
			return sum, err
		}
	}
}

// add adds the counts of other lanes, with the counters that were read after them.
func (c *laneCounts) add(o laneCounts) {
	c.counters = o.counters
	c.due += o.due
	c.see(o.oldest)
}

// see takes a due moment into account; 0: there is none.
func (c *laneCounts) see(due int64) {
	if due != 0 && (c.oldest == 0 || due < c.oldest) {
		c.oldest = due
	}
}

// countLanesOf reads a topic's counters and counts the jobs in lanes. counts are the jobs of each lane that are due and
// not in its ready list. oldest says whether the first due moment is wanted.
func (s *Counts) countLanesOf(
	ctx context.Context, stats string, lanes []string, oldest bool,
) (sum laneCounts, counts []int64, err error) {
	wanted := 0
	if oldest {
		wanted = 1
	}
	var heads []any
	for first := true; first || len(lanes) > 0; first = false { // at least once, for the counters
		chunk := lanes[:min(len(lanes), scriptLanes)]
		lanes = lanes[len(chunk):]
		keys := make([]string, 3, 3+2*len(chunk))
		keys[0], keys[1], keys[2] = stats, s.Keys.Jobs, s.Keys.Runs
		for _, lane := range chunk {
			_, n, _ := strings.Cut(lane, "\x00")
			keys = append(keys, s.Keys.Due(n), s.Keys.Ready(n))
		}
		answer, err := s.EvalList(ctx, scriptLaneCounts, 3+len(chunk), keys, []any{wanted})
		if err != nil {
			return sum, nil, err
		}
		fields := layout.Strs(answer[0])
		part := laneCounts{counters: make(map[string]string, len(fields)/2), oldest: layout.Num(answer[1])}
		for i := 1; i < len(fields); i += 2 {
			part.counters[fields[i-1]] = fields[i]
		}
		for _, head := range layout.Strs(answer[2]) {
			heads = append(heads, head)
		}
		for _, n := range nums(answer[3:]) {
			part.due += n
			counts = append(counts, n)
		}
		sum.add(part)
	}
	return sum, counts, s.readHeads(ctx, heads, &sum)
}

// readHeads reads the due moments of jobs from their records.
func (s *Counts) readHeads(ctx context.Context, heads []any, c *laneCounts) error {
	return s.EachJob(ctx, heads, func(i int, _ int64, record, run, _ string) error {
		if record == "" {
			return nil
		}
		stored, err := layout.ParseJob(layout.Str(heads[i]), record, run, true, job.Queue{})
		if err != nil {
			s.Unreadable.Error("job unreadable, leaving it out of the oldest due jobs", "job", heads[i], "err", err)
			return nil
		}
		c.see(stored.Run.Due)
		return nil
	})
}

// openLanes counts the lanes of topics whose breaker is open.
func (s *Counts) openLanes(ctx context.Context, names []string) ([]int64, error) {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = s.Keys.TopicByName(name).Open
	}
	counts, err := s.EvalList(ctx, scriptOpenBreakers, len(names), keys, nil)
	return nums(counts), err
}

// nums reads the integers of a reply.
func nums(list []any) []int64 {
	numbers := make([]int64, len(list))
	for i, v := range list {
		numbers[i] = layout.Num(v)
	}
	return numbers
}

// LaneStats counts the members of lanes' sets, leaving out lanes without unfinished jobs.
func (s *Counts) LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]store.LaneStats, error) {
	if after != "" {
		after += "\x01" // its numbers come after a zero byte
	}
	var rows []store.LaneStats
	for len(rows) < limit {
		lanes, err := s.Client.MembersAfter(ctx,
			s.Keys.TopicLanes(layout.TopicName(namespace, topic)), after, lanesChunk)
		if err != nil {
			return nil, fmt.Errorf("lanes: %w", err)
		}
		part, err := s.lanes(ctx, s.Keys.Topic(namespace, topic).Stats, lanes)
		if err != nil {
			return nil, fmt.Errorf("lanes: %w", err)
		}
		rows = append(rows, part...)
		if len(lanes) < lanesChunk {
			break
		}
		after = lanes[len(lanes)-1]
	}
	return rows[:min(len(rows), max(limit, 0))], nil
}

func (s *Counts) lanes(ctx context.Context, stats string, lanes []string) ([]store.LaneStats, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	pipe := s.Client.Pipeline()
	counts := make([]*redis.IntCmd, 0, 3*len(lanes))
	numbers := make([]any, 0, len(lanes))
	for _, lane := range lanes {
		_, n, _ := strings.Cut(lane, "\x00")
		numbers = append(numbers, n)
		counts = append(counts, pipe.ZCard(ctx, s.Keys.Due(n)), pipe.LLen(ctx, s.Keys.Ready(n)),
			pipe.ZCard(ctx, s.Keys.Claimed(n)))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, connect.MapError(ctx, err)
	}
	_, due, err := s.countLanesOf(ctx, stats, lanes, false)
	if err != nil {
		return nil, err
	}
	answer, err := s.EvalList(ctx, scriptThrottles, 1+2*len(lanes), []string{s.Keys.Throttles, s.Keys.Health},
		numbers)
	if err != nil {
		return nil, err
	}
	now, throttles := layout.Num(answer[0]), answer[1:]
	var rows []store.LaneStats
	for i, lane := range lanes {
		name, _, _ := strings.Cut(lane, "\x00")
		isDue := min(due[i], counts[3*i].Val()) // which were read a moment before
		row := store.LaneStats{
			Lane: name, Scheduled: counts[3*i].Val() - isDue, Ready: counts[3*i+1].Val() + isDue,
			Running: counts[3*i+2].Val(), Health: store.ParseHealth(layout.Str(throttles[2*i+1])),
		}
		parseThrottle(layout.Str(throttles[2*i]), now, &row)
		if row.Scheduled+row.Ready+row.Running > 0 {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// parseThrottle adds a queue's throttle to its stats, which have the number of claimed jobs: its cooldown, and whether
// its breaker is open.
func parseThrottle(line string, now int64, row *store.LaneStats) {
	f := strings.Fields(line)
	if len(f) < 2 {
		return
	}
	cooldown := layout.Num(f[0])
	if cooldown > now {
		row.CooldownUntil = layout.Time(cooldown)
		if len(f) > 5 {
			row.CooldownCause = layout.ParseCause(f[5])
		}
	}
	row.BreakerOpen = f[1] == "1" && (row.Running > 0 || now <= cooldown+store.BreakerRetention.Milliseconds())
}
