package queue

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

// settleTimeout bounds a settlement. An ended context does not stop it.
const settleTimeout = 10 * time.Second

// Settle ends attempts, and claims in the same round trip.
func (s *Queue) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	shard.CheckBatchSize(len(items))
	if err := ctx.Err(); err != nil {
		return nil, store.ClaimResult{}, fmt.Errorf("settle: %w", err)
	}
	ctx, cancel := connect.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if len(items) == 0 {
		if next == nil {
			return nil, store.ClaimResult{}, nil
		}
		claimed, err := s.Claim(ctx, token, *next)
		return nil, claimed, err
	}
	var errs []error
	var claimed store.ClaimResult
	err := s.RetryStale(func() (err error) {
		errs, claimed, err = s.settle(ctx, token, items, next)
		return err
	})
	if err != nil {
		return nil, store.ClaimResult{}, fmt.Errorf("settle: %w", err)
	}
	return errs, claimed, nil
}

func (s *Queue) settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	names, position := shard.QueuesOf(items, func(i *store.Settlement) job.Queue { return i.Queue })
	queues, known, err := s.Find(ctx, names)
	if err != nil {
		return nil, store.ClaimResult{}, err
	}
	replyKey := s.Keys.Reply(string(token), "s")
	var after *claim
	if next != nil {
		if after, err = s.claim(ctx, cmp.Or(next.Token, token), next, replyKey); err != nil {
			return nil, store.ClaimResult{}, err
		}
	}
	c := s.NewCall(scriptSettle, replyKey, queues, nil, 1+3*len(items))
	c.Add(claimedNext(queues, after))
	// An item of an unknown queue has no lease. It is sent all the same: the call's reply then has an answer for it,
	// whatever a repeat of the call knows of the queue.
	addSettlements(c, items, func(i int) int { return known[position[i]-1] })
	var reply, second any
	if after == nil {
		reply, err = s.Run(ctx, c)
	} else {
		reply, second, err = s.RunBoth(ctx, c, after.Call)
	}
	if err != nil {
		return nil, store.ClaimResult{}, err
	}
	answer, lines, _ := strings.Cut(layout.Str(reply), "\n")
	if len(answer) != len(items) {
		return nil, store.ClaimResult{}, scriptSettle.Malformed()
	}
	health := readHealth(items, lines)
	errs := make([]error, len(items))
	for i := range errs {
		switch answer[i] {
		case '1':
		case '2':
			errs[i] = store.ErrCancelRequested
		default:
			errs[i] = store.ErrLeaseLost
		}
	}
	if after == nil {
		return errs, store.ClaimResult{Health: health}, nil
	}
	claimed, err := s.readClaim(after, second)
	claimed.Health = health
	return errs, claimed, err
}

// readHealth reads the changes of lanes' health, as settle.lua answers them.
func readHealth(items []store.Settlement, lines string) (changes []store.HealthChange) {
	for line := range strings.Lines(lines) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if first := int(layout.Int(f[0])); len(f) == 3 && first > 0 && first <= len(items) {
			changes = append(changes, store.HealthChange{
				Queue: items[first-1].Queue, Before: store.ParseHealth(f[1]), After: store.ParseHealth(f[2]),
			})
		}
	}
	return changes
}

// claimedNext returns the positions of the queues that the caller claims from in the same round trip. They need no
// wake-up, and that claim updates their agenda.
func claimedNext(queues []*layout.Queue, next *claim) string {
	if next == nil {
		return ","
	}
	wanted := make(map[*layout.Queue]bool, len(next.queues))
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

// addSettlements adds the arguments of items. queue returns the position of each one's queue, from 1; 0 if the shard
// does not know it.
func addSettlements(c *layout.Call, items []store.Settlement, queue func(i int) int) {
	var text []byte
	var last string
	var head any // of one item after another, mostly the same
	for i := range items {
		item := &items[i]
		if text = appendHead(text[:0], item, queue(i)); head == nil || string(text) != last {
			last = string(text)
			head = last
		}
		var line []byte
		if item.Attempt.Kind != "" {
			line = append(item.Attempt.JSON(), '\n')
		}
		c.Add(head, layout.JobKey(item.Ref), line)
		if item.Body != nil {
			c.Add(item.Body)
		}
		for k := range item.Outbox {
			c.Add(layout.JobKey(item.Outbox[k].Ref()), store.AppendNewJob(nil, &item.Outbox[k]))
		}
	}
}

// appendHead writes what items have in common, see settle.lua.
func appendHead(b []byte, item *store.Settlement, queue int) []byte {
	b = strconv.AppendInt(b, int64(queue), 10)
	if item.Extend > 0 {
		b = append(append(b, " e "...), layout.FormatWait(item.Extend)...)
		return append(append(b, " - 0 -\n"...), item.Lease...)
	}
	switch item.Verdict.Kind {
	case policy.Delivered:
		b = append(b, " d "...)
	case policy.Again:
		b = append(b, " a "...)
	case policy.Dead:
		b = append(b, " x "...)
	case policy.Released:
		b = append(b, " r "...)
	default:
		panic(fmt.Sprintf("redis: a settlement with verdict %v", item.Verdict.Kind))
	}
	b = append(b, layout.FormatWait(item.Verdict.Wait)...)
	b = append(append(b, ' '), layout.FormatReason(item.Verdict.Reason)...)
	b = strconv.AppendInt(append(b, ' '), int64(len(item.Outbox)), 10)
	if item.Body != nil {
		b = append(b, '+')
	}
	b = appendEffect(append(b, ' '), item)
	return append(append(b, '\n'), item.Lease...)
}

// appendEffect appends the effect of an attempt on its job and its lane, mostly only that it counts, and its answer.
func appendEffect(b []byte, item *store.Settlement) []byte {
	if item.Attempt.Kind == job.KindAttempt {
		b = append(append(b, 'a', '0'+byte(store.LateBucket(item.Late))), cmp.Or(item.Attempt.Answer(), "0")...)
	} else {
		b = append(b, '-')
	}
	if item.LaneChange == (store.LaneChange{}) {
		return b
	}
	b = append(append(b, ' '), layout.FormatWait(item.LaneChange.Cooldown)...)
	switch item.LaneChange.Breaker {
	case store.OpenBreaker:
		b = append(b, 'o')
	case store.CloseBreaker:
		b = append(b, 'c')
	case store.KeepBreaker:
	}
	return append(b, layout.FormatCause(item.LaneChange.Cause)...)
}
