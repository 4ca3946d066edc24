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
		all[i].Topic = topic
		for field, line := range lines[i].Val() {
			minute, hour := readBucket(line, time.Minute), readBucket(line, time.Hour)
			if field == "now" {
				hour.At = minute.At.Truncate(time.Hour)
			}
			one := store.History{Minutes: []store.HistoryBucket{minute}, Hours: []store.HistoryBucket{hour}}
			switch field[0] {
			case 'm':
				one.Hours = nil
			case 'h':
				one.Minutes = nil
			}
			all[i].Merge(&one)
		}
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
