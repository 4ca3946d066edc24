package keeper

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

// Default bounds of a round.
const (
	defaultQueues = 128
	defaultJobs   = 1024
	// maxMoves bounds Jobs and Ready of a round: one command's arguments must fit Lua's stack.
	maxMoves = 4096
	// recheckQueues is how many of a topic's queues are looked at again in one round after its policy changed.
	recheckQueues = 128
)

// Carry reads the agenda's head, and processes its queues in one script. Without queues it reads only.
func (s *Keeper) Carry(ctx context.Context, token store.Token, round store.CarryOptions) (store.CarryResult, error) {
	round.Queues = min(cmp.Or(max(round.Queues, 0), defaultQueues), 4*store.MaxBatch)
	round.Jobs = min(cmp.Or(max(round.Jobs, 0), defaultJobs), maxMoves)
	round.Ready = min(cmp.Or(max(round.Ready, 0), layout.MaxReady), maxMoves)
	round.SkipOutbox, round.OutboxBytes = max(round.SkipOutbox, 0), cmp.Or(max(round.OutboxBytes, 0), store.OutboxBytes)
	var carried store.CarryResult
	err := s.RetryStale(func() (err error) {
		carried, err = s.carry(ctx, token, round)
		return err
	})
	if err != nil {
		return store.CarryResult{}, fmt.Errorf("carry: %w", err)
	}
	carried.ClockStep = s.clock.report()
	return carried, nil
}

func (s *Keeper) carry(ctx context.Context, token store.Token, round store.CarryOptions) (store.CarryResult, error) {
	replyKey := s.Keys.Reply(string(token), "y")
	agenda, r, err := s.agenda(ctx, replyKey, &round)
	if err != nil {
		return store.CarryResult{}, err
	}
	now, first, outbox, recheck, numbers := layout.Num(agenda[0]), layout.Str(agenda[1]), layout.Num(agenda[2]),
		layout.Str(agenda[3]), layout.Strs(agenda[4])
	clock, err := s.followClock(ctx, r, clockState{
		noted: layout.Num(agenda[6]), by: layout.Str(agenda[7]), epoch: layout.Str(agenda[8]),
		stale: layout.Strs(agenda[9]),
	})
	if err != nil {
		return store.CarryResult{}, err
	}
	if clock == clockStepped {
		numbers, recheck = nil, "" // they come again when they are rescored
	}
	// Deadlines that are still to be moved end no lease.
	round.KeepLeases = round.KeepLeases || clock.pending()
	idle := len(numbers) == 0 && outbox <= int64(round.SkipOutbox) && recheck == "" && len(round.Relayed) == 0 &&
		layout.Num(agenda[5]) == 0
	if idle && clock == clockSteady {
		return store.CarryResult{Now: layout.Time(now), Next: untilHead(now, first)}, nil
	}
	done, rest, again, err := s.queuesToRecheck(ctx, recheck)
	if err != nil {
		return store.CarryResult{}, err
	}
	queues, unknown, err := s.FindByNumber(ctx, numbers)
	if err != nil {
		return store.CarryResult{}, err
	}
	queues = shard.Distinct(append(queues, again...))

	c := s.NewCall(scriptCarry, replyKey, queues, nil, 9+len(unknown)+len(round.Relayed))
	c.Add(round.Jobs, round.Ready, leaseBound(&round), store.MaxBatch, done, rest, round.SkipOutbox,
		round.OutboxBytes, len(unknown))
	for _, number := range unknown {
		c.Add(number)
	}
	for _, ref := range round.Relayed {
		c.Add(layout.JobKey(ref))
	}
	answer, err := s.RunList(ctx, c, 6)
	if err != nil {
		return store.CarryResult{}, err
	}
	carried := s.readCarried(&round, answer)
	if clock.pending() {
		carried.Next = 0
	}
	return carried, nil
}

// agenda reads what the round has to process, and Redis's clock.
func (s *Keeper) agenda(ctx context.Context, replyKey string, round *store.CarryOptions) ([]any, clockReading, error) {
	c := s.NewCall(scriptAgenda, replyKey, nil, nil, 3)
	c.Keys = append(c.Keys, s.Keys.Clock, s.Keys.StaleAgenda, s.Keys.StaleThrottles)
	expire, me := 1, ""
	if round.KeepLeases {
		expire = 0
	}
	began := s.process.elapsed()
	if s.clock.shouldStore(began) {
		me = s.process.id
	}
	c.Add(round.Queues, expire, me)
	reply, err := s.runExtending(ctx, round, c)
	agenda := layout.List(reply)
	switch {
	case err != nil:
		return nil, clockReading{}, err
	case len(agenda) != 10:
		return nil, clockReading{}, scriptAgenda.Malformed()
	}
	if me != "" {
		s.clock.stored(began)
	}
	return agenda, clockReading{now: layout.Num(agenda[0]), began: began, ended: s.process.elapsed()}, nil
}

// untilHead is the time until the agenda's head; negative when nothing has a moment.
func untilHead(now int64, first string) time.Duration {
	if first == "" || layout.Num(first) >= layout.Never {
		return -1
	}
	return time.Duration(max(0, layout.Num(first)-now)) * time.Millisecond
}

// leaseBound formats the latest deadline that may expire for carry.lua.
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
func (s *Keeper) readCarried(round *store.CarryOptions, answer []any) store.CarryResult {
	carried := store.CarryResult{
		Now: layout.Time(layout.Num(answer[0])), Moved: int(layout.Num(answer[1])),
		ExpiredLeases: int(layout.Num(answer[2])), Next: -1,
	}
	if next := layout.Num(answer[3]); next >= 0 {
		carried.Next = time.Duration(next) * time.Millisecond
	}
	entries := layout.Strs(answer[4])
	carried.OutboxRead = len(entries) / 2
	for i := 1; i < len(entries); i += 2 {
		e, err := store.DecodeNewJob([]byte(entries[i]))
		if err != nil {
			s.unreadable.Error("outbox entry unreadable, skipping it", "job", entries[i-1], "err", err)
			continue
		}
		carried.Outbox = append(carried.Outbox, e)
	}
	if layout.Num(answer[5]) > int64(round.SkipOutbox+carried.OutboxRead) {
		carried.Next = 0
	}
	return carried
}

// queuesToRecheck reads which queues of a topic are to be looked at again because its policy changed: a chunk a round.
// A member of recheck is the topic's name and, after a zero byte, the lane to go on after. done is the member, rest its
// successor.
func (s *Keeper) queuesToRecheck(
	ctx context.Context, head string,
) (done, rest string, queues []*layout.Queue, err error) {
	name, after, ok := strings.Cut(head, "\x00")
	if !ok {
		return head, "", nil, nil
	}
	lanes, err := s.Client.MembersAfter(ctx, s.Keys.TopicLanes(name), after, recheckQueues)
	if err != nil {
		return "", "", nil, err
	}
	numbers := make([]string, 0, len(lanes))
	for _, lane := range lanes {
		if _, n, ok := strings.Cut(lane, "\x00"); ok {
			numbers = append(numbers, n)
		}
	}
	if queues, _, err = s.FindByNumber(ctx, numbers); err != nil {
		return "", "", nil, err
	}
	if len(lanes) == recheckQueues {
		rest = name + "\x00" + lanes[len(lanes)-1]
	}
	return head, rest, queues, nil
}
