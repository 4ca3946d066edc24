package redis

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Claim holds jobs in one script.
func (s *Store) Claim(ctx context.Context, shard int, token store.Token, request store.ClaimRequest) (store.Claimed, error) {
	sh := s.shards[shard]
	var claimed store.Claimed
	err := s.fresh(sh, func() error {
		c, err := s.claim(ctx, sh, token, &request, "")
		if err != nil {
			return err
		}
		reply, err := s.do(ctx, c.call)
		if err != nil {
			return err
		}
		claimed, err = c.read(ctx, s.log, reply)
		return err
	})
	if err != nil {
		return store.Claimed{}, fmt.Errorf("claim: %w", err)
	}
	return claimed, nil
}

// A claim is a claim to be sent, and what its answer is read with.
type claim struct {
	*call
	token  store.Token
	wants  []store.Want
	queues []*queue // known to the script, in its order
	at     []int    // each Want's position among queues, from 1; 0: the shard has never seen it
}

// claim prepares the script. Two Wants of one queue are one, with the larger bounds. After is the memory of the
// settlement that the claim follows in the same trip, empty when there is none.
func (s *Store) claim(ctx context.Context, sh *part, token store.Token, request *store.ClaimRequest, after string) (*claim, error) {
	bound(len(request.Wants))
	bound(request.Max)
	names, position := queuesOf(request.Wants, func(w *store.Want) job.Queue { return w.Queue })
	found, err := sh.find(ctx, s.runner, names)
	if err != nil {
		return nil, err
	}
	c := &claim{token: token, wants: request.Wants, at: make([]int, len(request.Wants))}
	known := make([]int, len(found))
	for i, q := range found {
		if q != nil {
			c.queues = append(c.queues, q)
			known[i] = len(c.queues)
		}
	}
	most, timeout := make([]int, len(c.queues)), make([]int64, len(c.queues))
	for i, w := range request.Wants {
		c.at[i] = known[position[i]-1]
		if k := c.at[i] - 1; k >= 0 {
			most[k] = min(max(most[k], w.Max), store.MaxBatch)
			timeout[k] = max(timeout[k], millisUp(w.Timeout))
		}
	}
	c.call = s.newCall(sh, scriptClaim, sh.token(string(token), "c"), c.queues, nil, 5+2*len(c.queues))
	follows := 0
	if after != "" {
		c.keys, follows = append(c.keys, after), 1
	}
	c.add(string(token), max(0, request.Max), max(0, request.MaxBytes), millisUp(request.Margin), follows)
	for i := range c.queues {
		c.add(most[i], timeout[i])
	}
	return c, nil
}

// read turns the script's answer into the contract's. A job that cannot be read is left out, so that it stops no other:
// it is held until its lease lapses.
func (c *claim) read(ctx context.Context, log *slog.Logger, reply any) (store.Claimed, error) {
	answer := list(reply)
	if len(answer) != 4 {
		return store.Claimed{}, malformed(scriptClaim)
	}
	now, lines, jobs := num(answer[0]), list(answer[2]), list(answer[3])
	if len(lines) != 2*len(c.queues) || len(jobs)%5 != 0 {
		return store.Claimed{}, malformed(scriptClaim)
	}
	claimed := store.Claimed{Revision: num(answer[1]), Queues: make([]store.QueueLeft, len(c.wants))}
	for i, w := range c.wants {
		left := store.QueueLeft{Queue: w.Queue}
		if k := c.at[i] - 1; k >= 0 {
			left.More, left.Blocked = str(lines[2*k]) == "1", str(lines[2*k+1]) == "1"
		}
		claimed.Queues[i] = left
	}
	if len(jobs) > 0 {
		claimed.Jobs = make([]store.Held, 0, len(jobs)/5)
	}
	for i := 0; i < len(jobs); i += 5 {
		k := int(num(jobs[i]))
		if k < 1 || k > len(c.queues) {
			return store.Claimed{}, malformed(scriptClaim)
		}
		j, err := assemble(str(jobs[i+1]), str(jobs[i+2]), str(jobs[i+3]), false, c.queues[k-1].Queue, now)
		if err != nil {
			log.ErrorContext(ctx, "a claimed job cannot be read", "job", str(jobs[i+1]), "err", err)
			continue
		}
		claimed.Jobs = append(claimed.Jobs, store.Held{
			Job: j, Lease: c.token, LeaseFor: time.Duration(num(jobs[i+4])) * time.Millisecond,
			Expired: !j.ExpiresAt.IsZero() && now > j.ExpiresAt.UnixMilli(),
			Age:     time.Duration(now-j.Since.UnixMilli()) * time.Millisecond,
		})
	}
	return claimed, nil
}
