package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/script"
	"github.com/ringback/ringback/store/redis/shard"
)

// Permit grants starts in one script. An ask without a rate is granted as it is.
func (s *Queue) Permit(ctx context.Context, token store.Token, asks []store.PermitRequest) ([]store.Permit, error) {
	shard.CheckBatchSize(len(asks))
	if len(asks) == 0 {
		return nil, ctx.Err()
	}
	keys := make([]string, 2, 2+len(asks))
	keys[0], keys[1] = s.Keys.Reply(string(token), "p"), s.Keys.Clock
	args := make([]any, 0, 4*len(asks))
	for _, ask := range asks {
		if !ask.Rate.Limited() {
			continue
		}
		keys = append(keys, s.Keys.Rate(layout.TopicName(ask.Namespace, ask.Topic)))
		args = append(args, ask.Rate.Starts, layout.Millis(ask.Rate.Per), layout.Millis(max(0, ask.Slack)), max(0, ask.Starts))
	}
	reply, err := s.Eval(ctx, scriptPermit, keys, args)
	if err != nil {
		return nil, fmt.Errorf("permit: %w", err)
	}
	answer := script.Strs(reply)
	if len(answer) != 1+2*(len(keys)-2) {
		return nil, fmt.Errorf("permit: %w", scriptPermit.Malformed())
	}
	now, rest := layout.Time(script.Num(answer[0])), answer[1:]
	permits := make([]store.Permit, len(asks))
	for i, ask := range asks {
		permits[i] = store.Permit{Starts: max(0, ask.Starts), At: now}
		if ask.Rate.Limited() {
			permits[i].Starts, permits[i].Next = int(script.Num(rest[0])), time.Duration(script.Num(rest[1]))*time.Millisecond
			rest = rest[2:]
		}
	}
	return permits, nil
}
