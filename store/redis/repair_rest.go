package redis

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// endings are the states of jobs that have ended, as scripts write them.
var endings = []string{"d", "x", "c"}

// nextEnding goes on to a topic's next list of ended jobs, or to the next topic.
func (p *pass) nextEnding() {
	p.cursor, p.place, p.sums = "0", 0, sums{}
	if p.state++; p.state == len(endings) {
		p.state, p.topics = 0, p.topics[1:]
	}
}

// repairEnded walks through the topics' lists of ended jobs.
func (s *Store) repairEnded(ctx context.Context, sh *shard, p *pass) (bool, error) {
	name, err := s.nextTopic(ctx, sh, p)
	if name == "" || err != nil {
		return err == nil, err
	}
	c := s.newCall(sh, scriptRepairEnded, sh.keys.Reply("repair", "e"), nil, []*layout.Topic{sh.keys.TopicByName(name)}, 2)
	c.add(endings[p.state], p.cursor)
	reply, err := s.do(ctx, c)
	if err != nil {
		return false, err
	}
	answer := list(reply)
	if len(answer) != 3 {
		return false, malformed(scriptRepairEnded)
	}
	p.noteAll(strs(answer[1]), strs(answer[2]))
	if p.cursor = str(answer[0]); p.cursor == "0" {
		p.nextEnding()
	}
	return false, nil
}

// leftovers is a step that removes from a hash what is of no job.
func leftovers(hash string) func(*Store, context.Context, *shard, *pass) (bool, error) {
	return func(s *Store, ctx context.Context, sh *shard, p *pass) (bool, error) {
		keys := []string{sh.keys.Jobs, sh.keys.Tag + hash, sh.keys.Forget}
		reply, err := s.eval(ctx, scriptRepairLeftovers, keys, []any{p.cursor, hash})
		if err != nil {
			return false, err
		}
		answer := list(reply)
		if len(answer) != 3 {
			return false, malformed(scriptRepairLeftovers)
		}
		p.cursor = str(answer[0])
		p.note(store.RepairLeftover, num(answer[1]), strs(answer[2])...)
		return p.cursor == "0", nil
	}
}

// repairOutbox checks the outbox: its entries, then their order.
func (s *Store) repairOutbox(ctx context.Context, sh *shard, p *pass) (bool, error) {
	reply, err := s.eval(ctx, scriptRepairOutbox, []string{sh.keys.Outbox, sh.keys.OutboxQueue}, []any{p.cursor, p.place})
	if err != nil {
		return false, err
	}
	answer := list(reply)
	if len(answer) != 4 {
		return false, malformed(scriptRepairOutbox)
	}
	p.cursor, p.place = str(answer[0]), num(answer[1])
	p.note(store.RepairOutbox, num(answer[2]))
	p.note(store.RepairNoJob, num(answer[3]))
	return p.place < 0, nil
}

// repairAgenda removes from the agenda what nobody can look at.
func (s *Store) repairAgenda(ctx context.Context, sh *shard, p *pass) (bool, error) {
	reply, err := s.eval(ctx, scriptRepairAgenda, []string{sh.keys.Agenda, sh.keys.Names, sh.keys.Rings}, []any{p.cursor})
	if err != nil {
		return false, err
	}
	answer := list(reply)
	if len(answer) != 2 {
		return false, malformed(scriptRepairAgenda)
	}
	p.cursor = str(answer[0])
	p.note(store.RepairQueue, num(answer[1]))
	return p.cursor == "0", nil
}

const (
	// repairLanes is how many queues of a topic are counted in one script, about ten milliseconds.
	repairLanes = 8192
	// repairLists is how many ended jobs are added up in one script.
	repairLists = 4096
	// repairTries is how often the counting of a topic with more than that is begun anew because the topic was changed
	// meanwhile; then its counters stay as they are until the next check.
	repairTries = 5
)

// sums are what was counted of a topic so far.
type sums struct {
	due, ready, held int64  // of its queues
	bytes            int64  // of a list of ended jobs
	read             int64  // queues or jobs
	began            string // what must not change meanwhile, as it was at the beginning
	after            string // the last queue that was counted
	before           *sums  // what the counting before this one came to
	tries            int
}

// again begins a counting anew, unless that was done often enough.
func (u *sums) again() bool {
	*u = sums{tries: u.tries + 1}
	return u.tries < repairTries
}

// repairCounts counts the next queues of a topic. Up to repairLanes queues are counted in one script, exactly, whatever
// goes on. More are counted twice, and what came out both times is written if no counter has changed since.
func (s *Store) repairCounts(ctx context.Context, sh *shard, p *pass) (bool, error) {
	name, err := s.nextTopic(ctx, sh, p)
	if name == "" || err != nil {
		return err == nil, err
	}
	u, from := &p.sums, "-"
	if u.after != "" {
		from = "(" + u.after
	}
	lanes, err := s.client.ZRangeByLex(ctx, sh.keys.Lanes(name), &redis.ZRangeBy{Min: from, Max: "+", Count: int64(s.lanesAtOnce)}).Result()
	if err != nil {
		return false, connect.MapError(ctx, err)
	}
	last := len(lanes) < s.lanesAtOnce
	set, counters, err := s.countLanes(ctx, sh, name, lanes, u, last && u.after == "", "")
	if err != nil {
		return false, err
	}
	switch {
	case last && u.after == "": // all of them, and written
	case u.began != "" && u.began != counters:
		set = -1
	case !last:
		u.began, u.after = counters, lanes[len(lanes)-1]
		return false, nil
	case u.before == nil:
		whole := *u
		*u = sums{began: u.began, before: &whole, tries: u.tries}
		return false, nil
	case u.due != u.before.due || u.ready != u.before.ready || u.held != u.before.held:
		set = -1
	default:
		if set, _, err = s.countLanes(ctx, sh, name, nil, u, true, u.began); err != nil {
			return false, err
		}
	}
	if set < 0 && u.again() {
		return false, nil
	}
	p.note(store.RepairCounter, set)
	p.topics, p.sums = p.topics[1:], sums{}
	return false, nil
}

// countLanes adds queues to what was counted of a topic. With apply it sets the counters and answers how many changed, -1
// when they are not those expected or the topic has other queues by now.
func (s *Store) countLanes(
	ctx context.Context, sh *shard, name string, lanes []string, u *sums, apply bool, expected string,
) (set int64, counters string, err error) {
	t := sh.keys.TopicByName(name)
	keys := make([]string, 0, 5+3*len(lanes))
	keys = append(keys, t.Stats, t.Done, t.Dead, t.Cancelled, sh.keys.Lanes(name))
	for _, lane := range lanes {
		_, n, _ := strings.Cut(lane, "\x00")
		keys = append(keys, sh.keys.Due(n), sh.keys.Ready(n), sh.keys.Held(n))
	}
	read := u.read + int64(len(lanes))
	reply, err := s.eval(ctx, scriptRepairCounts, keys, []any{u.due, u.ready, u.held, apply, expected, read})
	if err != nil {
		return 0, "", err
	}
	answer := list(reply)
	if len(answer) != 5 {
		return 0, "", malformed(scriptRepairCounts)
	}
	u.due, u.ready, u.held, u.read = num(answer[0]), num(answer[1]), num(answer[2]), read
	return num(answer[4]), str(answer[3]), nil
}

// repairBytes adds up the next jobs of a list of ended jobs. A list longer than repairLists is added up in several steps,
// and written if nothing was added or removed meanwhile.
func (s *Store) repairBytes(ctx context.Context, sh *shard, p *pass) (bool, error) {
	name, err := s.nextTopic(ctx, sh, p)
	if name == "" || err != nil {
		return err == nil, err
	}
	t, u, state := sh.keys.TopicByName(name), &p.sums, endings[p.state]
	reply, err := s.eval(ctx, scriptRepairBytes, []string{t.Stats, t.Ended(state), sh.keys.Runs},
		[]any{state + "b", u.read, s.endedAtOnce, u.bytes, u.began})
	if err != nil {
		return false, err
	}
	answer := list(reply)
	if len(answer) != 4 {
		return false, malformed(scriptRepairBytes)
	}
	read, set := num(answer[0]), num(answer[3])
	u.read, u.bytes, u.began = u.read+read, num(answer[1]), str(answer[2])
	if set < 0 && u.again() || set == 0 && read == int64(s.endedAtOnce) {
		return false, nil
	}
	p.note(store.RepairCounter, set)
	p.nextEnding()
	return false, nil
}
