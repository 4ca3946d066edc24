package repair

import (
	"context"
	"slices"
	"strings"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// endings are the states of jobs that have ended, as scripts write them.
var endings = []string{"d", "x", "c"}

// nextEnding goes on to a topic's next list of ended jobs, or to the next topic.
func (p *pass) nextEnding() {
	p.sums = sums{}
	if p.state++; p.state == len(endings) {
		p.state, p.topics = 0, p.topics[1:]
	}
}

// repairEnded walks through the topics' lists of ended jobs.
func (s *Repairer) repairEnded(ctx context.Context, p *pass) (bool, error) {
	some, err := s.nextTopics(ctx, p)
	if len(some) == 0 || err != nil {
		return err == nil, err
	}
	if p.set == "" {
		p.set, p.at = endings[0], "0"
	}
	topics := make([]*layout.Topic, len(some))
	for i, name := range some {
		topics[i] = s.Keys.TopicByName(name)
	}
	c := s.NewCall(scriptEnded.of(p), s.Keys.Reply("repair", "e"), nil, topics, 3)
	c.Keys = append(c.Keys, s.Keys.Clock, s.Keys.StaleAgenda)
	c.Add(p.set, p.at, 4*stepSize)
	answer, err := s.RunList(ctx, c, 4)
	if err != nil {
		return false, err
	}
	p.topics, p.set, p.at = p.topics[min(layout.Num(answer[0]), int64(len(some))):], layout.Str(answer[1]),
		layout.Str(answer[2])
	p.noteAll(layout.Strs(answer[3]))
	return false, nil
}

// leftovers returns a step that removes the entries of a hash, or of the index of times to live, that belong to no job.
func leftovers(key string) func(*Repairer, context.Context, *pass) (bool, error) {
	return func(s *Repairer, ctx context.Context, p *pass) (bool, error) {
		keys := []string{s.Keys.Jobs, s.Keys.Tag + key, s.Keys.Forget}
		answer, err := s.EvalList(ctx, scriptLeftovers.of(p), 2, keys, []any{p.cursor, key})
		if err != nil {
			return false, err
		}
		p.cursor = layout.Str(answer[0])
		p.noteEach(store.RepairLeftover, layout.Strs(answer[1]), key, "in "+key+", but there is no such job")
		return p.cursor == "0", nil
	}
}

// repairOutbox checks the outbox: its entries, then their order.
func (s *Repairer) repairOutbox(ctx context.Context, p *pass) (bool, error) {
	answer, err := s.EvalList(ctx, scriptOutbox.of(p), 6, []string{s.Keys.Outbox, s.Keys.OutboxQueue},
		[]any{p.cursor, p.place})
	if err != nil {
		return false, err
	}
	p.cursor, p.place = layout.Str(answer[0]), layout.Num(answer[1])
	p.noteEach(store.RepairOutbox, layout.Strs(answer[2]), "outbox",
		"missing in the order of the outbox, so that it is never relayed")
	p.noteEach(store.RepairNoJob, layout.Strs(answer[3]), "outbox",
		"in the order of the outbox, but there is no such entry")
	p.noteEach(store.FaultRelay, layout.Strs(answer[5]), "outbox", "in the outbox for more than ten minutes")
	p.ledger.Outbox += layout.Num(answer[4])
	return p.place < 0, nil
}

// repairAgenda deletes queues without a name from the agenda.
func (s *Repairer) repairAgenda(ctx context.Context, p *pass) (bool, error) {
	answer, err := s.EvalList(ctx, scriptAgenda.of(p), 2,
		[]string{s.Keys.Agenda, s.Keys.Names, s.Keys.LastWakeups}, []any{p.cursor})
	if err != nil {
		return false, err
	}
	p.cursor = layout.Str(answer[0])
	for _, number := range layout.Strs(answer[1]) {
		p.note(store.RepairQueue, "", "agenda", "queue number "+number+" is scheduled and has no name")
	}
	return p.cursor == "0", nil
}

// repairTries bounds how often a count in several steps is restarted because the topic changed meanwhile. After that
// its counters stay as they are until the next check.
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

// A topicCount is a part of a topic's queues to be counted.
type topicCount struct {
	topic string
	lanes []string // as topic_lanes:<topic> has them
	sums  *sums    // of the queues before these
	// apply sets the counters, if they are still those expected: "" any.
	apply    bool
	expected string
}

// countResult is the result of a topicCount.
type countResult struct {
	counters string
	set      int64  // how many counters were set; -1: the topic changed
	wrong    string // which
	kept     []any  // numbers of delivered, dead and cancelled jobs that are kept
}

// repairCounts counts the queues of topics. Those of topics with few are counted in one script, exactly, even while
// jobs move, as are up to queuesPerCount queues of another topic. More are counted in parts and twice, and the result
// is written if both counts agree and no counter has changed since.
func (s *Repairer) repairCounts(ctx context.Context, p *pass) (bool, error) {
	some, err := s.nextTopics(ctx, p)
	if len(some) == 0 || err != nil {
		return err == nil, err
	}
	if p.sums == (sums{}) {
		if counted, err := s.countSmall(ctx, p, some); counted || err != nil {
			return false, err
		}
	}
	name, u := some[0], &p.sums
	lanes, err := s.Client.MembersAfter(ctx, s.Keys.TopicLanes(name), u.after, queuesPerCount)
	if err != nil {
		return false, err
	}
	last := len(lanes) < queuesPerCount
	counted, err := s.countLanes(ctx, p,
		[]topicCount{{topic: name, lanes: lanes, sums: u, apply: last && u.after == ""}})
	if err != nil {
		return false, err
	}
	result := counted[0]
	counters, set := result.counters, result.set
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
		if counted, err = s.countLanes(ctx, p,
			[]topicCount{{topic: name, sums: u, apply: true, expected: u.began}}); err != nil {
			return false, err
		}
		result = counted[0]
		set = result.set
	}
	if set < 0 && u.restart() {
		return false, nil
	}
	p.noteCount(name, *u, result)
	p.topics, p.sums = p.topics[1:], sums{}
	return false, nil
}

// countSmall counts the first of some topics, as far as they have fewer than lanesPerTopic queues. It returns whether
// there were any.
func (s *Repairer) countSmall(ctx context.Context, p *pass, some []string) (counted bool, err error) {
	keys := make([]string, len(some))
	for i, name := range some {
		keys[i] = s.Keys.TopicLanes(name)
	}
	lanes, err := s.Client.FirstMembers(ctx, keys, lanesPerTopic)
	if err != nil {
		return false, err
	}
	var counts []topicCount
	for i, name := range some {
		if len(lanes[i]) == lanesPerTopic {
			break
		}
		counts = append(counts, topicCount{topic: name, lanes: lanes[i], sums: new(sums), apply: true})
	}
	if len(counts) == 0 {
		return false, nil
	}
	results, err := s.countLanes(ctx, p, counts)
	if err != nil {
		return false, err
	}
	for i, r := range results {
		if r.set < 0 { // it got a lane meanwhile, and is counted alone
			p.sums.restart()
			break
		}
		p.noteCount(counts[i].topic, *counts[i].sums, r)
		p.topics = p.topics[1:]
	}
	return true, nil
}

// noteCount adds a topic to the ledger, and a fault for each of its counters that is wrong.
func (p *pass) noteCount(topic string, u sums, r countResult) {
	if r.wrong != "" && r.set > 0 {
		for wrong := range strings.SplitSeq(r.wrong, "; ") {
			p.note(store.RepairCounter, "", topic, wrong)
		}
	}
	stored := strings.Fields(r.counters) // reg ready claimed d x c
	if len(stored) != 6 || len(r.kept) != 3 {
		return
	}
	ended := store.States{
		Delivered: layout.Int(stored[3]), Dead: layout.Int(stored[4]),
		Cancelled: layout.Int(stored[5]),
	}
	registered, claimed := layout.Int(stored[0]), layout.Int(stored[2])
	p.ledger = p.ledger.Plus(store.Ledger{
		Places: store.States{
			Waiting: u.due + u.ready, Running: u.claimed,
			Delivered: layout.Num(r.kept[0]), Dead: layout.Num(r.kept[1]), Cancelled: layout.Num(r.kept[2]),
		},
		Counters:   ended.Plus(store.States{Waiting: registered - claimed - ended.Sum(), Running: claimed}),
		Registered: registered,
	})
}

// countLanes adds queues to the sums of topics, and returns a result for each: of the first at least, and as far as the
// bytes of their jobs could be added up in one step.
func (s *Repairer) countLanes(ctx context.Context, p *pass, counts []topicCount) ([]countResult, error) {
	keys, args := []string{s.Keys.Jobs}, []any{jobsPerCount}
	for _, c := range counts {
		t, u := s.Keys.TopicByName(c.topic), c.sums
		keys = append(keys, t.Stats, t.Done, t.Dead, t.Cancelled, s.Keys.TopicLanes(c.topic))
		for _, lane := range c.lanes {
			_, n, _ := strings.Cut(lane, "\x00")
			keys = append(keys, s.Keys.Due(n), s.Keys.Ready(n), s.Keys.Claimed(n))
		}
		args = append(args, len(c.lanes), u.due, u.ready, u.claimed, c.apply, c.expected, u.read+int64(len(c.lanes)))
	}
	answer, err := s.EvalList(ctx, scriptCounts.of(p), 7*len(counts), keys, args)
	if err != nil {
		return nil, err
	}
	results := make([]countResult, 0, len(counts))
	for i, c := range counts {
		of, u := answer[7*i:7*i+7], c.sums
		if layout.Str(of[3]) == "" {
			break
		}
		u.due, u.ready, u.claimed, u.read = layout.Num(of[0]), layout.Num(of[1]), layout.Num(of[2]), u.read+
			int64(len(c.lanes))
		results = append(results, countResult{
			counters: layout.Str(of[3]), set: layout.Num(of[4]),
			wrong: layout.Str(of[5]), kept: layout.List(of[6]),
		})
	}
	return results, nil
}

// repairBytes adds up the next jobs of lists of ended jobs. A list longer than jobsPerCount is added up in several
// steps, and written if nothing was added or removed meanwhile.
func (s *Repairer) repairBytes(ctx context.Context, p *pass) (bool, error) {
	some, err := s.nextTopics(ctx, p)
	if len(some) == 0 || err != nil {
		return err == nil, err
	}
	u := &p.sums
	keys, args := []string{s.Keys.Runs}, []any{jobsPerCount, u.read, u.bytes, u.began}
	for i, name := range some {
		t := s.Keys.TopicByName(name)
		for k, state := range endings {
			if i > 0 || k >= p.state {
				keys, args = append(keys, t.Stats, t.Ended(state)), append(args, state+"b")
			}
		}
	}
	answer, err := s.EvalList(ctx, scriptBytes.of(p), 6, keys, args)
	if err != nil {
		return false, err
	}
	done, set := layout.Num(answer[0]), layout.Num(answer[4])
	switch {
	case set < 0 && u.restart():
		return false, nil
	case set < 0:
		done = 1 // its counter stays as it is
	}
	for wrong := range slices.Chunk(layout.Strs(answer[5]), 2) {
		p.note(store.RepairCounter, "", strings.TrimPrefix(wrong[0], s.Keys.Tag+"stats:"), wrong[1])
	}
	for range min(done, int64(len(args)-4)) {
		p.nextEnding()
	}
	u.read, u.bytes, u.began = u.read+layout.Num(answer[1]), layout.Num(answer[2]), layout.Str(answer[3])
	return false, nil
}
