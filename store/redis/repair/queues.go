package repair

import (
	"context"
	"errors"
	"strconv"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// scanHash reads the next fields of a hash with small values, and gives the cursor behind them: zero at the end.
func (s *Repairer) scanHash(ctx context.Context, key string, p *pass) (fields []string, next uint64, err error) {
	cursor, err := strconv.ParseUint(p.cursor, 10, 64)
	if err != nil {
		return nil, 0, scriptIndex.repair.Malformed()
	}
	fields, next, err = s.Client.HScan(ctx, key, cursor, "", stepSize).Result()
	if err != nil {
		return nil, 0, connect.MapError(ctx, err)
	}
	return fields, next, nil
}

// repairNumbers checks the queues that have a number under their name. Those that have a name are checked before they
// are walked through.
func (s *Repairer) repairNumbers(ctx context.Context, p *pass) (bool, error) {
	fields, next, err := s.scanHash(ctx, s.Keys.Queues, p)
	if err != nil {
		return false, err
	}
	if err := s.repairIndex(ctx, p, fields, 1, 0); err != nil {
		return false, err
	}
	p.cursor = strconv.FormatUint(next, 10)
	return next == 0, nil
}

// repairIndex checks queues given as pairs. number and name are the positions in a pair.
func (s *Repairer) repairIndex(ctx context.Context, p *pass, pairs []string, number, name int) error {
	keys, args := []string{s.Keys.Queues, s.Keys.Names, s.Keys.Topics}, []any{}
	for i := 1; i < len(pairs); i += 2 {
		pair := pairs[i-1 : i+1]
		if q, ok := layout.ParseQueue(pair[name]); ok && layout.Int(pair[number]) > 0 {
			topic := layout.TopicName(q.Namespace, q.Topic)
			keys = append(keys, s.Keys.TopicLanes(topic))
			args = append(args, pair[number], pair[name], topic, q.Lane)
		}
	}
	if len(args) == 0 {
		return nil
	}
	reply, err := s.Eval(ctx, scriptIndex.of(p), keys, args)
	if err != nil {
		return err
	}
	for _, name := range layout.Strs(reply) {
		p.note(store.RepairQueue, "", name, "it is missing in an index of queues")
	}
	return nil
}

// repairQueues checks the queues that have a name under their number, and walks through them.
func (s *Repairer) repairQueues(ctx context.Context, p *pass) (bool, error) {
	if len(p.queues) == 0 {
		if p.last {
			return true, nil
		}
		fields, next, err := s.scanHash(ctx, s.Keys.Names, p)
		if err != nil {
			return false, err
		}
		if err := s.repairIndex(ctx, p, fields, 0, 1); err != nil {
			return false, err
		}
		p.cursor, p.last = strconv.FormatUint(next, 10), next == 0
		topics := make(map[string]*layout.Topic)
		for i := 1; i < len(fields); i += 2 {
			if q, ok := layout.ParseQueue(fields[i]); ok {
				p.queues = append(p.queues, s.Uncached(q, fields[i-1], topics))
			}
		}
		p.set, p.at = "ready", "0"
		if len(p.queues) == 0 {
			return p.last, nil
		}
	}
	some := p.queues[:min(len(p.queues), stepSize/2)]
	c := s.NewCall(scriptQueues.of(p), s.Keys.Reply("repair", "q"), some, nil, 4)
	c.Keys = append(c.Keys, s.Keys.Clock, s.Keys.StaleAgenda)
	c.Add(p.set, p.at, 4*stepSize, p.daily)
	answer, err := s.RunList(ctx, c, 4)
	if errors.Is(err, layout.ErrStale) {
		return false, s.dropForgotten(ctx, p)
	}
	if err != nil {
		return false, err
	}
	p.queues, p.set, p.at = p.queues[min(layout.Num(answer[0]), int64(len(some))):], layout.Str(answer[1]),
		layout.Str(answer[2])
	p.noteAll(layout.Strs(answer[3]))
	return len(p.queues) == 0 && p.last, nil
}

// dropForgotten leaves out of the queues that are still to be checked those that were forgotten since they were read.
// It returns ErrStale if all of them still exist.
func (s *Repairer) dropForgotten(ctx context.Context, p *pass) error {
	numbers := make([]string, len(p.queues))
	for i, q := range p.queues {
		numbers[i] = q.Number
	}
	names, err := s.Client.HMGet(ctx, s.Keys.Names, numbers...).Result()
	if err != nil {
		return connect.MapError(ctx, err)
	}
	var left []*layout.Queue
	for i, name := range layout.Strs(names) {
		if name == p.queues[i].Name {
			left = append(left, p.queues[i])
		}
	}
	if len(left) == len(p.queues) {
		return layout.ErrStale
	}
	if len(left) == 0 || left[0] != p.queues[0] {
		p.set, p.at = "ready", "0"
	}
	p.queues = left
	return nil
}

// repairJobs checks the next jobs, in any state.
func (s *Repairer) repairJobs(ctx context.Context, p *pass) (bool, error) {
	answer, err := s.EvalList(ctx, scriptScan, 6, []string{s.Keys.Jobs}, []any{p.cursor, p.count})
	if err != nil {
		return false, err
	}
	members, numbers, expiring := layout.Strs(answer[2]), layout.Strs(answer[3]), layout.Strs(answer[4])
	if p.audit {
		p.noteEach(store.FaultUnreadable, layout.Strs(answer[5]), "", "its record cannot be read")
	}
	if len(members) > 0 {
		p.count = min(stepSize, max(1, int(int64(len(members))*stepBytes/max(1, layout.Num(answer[1])))))
	}
	queues, err := s.PeekByNumber(ctx, numbers)
	if err != nil {
		return false, err
	}
	for from := 0; from < len(members); from += 2 * stepSize {
		to := min(from+2*stepSize, len(members))
		if err := s.repairSome(ctx, p, members[from:to], numbers[from:to], expiring[from:to], queues); err != nil {
			return false, err
		}
	}
	p.cursor = layout.Str(answer[0])
	if p.cursor == "0" && p.lost > 0 && !p.audit {
		s.Log.ErrorContext(ctx, "jobs not deliverable: the names of their queues are lost", "shard", s.Index, "jobs",
			p.lost)
	}
	return p.cursor == "0", nil
}

func (s *Repairer) repairSome(
	ctx context.Context, p *pass, members, numbers, expiring []string, queues map[string]*layout.Queue,
) error {
	var all []*layout.Queue
	position := make(map[*layout.Queue]int)
	args := make([]any, 0, 3*len(members))
	for i, m := range members {
		q := queues[numbers[i]]
		if q == nil {
			p.lost++
			if p.audit {
				p.note(store.FaultNameless, m, "", "its queue, number "+numbers[i]+", has no name")
			}
			continue
		}
		if position[q] == 0 {
			all = append(all, q)
			position[q] = len(all)
		}
		args = append(args, position[q], m, expiring[i])
	}
	if len(all) == 0 {
		return nil
	}
	c := s.NewCall(scriptJobs.of(p), s.Keys.Reply("repair", "j"), all, nil, len(args))
	c.Keys = append(c.Keys, s.Keys.Clock, s.Keys.StaleAgenda)
	c.Add(args...)
	answer, err := s.RunList(ctx, c, 2)
	if err != nil {
		return err
	}
	states := layout.List(answer[0])
	if len(states) != 5 {
		return scriptJobs.repair.Malformed()
	}
	p.ledger.Records = p.ledger.Records.Plus(store.States{
		Waiting: layout.Num(states[0]), Running: layout.Num(states[1]),
		Delivered: layout.Num(states[2]), Dead: layout.Num(states[3]), Cancelled: layout.Num(states[4]),
	})
	p.noteAll(layout.Strs(answer[1]))
	return nil
}

// nextTopics are the topics that a step is at, up to topicsPerStep; none after the last.
func (s *Repairer) nextTopics(ctx context.Context, p *pass) ([]string, error) {
	if len(p.topics) == 0 {
		names, err := s.Client.MembersAfter(ctx, s.Keys.Topics, p.afterName, stepSize)
		if len(names) == 0 || err != nil {
			return nil, err
		}
		p.topics, p.afterName = names, names[len(names)-1]
	}
	return p.topics[:min(len(p.topics), topicsPerStep)], nil
}
