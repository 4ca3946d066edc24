package redis

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// A round's bounds where it names none.
const (
	carryQueues = 128
	carryJobs   = 1024
	carryReady  = 1024
	// carryMost bounds jobs and ready whatever a round names: one command's arguments must fit Lua's stack.
	carryMost = 4096
	// redoQueues is how many of a topic's queues are looked at again in one round after its policy changed.
	redoQueues = 128
)

// Carry reads the agenda's head, and moves what its queues have in one script. When there is nothing to do the first
// is all.
func (sh *shard) Carry(ctx context.Context, token store.Token, round store.CarryOptions) (store.CarryResult, error) {
	s := sh.store
	round.Queues = min(cmp.Or(max(round.Queues, 0), carryQueues), 4*store.MaxBatch)
	round.Jobs = min(cmp.Or(max(round.Jobs, 0), carryJobs), carryMost)
	round.Ready = min(cmp.Or(max(round.Ready, 0), carryReady), carryMost)
	round.SkipOutbox, round.OutboxBytes = max(round.SkipOutbox, 0), cmp.Or(max(round.OutboxBytes, 0), store.OutboxBytes)
	var carried store.CarryResult
	err := s.retryStale(sh, func() (err error) {
		carried, err = s.carry(ctx, sh, token, round)
		return err
	})
	if err != nil {
		return store.CarryResult{}, fmt.Errorf("carry: %w", err)
	}
	carried.ClockStep = sh.watch.report()
	return carried, nil
}

func (s *Store) carry(ctx context.Context, sh *shard, token store.Token, round store.CarryOptions) (store.CarryResult, error) {
	replyKey := sh.keys.Reply(string(token), "y")
	agenda, r, err := s.agenda(ctx, sh, replyKey, &round)
	if err != nil {
		return store.CarryResult{}, err
	}
	now, first, outbox, redo, numbers := num(agenda[0]), str(agenda[1]), num(agenda[2]), str(agenda[3]), strs(agenda[4])
	clock, err := s.followClock(ctx, sh, r, clockAnswer{
		noted: num(agenda[6]), by: str(agenda[7]), epoch: str(agenda[8]), stale: strs(agenda[9]),
	})
	if err != nil {
		return store.CarryResult{}, err
	}
	if clock == clockStepped {
		numbers, redo = nil, "" // they come again when they are rescored
	}
	// Deadlines that are still to be moved end no lease.
	round.KeepLeases = round.KeepLeases || clock.pending()
	idle := len(numbers) == 0 && outbox <= int64(round.SkipOutbox) && redo == "" && len(round.Relayed) == 0 && num(agenda[5]) == 0
	if idle && clock == clockSteady {
		return store.CarryResult{Now: layout.Time(now), Next: untilHead(now, first)}, nil
	}
	done, rest, again, err := s.queuesToRecheck(ctx, sh, redo)
	if err != nil {
		return store.CarryResult{}, err
	}
	queues, err := sh.named(ctx, s.client, numbers)
	if err != nil {
		return store.CarryResult{}, err
	}
	none := unnamed(numbers, queues)
	queues = distinct(append(queues, again...))

	c := s.newCall(sh, scriptCarry, replyKey, queues, nil, 9+len(none)+len(round.Relayed))
	c.add(round.Jobs, round.Ready, leaseBound(&round), store.MaxBatch, done, rest, round.SkipOutbox, round.OutboxBytes, len(none))
	for _, number := range none {
		c.add(number)
	}
	for _, ref := range round.Relayed {
		c.add(layout.JobKey(ref))
	}
	reply, err := s.do(ctx, c)
	if err != nil {
		return store.CarryResult{}, err
	}
	carried, err := s.readCarried(ctx, sh, &round, reply)
	if clock.pending() {
		carried.Next = 0
	}
	return carried, err
}

// agenda reads what there is to look at, and Redis's clock.
func (s *Store) agenda(ctx context.Context, sh *shard, replyKey string, round *store.CarryOptions) ([]any, reading, error) {
	look := s.newCall(sh, scriptAgenda, replyKey, nil, nil, 3)
	look.keys = append(look.keys, sh.keys.Clock, sh.keys.StaleAgenda, sh.keys.StaleThrottles)
	lapses, me := 1, ""
	if round.KeepLeases {
		lapses = 0
	}
	began := s.elapsed()
	if sh.watch.notes(began) {
		me = s.me
	}
	look.add(round.Queues, lapses, me)
	reply, err := s.do(ctx, look)
	if err != nil {
		return nil, reading{}, err
	}
	agenda := list(reply)
	if len(agenda) != 10 {
		return nil, reading{}, malformed(scriptAgenda)
	}
	if me != "" {
		sh.watch.wrote(began)
	}
	return agenda, reading{now: num(agenda[0]), began: began, ended: s.elapsed()}, nil
}

// untilHead is the time until the agenda's head; negative when nothing has a moment.
func untilHead(now int64, first string) time.Duration {
	if first == "" || num(first) >= layout.Never {
		return -1
	}
	return time.Duration(max(0, num(first)-now)) * time.Millisecond
}

// leaseBound is the latest deadline that may lapse, as carry.lua reads it.
func leaseBound(round *store.CarryOptions) string {
	switch {
	case round.KeepLeases:
		return "-1"
	case !round.ExpireLeasesBefore.IsZero():
		return strconv.FormatInt(max(0, round.ExpireLeasesBefore.UnixMilli()), 10)
	default:
		return ""
	}
}

// readCarried reads the script's answer. An outbox entry that cannot be read stays where it is, so that it stops no
// other, and is not counted in what is left to do.
func (s *Store) readCarried(ctx context.Context, sh *shard, round *store.CarryOptions, reply any) (store.CarryResult, error) {
	answer := list(reply)
	if len(answer) != 6 {
		return store.CarryResult{}, malformed(scriptCarry)
	}
	carried := store.CarryResult{
		Now: layout.Time(num(answer[0])), Moved: int(num(answer[1])), ExpiredLeases: int(num(answer[2])), Next: -1,
	}
	if next := num(answer[3]); next >= 0 {
		carried.Next = time.Duration(next) * time.Millisecond
	}
	parcels := strs(answer[4])
	carried.OutboxRead = len(parcels) / 2
	for i := 1; i < len(parcels); i += 2 {
		e, err := store.DecodeNewJob([]byte(parcels[i]))
		if err != nil {
			if sh.isFirstComplaint(parcels[i-1]) {
				s.log.ErrorContext(ctx, "outbox entry not readable, skipping it", "job", parcels[i-1], "err", err)
			}
			continue
		}
		carried.Outbox = append(carried.Outbox, e)
	}
	if num(answer[5]) > int64(round.SkipOutbox+carried.OutboxRead) {
		carried.Next = 0
	}
	return carried, nil
}

// queuesToRecheck reads which queues of a topic are to be looked at again because its policy changed: a chunk a round. A member of
// redo is the topic's name and, after a zero byte, the lane to go on after. done is the member, rest its successor.
func (s *Store) queuesToRecheck(ctx context.Context, sh *shard, head string) (done, rest string, queues []*layout.Queue, err error) {
	name, after, ok := strings.Cut(head, "\x00")
	if !ok {
		return head, "", nil, nil
	}
	from := "-"
	if after != "" {
		from = "(" + after
	}
	lanes, err := s.client.ZRangeByLex(ctx, sh.keys.Lanes(name), &redis.ZRangeBy{Min: from, Max: "+", Count: redoQueues}).Result()
	if err != nil {
		return "", "", nil, connect.MapError(ctx, err)
	}
	numbers := make([]string, 0, len(lanes))
	for _, lane := range lanes {
		if _, n, ok := strings.Cut(lane, "\x00"); ok {
			numbers = append(numbers, n)
		}
	}
	if queues, err = sh.named(ctx, s.client, numbers); err != nil {
		return "", "", nil, err
	}
	if len(lanes) == redoQueues {
		rest = name + "\x00" + lanes[len(lanes)-1]
	}
	return head, rest, queues, nil
}

// unnamed are the numbers that none of the queues has.
func unnamed(numbers []string, queues []*layout.Queue) (none []string) {
	if len(numbers) == len(queues) {
		return nil
	}
	known := make(map[string]bool, len(queues))
	for _, q := range queues {
		known[q.Number] = true
	}
	for _, n := range numbers {
		if !known[n] {
			none = append(none, n)
		}
	}
	return none
}

// distinct leaves out what is there already.
func distinct(all []*layout.Queue) (queues []*layout.Queue) {
	has := make(map[*layout.Queue]bool, len(all))
	for _, q := range all {
		if !has[q] {
			has[q] = true
			queues = append(queues, q)
		}
	}
	return queues
}
