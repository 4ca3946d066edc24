package keeper

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

// Alarm records an alarm and writes its new jobs to the outbox in one script. They are as durable as registrations.
func (s *Keeper) Alarm(ctx context.Context, token store.Token, alarm store.Alarm) (bool, error) {
	shard.CheckBatchSize(len(alarm.Outbox))
	raised := 0
	if alarm.Raised {
		raised = 1
	}
	c := s.NewCall(scriptAlarm, s.Keys.Reply(string(token), "a"), nil, nil, 2+2*len(alarm.Outbox))
	c.Keys = append(c.Keys, s.Keys.Alarms)
	c.Add(layout.TopicName(alarm.Namespace, alarm.Topic), raised)
	for i := range alarm.Outbox {
		c.Add(layout.JobKey(alarm.Outbox[i].Ref()), store.AppendNewJob(nil, &alarm.Outbox[i]))
	}
	reply, _, err := s.RunDurably(ctx, c)
	if err != nil {
		return false, fmt.Errorf("record an alarm: %w", err)
	}
	return layout.Str(reply) == "1", nil
}
