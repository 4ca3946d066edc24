package redis

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// ClaimExpired reads which jobs wait beyond their time to live, and holds them in one script.
func (sh *shard) ClaimExpired(ctx context.Context, token store.Token, request store.ClaimExpiredRequest) ([]store.ClaimedJob, error) {
	s := sh.store
	checkBatchSize(request.Max)
	var held []store.ClaimedJob
	err := s.retryStale(sh, func() (err error) {
		held, err = s.claimExpired(ctx, sh, token, &request)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim expired jobs: %w", err)
	}
	return held, nil
}

func (s *Store) claimExpired(ctx context.Context, sh *shard, token store.Token, request *store.ClaimExpiredRequest) ([]store.ClaimedJob, error) {
	replyKey := sh.keys.Reply(string(token), "d")
	look := s.newCall(sh, scriptOverdue, replyKey, nil, nil, 2)
	look.add(string(token), max(0, request.Max))
	reply, err := s.do(ctx, look)
	if err != nil {
		return nil, err
	}
	answer := list(reply)
	if len(answer) != 3 {
		return nil, malformed(scriptOverdue)
	}
	if num(answer[1]) != 0 {
		return s.expiredAgain(ctx, sh, token, num(answer[0]), list(answer[2]))
	}
	found := strs(answer[2])
	if len(found) == 0 || len(found)%2 != 0 {
		return nil, nil
	}
	numbers := make([]string, 0, len(found)/2)
	for i := 1; i < len(found); i += 2 {
		if found[i] != "" {
			numbers = append(numbers, found[i])
		}
	}
	queues, err := sh.named(ctx, s.client, numbers)
	if err != nil {
		return nil, err
	}
	queues = distinct(queues)
	position := make(map[string]int, len(queues))
	for i, q := range queues {
		position[q.Number] = i + 1
	}
	c := s.newCall(sh, scriptExpire, replyKey, queues, nil, 3+len(found))
	c.add(string(token), max(0, request.MaxBytes), layout.Millis(request.Lease))
	for i := 0; i < len(found); i += 2 {
		c.add(position[found[i+1]], found[i])
	}
	if reply, err = s.do(ctx, c); err != nil {
		return nil, err
	}
	answer = list(reply)
	if len(answer) != 2 {
		return nil, malformed(scriptExpire)
	}
	now, jobs := num(answer[0]), list(answer[1])
	if len(jobs)%5 != 0 {
		return nil, malformed(scriptExpire)
	}
	held := make([]store.ClaimedJob, 0, len(jobs)/5)
	for i := 0; i < len(jobs); i += 5 {
		k := int(num(jobs[i]))
		if k < 1 || k > len(queues) {
			return nil, malformed(scriptExpire)
		}
		held = s.addHeld(ctx, held, token, now, jobs[i+1:i+5], queues[k-1].Queue)
	}
	return held, nil
}

// expiredAgain reads the answer to a repeated call.
func (s *Store) expiredAgain(ctx context.Context, sh *shard, token store.Token, now int64, jobs []any) (held []store.ClaimedJob, err error) {
	if len(jobs)%5 != 0 {
		return nil, malformed(scriptOverdue)
	}
	for i := 0; i < len(jobs); i += 5 {
		q, err := sh.queueOf(str(jobs[i+1]), str(jobs[i+4]))
		if err != nil {
			return nil, err
		}
		held = s.addHeld(ctx, held, token, now, jobs[i:i+4], q.Queue)
	}
	return held, nil
}

// addHeld reads a held job: member, record, run, ms left of its lease. One that cannot be read is left out, as in a claim.
func (s *Store) addHeld(ctx context.Context, held []store.ClaimedJob, token store.Token, now int64, parts []any, q job.Queue) []store.ClaimedJob {
	stored, err := layout.ParseJob(str(parts[0]), str(parts[1]), str(parts[2]), false, q)
	if err != nil {
		s.log.ErrorContext(ctx, "claimed job not readable, skipping it", "job", str(parts[0]), "err", err)
		return held
	}
	return append(held, claimedJob(&stored, token, now, num(parts[3])))
}
