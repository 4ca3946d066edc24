package counts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// ReadHistory reads the lines of history.lua.
func (s *Counts) ReadHistory(ctx context.Context, namespace string, topics []string) ([]store.History, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	pipe := s.Client.Pipeline()
	lines := make([]*redis.MapStringStringCmd, len(topics))
	for i, topic := range topics {
		lines[i] = pipe.HGetAll(ctx, s.Keys.History(layout.TopicName(namespace, topic)))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read history: %w", connect.MapError(ctx, err))
	}
	all := make([]store.History, len(topics))
	for i, topic := range topics {
		var read store.History
		for field, line := range lines[i].Val() {
			if field[0] == 'h' {
				read.Hours = append(read.Hours, readBucket(line, time.Hour))
				continue
			}
			minute := readBucket(line, time.Minute)
			read.Minutes = append(read.Minutes, minute)
			if field == "now" { // no hour has it yet
				minute.At = minute.At.Truncate(time.Hour)
				read.Hours = append(read.Hours, minute)
			}
		}
		all[i].Topic = topic
		all[i].Merge(&read)
	}
	return all, nil
}

// readBucket reads a line whose time is counted in spans.
func readBucket(line string, span time.Duration) (b store.HistoryBucket) {
	f := strings.Fields(line)
	for i, n := range b.Numbers() {
		if i+1 < len(f) {
			*n = layout.Num(f[i+1])
		}
	}
	b.At = time.Unix(layout.Num(f[0])*int64(span/time.Second), 0).UTC()
	return b
}
