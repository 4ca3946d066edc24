package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// Permit grants starts in one script. An ask without a rate is granted as it is.
func (sh *shard) Permit(ctx context.Context, token store.Token, asks []store.PermitRequest) ([]store.Permit, error) {
	s := sh.store
	checkBatchSize(len(asks))
	if len(asks) == 0 {
		return nil, ctx.Err()
	}
	keys := make([]string, 2, 2+len(asks))
	keys[0], keys[1] = sh.keys.Reply(string(token), "p"), sh.keys.Clock
	args := make([]any, 0, 4*len(asks))
	for _, ask := range asks {
		if !ask.Rate.Limited() {
			continue
		}
		keys = append(keys, sh.keys.Rate(layout.TopicName(ask.Namespace, ask.Topic)))
		args = append(args, ask.Rate.Starts, layout.Millis(ask.Rate.Per), layout.Millis(max(0, ask.Slack)), max(0, ask.Starts))
	}
	reply, err := s.eval(ctx, scriptPermit, keys, args)
	if err != nil {
		return nil, fmt.Errorf("permit: %w", err)
	}
	answer := strs(reply)
	if len(answer) != 1+2*(len(keys)-2) {
		return nil, fmt.Errorf("permit: %w", malformed(scriptPermit))
	}
	now, rest := layout.Time(num(answer[0])), answer[1:]
	permits := make([]store.Permit, len(asks))
	for i, ask := range asks {
		permits[i] = store.Permit{Starts: max(0, ask.Starts), At: now}
		if ask.Rate.Limited() {
			permits[i].Starts, permits[i].Next = int(num(rest[0])), time.Duration(num(rest[1]))*time.Millisecond
			rest = rest[2:]
		}
	}
	return permits, nil
}

// Alarm notes an alarm, and writes its births, in one script. They are promises, kept like registrations.
func (sh *shard) Alarm(ctx context.Context, token store.Token, alarm store.Alarm) (bool, error) {
	s := sh.store
	checkBatchSize(len(alarm.Outbox))
	raised := 0
	if alarm.Raised {
		raised = 1
	}
	c := s.newCall(sh, scriptAlarm, sh.keys.Reply(string(token), "a"), nil, nil, 2+2*len(alarm.Outbox))
	c.keys = append(c.keys, sh.keys.Alarms)
	c.add(layout.TopicName(alarm.Namespace, alarm.Topic), raised)
	for i := range alarm.Outbox {
		c.add(layout.JobKey(alarm.Outbox[i].Ref()), store.AppendNewJob(nil, &alarm.Outbox[i]))
	}
	reply, _, err := s.evalDurable(ctx, c.script, c.keys, c.args)
	if err != nil {
		return false, fmt.Errorf("note an alarm: %w", err)
	}
	return str(reply) == "1", nil
}
