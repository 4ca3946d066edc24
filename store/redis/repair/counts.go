package repair

import (
	"context"
	"strings"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/script"
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
func (s *Repairer) repairEnded(ctx context.Context, p *pass) (bool, error) {
	name, err := s.nextTopic(ctx, p)
	if name == "" || err != nil {
		return err == nil, err
	}
	c := s.NewCall(scriptEnded, s.Keys.Reply("repair", "e"), nil, []*layout.Topic{s.Keys.TopicByName(name)}, 2)
	c.Add(endings[p.state], p.cursor)
	answer, err := s.RunList(ctx, c, 3)
	if err != nil {
		return false, err
	}
	p.noteAll(script.Strs(answer[1]), script.Strs(answer[2]))
	if p.cursor = script.Str(answer[0]); p.cursor == "0" {
		p.nextEnding()
	}
	return false, nil
}

// leftovers returns a step that deletes a hash's fields that belong to no job.
func leftovers(hash string) func(*Repairer, context.Context, *pass) (bool, error) {
	return func(s *Repairer, ctx context.Context, p *pass) (bool, error) {
		keys := []string{s.Keys.Jobs, s.Keys.Tag + hash, s.Keys.Forget}
		answer, err := s.EvalList(ctx, scriptLeftovers, 3, keys, []any{p.cursor, hash})
		if err != nil {
			return false, err
		}
		p.cursor = script.Str(answer[0])
		p.note(store.RepairLeftover, script.Num(answer[1]), script.Strs(answer[2])...)
		return p.cursor == "0", nil
	}
}

// repairOutbox checks the outbox: its entries, then their order.
func (s *Repairer) repairOutbox(ctx context.Context, p *pass) (bool, error) {
	answer, err := s.EvalList(ctx, scriptOutbox, 4, []string{s.Keys.Outbox, s.Keys.OutboxQueue}, []any{p.cursor, p.place})
	if err != nil {
		return false, err
	}
	p.cursor, p.place = script.Str(answer[0]), script.Num(answer[1])
	p.note(store.RepairOutbox, script.Num(answer[2]))
	p.note(store.RepairNoJob, script.Num(answer[3]))
	return p.place < 0, nil
}

// repairAgenda deletes queues without a name from the agenda.
func (s *Repairer) repairAgenda(ctx context.Context, p *pass) (bool, error) {
	answer, err := s.EvalList(ctx, scriptAgenda, 2, []string{s.Keys.Agenda, s.Keys.Names, s.Keys.LastWakeups}, []any{p.cursor})
	if err != nil {
		return false, err
	}
	p.cursor = script.Str(answer[0])
	p.note(store.RepairQueue, script.Num(answer[1]))
	return p.cursor == "0", nil
}

// repairTries bounds how often a count in several steps is restarted because the topic changed meanwhile. After that its
// counters stay as they are until the next check.
const repairTries = 5

// sums are the result of a count so far.
type sums struct {
	due, ready, claimed int64  // of its queues
	bytes               int64  // of a list of ended jobs
	read                int64  // queues or jobs
	began               string // the counters at the beginning, which must not change meanwhile
	after               string // the last queue that was counted
	before              *sums  // the result of the count before this one
	tries               int
}

// restart restarts a count. It returns false after repairTries.
func (u *sums) restart() bool {
	*u = sums{tries: u.tries + 1}
	return u.tries < repairTries
}

// repairCounts counts the next queues of a topic. Up to queuesPerCount queues are counted in one script, exactly, even
// while jobs move. More are counted twice, and the result is written if both counts agree and no counter has changed since.
func (s *Repairer) repairCounts(ctx context.Context, p *pass) (bool, error) {
	name, err := s.nextTopic(ctx, p)
	if name == "" || err != nil {
		return err == nil, err
	}
	u := &p.sums
	lanes, err := s.Client.MembersAfter(ctx, s.Keys.TopicLanes(name), u.after, queuesPerCount)
	if err != nil {
		return false, err
	}
	last := len(lanes) < queuesPerCount
	set, counters, err := s.countLanes(ctx, name, lanes, u, last && u.after == "", "")
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
	case u.due != u.before.due || u.ready != u.before.ready || u.claimed != u.before.claimed:
		set = -1
	default:
		if set, _, err = s.countLanes(ctx, name, nil, u, true, u.began); err != nil {
			return false, err
		}
	}
	if set < 0 && u.restart() {
		return false, nil
	}
	p.note(store.RepairCounter, set)
	p.topics, p.sums = p.topics[1:], sums{}
	return false, nil
}

// countLanes adds queues to what was counted of a topic. With apply it sets the counters and answers how many changed, -1
// when they are not those expected or the topic has other queues by now.
func (s *Repairer) countLanes(
	ctx context.Context, name string, lanes []string, u *sums, apply bool, expected string,
) (set int64, counters string, err error) {
	t := s.Keys.TopicByName(name)
	keys := make([]string, 0, 5+3*len(lanes))
	keys = append(keys, t.Stats, t.Done, t.Dead, t.Cancelled, s.Keys.TopicLanes(name))
	for _, lane := range lanes {
		_, n, _ := strings.Cut(lane, "\x00")
		keys = append(keys, s.Keys.Due(n), s.Keys.Ready(n), s.Keys.Claimed(n))
	}
	read := u.read + int64(len(lanes))
	answer, err := s.EvalList(ctx, scriptCounts, 5, keys, []any{u.due, u.ready, u.claimed, apply, expected, read})
	if err != nil {
		return 0, "", err
	}
	u.due, u.ready, u.claimed, u.read = script.Num(answer[0]), script.Num(answer[1]), script.Num(answer[2]), read
	return script.Num(answer[4]), script.Str(answer[3]), nil
}

// repairBytes adds up the next jobs of a list of ended jobs. A list longer than jobsPerCount is added up in several steps,
// and written if nothing was added or removed meanwhile.
func (s *Repairer) repairBytes(ctx context.Context, p *pass) (bool, error) {
	name, err := s.nextTopic(ctx, p)
	if name == "" || err != nil {
		return err == nil, err
	}
	t, u, state := s.Keys.TopicByName(name), &p.sums, endings[p.state]
	answer, err := s.EvalList(ctx, scriptBytes, 4, []string{t.Stats, t.Ended(state), s.Keys.Runs},
		[]any{state + "b", u.read, jobsPerCount, u.bytes, u.began})
	if err != nil {
		return false, err
	}
	read, set := script.Num(answer[0]), script.Num(answer[3])
	u.read, u.bytes, u.began = u.read+read, script.Num(answer[1]), script.Str(answer[2])
	if set < 0 && u.restart() || set == 0 && read == int64(jobsPerCount) {
		return false, nil
	}
	p.note(store.RepairCounter, set)
	p.nextEnding()
	return false, nil
}
