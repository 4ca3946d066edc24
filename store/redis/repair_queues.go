package redis

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// scanHash reads the next fields of a hash with small values, and gives the cursor behind them: zero at the end.
func (s *Store) scanHash(ctx context.Context, key string, p *pass) (fields []string, next uint64, err error) {
	cursor, err := strconv.ParseUint(p.cursor, 10, 64)
	if err != nil {
		return nil, 0, malformed(scriptRepairIndex)
	}
	fields, next, err = s.client.HScan(ctx, key, cursor, "", repairMost).Result()
	if err != nil {
		return nil, 0, connect.MapError(ctx, err)
	}
	return fields, next, nil
}

// repairNumbers checks the queues that have a number under their name. Those that have a name are checked before they are
// walked through.
func (s *Store) repairNumbers(ctx context.Context, sh *shard, p *pass) (bool, error) {
	fields, next, err := s.scanHash(ctx, sh.keys.Queues, p)
	if err != nil {
		return false, err
	}
	if err := s.repairIndex(ctx, sh, p, fields, 1, 0); err != nil {
		return false, err
	}
	p.cursor = strconv.FormatUint(next, 10)
	return next == 0, nil
}

// repairIndex checks queues given as pairs, of which number and name say where each stands.
func (s *Store) repairIndex(ctx context.Context, sh *shard, p *pass, pairs []string, number, name int) error {
	keys, args := []string{sh.keys.Queues, sh.keys.Names, sh.keys.Seen}, []any{}
	for i := 1; i < len(pairs); i += 2 {
		pair := pairs[i-1 : i+1]
		if q, ok := layout.ParseQueue(pair[name]); ok && layout.Int(pair[number]) > 0 {
			topic := layout.TopicName(q.Namespace, q.Topic)
			keys = append(keys, sh.keys.Lanes(topic))
			args = append(args, pair[number], pair[name], topic, q.Lane)
		}
	}
	if len(args) == 0 {
		return nil
	}
	reply, err := s.eval(ctx, scriptRepairIndex, keys, args)
	if err != nil {
		return err
	}
	p.note(store.RepairQueue, num(reply))
	return nil
}

// resolve finds queues by number, without remembering those that this process does not know: a walk through all of
// them must not displace those that it works with.
func (s *Store) resolve(ctx context.Context, sh *shard, numbers []string) (map[string]*layout.Queue, error) {
	found := make(map[string]*layout.Queue)
	topics := make(map[string]*layout.Topic)
	var missing []string
	sh.mu.RLock()
	for _, n := range numbers {
		if q := cmp.Or(sh.newest.byNumber[n], sh.older.byNumber[n]); q != nil {
			found[n], topics[q.TopicKeys.Name] = q, q.TopicKeys
		} else if _, asked := found[n]; !asked {
			found[n] = nil
			missing = append(missing, n)
		}
	}
	sh.mu.RUnlock()
	if len(missing) == 0 {
		return found, nil
	}
	names, err := s.client.HMGet(ctx, sh.keys.Names, missing...).Result()
	if err != nil {
		return nil, connect.MapError(ctx, err)
	}
	for i, name := range strs(names) {
		if q, ok := layout.ParseQueue(name); ok {
			found[missing[i]] = sh.loose(q, missing[i], topics)
		} else {
			delete(found, missing[i])
		}
	}
	return found, nil
}

// loose makes a queue that is not remembered.
func (s *shard) loose(q job.Queue, number string, topics map[string]*layout.Topic) *layout.Queue {
	name := layout.TopicName(q.Namespace, q.Topic)
	t := topics[name]
	if t == nil {
		t = s.keys.Topic(q.Namespace, q.Topic)
		topics[name] = t
	}
	return s.keys.Queue(q, number, t)
}

// repairQueues checks the queues that have a name under their number, and walks through them.
func (s *Store) repairQueues(ctx context.Context, sh *shard, p *pass) (bool, error) {
	if len(p.queues) == 0 {
		if p.last {
			return true, nil
		}
		fields, next, err := s.scanHash(ctx, sh.keys.Names, p)
		if err != nil {
			return false, err
		}
		if err := s.repairIndex(ctx, sh, p, fields, 0, 1); err != nil {
			return false, err
		}
		p.cursor, p.last = strconv.FormatUint(next, 10), next == 0
		topics := make(map[string]*layout.Topic)
		for i := 1; i < len(fields); i += 2 {
			if q, ok := layout.ParseQueue(fields[i]); ok {
				p.queues = append(p.queues, sh.loose(q, fields[i-1], topics))
			}
		}
		p.set, p.at = "ready", "0"
		if len(p.queues) == 0 {
			return p.last, nil
		}
	}
	some := p.queues[:min(len(p.queues), repairMost/2)]
	c := s.newCall(sh, scriptRepairQueues, sh.keys.Reply("repair", "q"), some, nil, 4)
	c.add(p.set, p.at, 4*repairMost, p.slow)
	reply, err := s.do(ctx, c)
	if errors.Is(err, errStale) {
		return false, s.dropForgotten(ctx, sh, p)
	}
	if err != nil {
		return false, err
	}
	answer := list(reply)
	if len(answer) != 5 {
		return false, malformed(scriptRepairQueues)
	}
	p.queues, p.set, p.at = p.queues[min(num(answer[0]), int64(len(some))):], str(answer[1]), str(answer[2])
	p.noteAll(strs(answer[3]), strs(answer[4]))
	return len(p.queues) == 0 && p.last, nil
}

// dropForgotten leaves out of the queues that are still to be checked those that were forgotten since they were read. It
// answers errStale when there is none.
func (s *Store) dropForgotten(ctx context.Context, sh *shard, p *pass) error {
	numbers := make([]string, len(p.queues))
	for i, q := range p.queues {
		numbers[i] = q.Number
	}
	names, err := s.client.HMGet(ctx, sh.keys.Names, numbers...).Result()
	if err != nil {
		return connect.MapError(ctx, err)
	}
	var left []*layout.Queue
	for i, name := range strs(names) {
		if name == p.queues[i].Name {
			left = append(left, p.queues[i])
		}
	}
	if len(left) == len(p.queues) {
		return errStale
	}
	if len(left) == 0 || left[0] != p.queues[0] {
		p.set, p.at = "ready", "0"
	}
	p.queues = left
	return nil
}

// repairJobs looks at the next jobs, wherever they are.
func (s *Store) repairJobs(ctx context.Context, sh *shard, p *pass) (bool, error) {
	reply, err := s.eval(ctx, scriptRepairScan, []string{sh.keys.Jobs}, []any{p.cursor, p.count})
	if err != nil {
		return false, err
	}
	answer := list(reply)
	if len(answer) != 4 {
		return false, malformed(scriptRepairScan)
	}
	members, numbers := strs(answer[2]), strs(answer[3])
	if len(members) > 0 {
		p.count = min(repairMost, max(1, int(int64(len(members))*repairBytes/max(1, num(answer[1])))))
	}
	queues, err := s.resolve(ctx, sh, numbers)
	if err != nil {
		return false, err
	}
	for from := 0; from < len(members); from += 2 * repairMost {
		to := min(from+2*repairMost, len(members))
		if err := s.repairSome(ctx, sh, p, members[from:to], numbers[from:to], queues); err != nil {
			return false, err
		}
	}
	p.cursor = str(answer[0])
	if p.cursor == "0" && p.lost > 0 {
		s.log.ErrorContext(ctx, "jobs not deliverable: the names of their queues are lost", "shard", sh.index, "jobs", p.lost)
	}
	return p.cursor == "0", nil
}

func (s *Store) repairSome(
	ctx context.Context, sh *shard, p *pass, members, numbers []string, queues map[string]*layout.Queue,
) error {
	var all []*layout.Queue
	position := make(map[*layout.Queue]int)
	args := make([]any, 0, 2*len(members))
	for i, m := range members {
		q := queues[numbers[i]]
		if q == nil {
			p.lost++
			continue
		}
		if position[q] == 0 {
			all = append(all, q)
			position[q] = len(all)
		}
		args = append(args, position[q], m)
	}
	if len(all) == 0 {
		return nil
	}
	c := s.newCall(sh, scriptRepairJobs, sh.keys.Reply("repair", "j"), all, nil, len(args))
	c.add(args...)
	reply, err := s.do(ctx, c)
	if err != nil {
		return err
	}
	answer := list(reply)
	if len(answer) != 2 {
		return malformed(scriptRepairJobs)
	}
	p.noteAll(strs(answer[0]), strs(answer[1]))
	return nil
}

// nextTopic is the topic that a step is at; empty after the last.
func (s *Store) nextTopic(ctx context.Context, sh *shard, p *pass) (string, error) {
	if len(p.topics) == 0 {
		from := "-"
		if p.afterName != "" {
			from = "(" + p.afterName
		}
		names, err := s.client.ZRangeByLex(ctx, sh.keys.Seen, &redis.ZRangeBy{Min: from, Max: "+", Count: repairMost}).Result()
		if err != nil {
			return "", connect.MapError(ctx, err)
		}
		if len(names) == 0 {
			return "", nil
		}
		p.topics, p.afterName = names, names[len(names)-1]
	}
	return p.topics[0], nil
}
