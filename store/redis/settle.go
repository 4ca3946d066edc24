package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// settleTimeout bounds a settlement that was sent: an ended context does not stop it.
const settleTimeout = 10 * time.Second

// Settle ends attempts, and claims in the same trip.
func (s *Store) Settle(ctx context.Context, shard int, token store.Token, items []store.Settlement, next *store.ClaimRequest) ([]error, store.Claimed, error) {
	bound(len(items))
	if err := ctx.Err(); err != nil {
		return nil, store.Claimed{}, fmt.Errorf("settle: %w", err)
	}
	ctx, cancel := within(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	sh := s.shards[shard]
	if len(items) == 0 {
		if next == nil {
			return nil, store.Claimed{}, nil
		}
		claimed, err := s.Claim(ctx, shard, token, *next)
		return nil, claimed, err
	}
	var errs []error
	var claimed store.Claimed
	err := s.fresh(sh, func() (err error) {
		errs, claimed, err = s.settle(ctx, sh, token, items, next)
		return err
	})
	if err != nil {
		return nil, store.Claimed{}, fmt.Errorf("settle: %w", err)
	}
	return errs, claimed, nil
}

func (s *Store) settle(ctx context.Context, sh *part, token store.Token, items []store.Settlement, next *store.ClaimRequest) ([]error, store.Claimed, error) {
	names, position := queuesOf(items, func(i *store.Settlement) job.Queue { return i.Queue })
	found, err := sh.find(ctx, s.runner, names)
	if err != nil {
		return nil, store.Claimed{}, err
	}
	queues, known := make([]*queue, 0, len(found)), make([]int, len(found))
	for i, q := range found {
		if q != nil {
			queues = append(queues, q)
			known[i] = len(queues)
		}
	}
	memory := sh.token(string(token), "s")
	var after *claim
	if next != nil {
		if after, err = s.claim(ctx, sh, token, next, memory); err != nil {
			return nil, store.Claimed{}, err
		}
	}
	c := s.newCall(sh, scriptSettle, memory, queues, nil, 1+3*len(items))
	c.add(claimedNext(queues, after))
	for i := range items {
		// An item of an unknown queue has no lease. It is sent all the same: the call's memory then has an answer for it,
		// whatever a repeat of the call knows of the queue.
		if err := c.settlement(&items[i], known[position[i]-1]); err != nil {
			return nil, store.Claimed{}, err
		}
	}
	var reply, second any
	if after == nil {
		reply, err = s.do(ctx, c)
	} else {
		reply, second, err = s.both(ctx, c, after.call)
	}
	if err != nil {
		return nil, store.Claimed{}, err
	}
	answer := str(reply)
	if len(answer) != len(items) {
		return nil, store.Claimed{}, malformed(scriptSettle)
	}
	errs := make([]error, len(items))
	for i := range errs {
		if answer[i] != '1' {
			errs[i] = store.ErrLeaseLost
		}
	}
	if after == nil {
		return errs, store.Claimed{}, nil
	}
	claimed, err := after.read(ctx, s.log, second)
	return errs, claimed, err
}

// claimedNext names, by their positions, the queues that the caller claims from in the same trip: they need no bell.
func claimedNext(queues []*queue, next *claim) string {
	if next == nil {
		return ","
	}
	wanted := make(map[*queue]bool, len(next.queues))
	for _, q := range next.queues {
		wanted[q] = true
	}
	var b strings.Builder
	b.WriteByte(',')
	for i, q := range queues {
		if wanted[q] {
			b.WriteString(strconv.Itoa(i + 1))
			b.WriteByte(',')
		}
	}
	return b.String()
}

// settlement adds one item's arguments. queue is the position of its queue from 1, 0 when the shard does not know it.
func (c *call) settlement(item *store.Settlement, queue int) error {
	var verdict string
	switch item.Verdict.Kind {
	case policy.Delivered:
		verdict = "d"
	case policy.Again:
		verdict = "a"
	case policy.Dead:
		verdict = "x"
	case policy.Released:
		verdict = "r"
	default:
		panic(fmt.Sprintf("redis: a settlement with verdict %v", item.Verdict.Kind))
	}
	var line []byte
	if item.Attempt.Kind != "" {
		line = append(item.Attempt.JSON(), '\n')
	}
	head := strconv.Itoa(queue) + " " + verdict + " " + wait(item.Verdict.Wait) + " " + reasonText(item.Verdict.Reason) + " " +
		strconv.Itoa(len(item.Births)) + " " + shows(item) + "\n" + string(item.Lease)
	c.add(head, member(item.Ref), line)
	for i := range item.Births {
		entry, err := packEntry(&item.Births[i])
		if err != nil {
			return err
		}
		c.add(member(item.Births[i].Ref()), entry)
	}
	return nil
}

// shows writes what an attempt shows, see settle.lua: mostly no more than that it counts, and its status.
func shows(item *store.Settlement) string {
	text := "-"
	if item.Attempt.Kind == job.KindAttempt {
		text = "a" + strconv.Itoa(max(0, item.Attempt.Status))
	}
	if item.Lane == (store.LaneChange{}) {
		return text
	}
	text += " " + wait(item.Lane.Hold)
	switch item.Lane.Breaker {
	case store.OpenBreaker:
		text += "o"
	case store.CloseBreaker:
		text += "c"
	case store.KeepBreaker:
	}
	if item.Lane.Unstarted {
		text += " " + wait(item.Lane.Slack)
	}
	return text
}
