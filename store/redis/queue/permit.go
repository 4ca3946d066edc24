package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

// Permit grants starts in one script. A request without a rate is granted as it is.
func (s *Queue) Permit(ctx context.Context, token store.Token, requests []store.PermitRequest) ([]store.Permit, error) {
	shard.CheckBatchSize(len(requests))
	if len(requests) == 0 {
		return nil, ctx.Err()
	}
	keys := make([]string, 2, 2+len(requests))
	keys[0], keys[1] = s.Keys.Reply(string(token), "p"), s.Keys.Clock
	args := make([]any, 0, 4*len(requests))
	for _, request := range requests {
		if !request.Rate.Limited() {
			continue
		}
		keys = append(keys, s.Keys.Rate(layout.TopicName(request.Namespace, request.Topic)))
		args = append(args, request.Rate.Starts, layout.Millis(request.Rate.Per),
			layout.Millis(max(0, request.Slack)), max(0, request.Starts))
	}
	reply, err := s.Eval(ctx, scriptPermit, keys, args)
	if err != nil {
		return nil, fmt.Errorf("permit: %w", err)
	}
	answer := layout.Strs(reply)
	if len(answer) != 1+2*(len(keys)-2) {
		return nil, fmt.Errorf("permit: %w", scriptPermit.Malformed())
	}
	now, rest := layout.Time(layout.Num(answer[0])), answer[1:]
	permits := make([]store.Permit, len(requests))
	for i, request := range requests {
		permits[i] = store.Permit{Starts: max(0, request.Starts), At: now}
		if request.Rate.Limited() {
			permits[i].Starts, permits[i].Next = int(layout.Num(rest[0])),
				time.Duration(layout.Num(rest[1]))*time.Millisecond
			rest = rest[2:]
		}
	}
	return permits, nil
}
