package queue

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

// ClaimExpired reads which jobs wait beyond their time to live, and claims them in one script.
func (s *Queue) ClaimExpired(
	ctx context.Context, token store.Token, request store.ClaimExpiredRequest,
) ([]store.ClaimedJob, error) {
	shard.CheckBatchSize(request.Max)
	var claimed []store.ClaimedJob
	err := s.RetryStale(func() (err error) {
		claimed, err = s.claimExpired(ctx, token, &request)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim expired jobs: %w", err)
	}
	return claimed, nil
}

func (s *Queue) claimExpired(
	ctx context.Context, token store.Token, request *store.ClaimExpiredRequest,
) ([]store.ClaimedJob, error) {
	replyKey := s.Keys.Reply(string(token), "d")
	overdue := s.NewCall(scriptOverdue, replyKey, nil, nil, 2)
	overdue.Add(string(token), max(0, request.Max))
	answer, err := s.RunList(ctx, overdue, 3)
	if err != nil {
		return nil, err
	}
	if layout.Num(answer[1]) != 0 {
		return s.expiredAgain(token, layout.Num(answer[0]), layout.List(answer[2]))
	}
	found := layout.Strs(answer[2])
	if len(found) == 0 || len(found)%2 != 0 {
		return nil, nil
	}
	numbers := make([]string, 0, len(found)/2)
	for i := 1; i < len(found); i += 2 {
		if found[i] != "" {
			numbers = append(numbers, found[i])
		}
	}
	queues, _, err := s.FindByNumber(ctx, numbers)
	if err != nil {
		return nil, err
	}
	queues = shard.Distinct(queues)
	position := make(map[string]int, len(queues))
	for i, q := range queues {
		position[q.Number] = i + 1
	}
	c := s.NewCall(scriptExpire, replyKey, queues, nil, 3+len(found))
	c.Add(string(token), max(0, request.MaxBytes), layout.Millis(request.Lease))
	for i := 0; i < len(found); i += 2 {
		c.Add(position[found[i+1]], found[i])
	}
	if answer, err = s.RunList(ctx, c, 2); err != nil {
		return nil, err
	}
	return s.readJobs(scriptExpire, token, layout.Num(answer[0]), layout.List(answer[1]), queues)
}

// expiredAgain reads the answer to a repeated call.
func (s *Queue) expiredAgain(token store.Token, now int64, jobs []any) (claimed []store.ClaimedJob, err error) {
	if len(jobs)%5 != 0 {
		return nil, scriptOverdue.Malformed()
	}
	for i := 0; i < len(jobs); i += 5 {
		q, err := s.QueueOf(layout.Str(jobs[i+1]), layout.Str(jobs[i+4]))
		if err != nil {
			return nil, err
		}
		claimed = s.appendJob(claimed, token, now, jobs[i:i+4], q.Queue)
	}
	return claimed, nil
}
