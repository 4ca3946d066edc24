package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// PutLane writes a lane's settings where the lane's jobs are, whether it has any or not.
func (sh *shard) PutLane(ctx context.Context, token store.Token, lane store.Lane) (store.Lane, error) {
	s := sh.store
	var text []byte
	var err error
	if lane.Settings.IsZero() {
		lane.Settings = policy.Lane{}
	} else if text, err = json.Marshal(lane.Settings); err != nil {
		return store.Lane{}, fmt.Errorf("write a lane's settings: %w", err)
	}
	err = s.retryStale(sh, func() error {
		found, err := sh.find(ctx, s.runner, []job.Queue{lane.Queue})
		if err != nil {
			return err
		}
		if found[0] == nil {
			found = nil
		}
		c := s.newCall(sh, scriptPutLane, sh.keys.Reply(string(token), "l"), found, nil, 5)
		c.keys = append(c.keys, sh.keys.Settings, sh.keys.ConfiguredLanes(layout.TopicName(lane.Queue.Namespace, lane.Queue.Topic)), sh.keys.Queues)
		c.add(lane.Queue.String(), lane.Queue.Lane, lane.Revision, layout.FormatLaneLimits(lane.Settings.Limits()), text)
		reply, reached, err := s.evalDurable(ctx, c.script, c.keys, c.args)
		if err != nil {
			return err
		}
		if str(reply) == "!" {
			return store.ErrVersion
		}
		lane.Revision, lane.Durability = num(reply), reached
		return nil
	})
	if err != nil {
		return store.Lane{}, fmt.Errorf("put lane: %w", err)
	}
	return lane, nil
}

// parseLane reads stored settings, '<revision> <settings>'; empty where nothing is put. What cannot be read is an error,
// and a paused lane: to go on without its settings could open one that somebody paused.
func parseLane(q job.Queue, text string) (store.Lane, error) {
	lane := store.Lane{Queue: q}
	if text == "" {
		return lane, nil
	}
	revision, body, _ := strings.Cut(text, " ")
	var err error
	if lane.Revision, err = strconv.ParseInt(revision, 10, 64); err == nil {
		err = json.Unmarshal([]byte(body), &lane.Settings)
	}
	if err != nil {
		lane.Settings = policy.Lane{Paused: true}
		return lane, fmt.Errorf("read lane %s: %w", q, err)
	}
	return lane, nil
}

// logUnreadableLane logs that lane settings not readable, holding the lane. The lane stands still until they are put anew; others go on.
func logUnreadableLane(ctx context.Context, log *slog.Logger, q job.Queue, err error) {
	log.ErrorContext(ctx, "lane settings not readable, holding the lane", "topic", q.Topic, "lane", q.Lane, "err", err)
}

// GetLanes reads lanes' settings. Those that cannot be read are logged and shown as a pause.
func (sh *shard) GetLanes(ctx context.Context, queues []job.Queue) ([]store.Lane, error) {
	s := sh.store
	checkBatchSize(len(queues))
	lanes, _, err := s.laneSettings(ctx, sh, queues)
	if err != nil {
		return nil, fmt.Errorf("read lanes' settings: %w", err)
	}
	return lanes, nil
}

// laneSettings also says whose settings cannot be read.
func (s *Store) laneSettings(ctx context.Context, sh *shard, queues []job.Queue) (lanes []store.Lane, bad []bool, err error) {
	if len(queues) == 0 {
		return nil, nil, nil
	}
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.String()
	}
	values, err := s.client.HMGet(ctx, sh.keys.Settings, names...).Result()
	if err != nil {
		return nil, nil, connect.MapError(ctx, err)
	}
	lanes, bad = make([]store.Lane, len(queues)), make([]bool, len(queues))
	for i, text := range strs(values) {
		if lanes[i], err = parseLane(queues[i], text); err != nil {
			bad[i] = true
			logUnreadableLane(ctx, s.log, queues[i], err)
		}
	}
	return lanes, bad, nil
}

// ListLanes lists a topic's lanes with settings of their own. Those that cannot be read are logged and left out.
func (sh *shard) ListLanes(ctx context.Context, namespace, topic, after string, limit int) ([]store.Lane, error) {
	s := sh.store
	checkBatchSize(limit)
	if limit <= 0 {
		return nil, ctx.Err()
	}
	var lanes []store.Lane
	for len(lanes) < limit {
		from := "-"
		if after != "" {
			from = "(" + after
		}
		names, err := s.client.ZRangeByLex(ctx, sh.keys.ConfiguredLanes(layout.TopicName(namespace, topic)),
			&redis.ZRangeBy{Min: from, Max: "+", Count: int64(limit - len(lanes))}).Result()
		if err != nil {
			return nil, fmt.Errorf("list lanes: %w", connect.MapError(ctx, err))
		}
		if len(names) == 0 {
			break
		}
		queues := make([]job.Queue, len(names))
		for i, name := range names {
			queues[i] = job.Queue{Namespace: namespace, Topic: topic, Lane: name}
		}
		found, bad, err := s.laneSettings(ctx, sh, queues)
		if err != nil {
			return nil, fmt.Errorf("list lanes: %w", err)
		}
		for i, lane := range found {
			if lane.Revision != 0 && !bad[i] { // else it was removed in between
				lanes = append(lanes, lane)
			}
		}
		after = names[len(names)-1]
	}
	return lanes, nil
}
