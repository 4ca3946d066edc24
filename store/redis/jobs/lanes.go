package jobs

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

const (
	// listLanes bounds the lanes that are read for one page. A topic without lanes counts as one.
	listLanes = 5000
	// lanesChunk is how many lanes are read at once, at most. At first these are as many as the page can have jobs.
	lanesChunk = 1024
	// topicsChunk is how many topics are read at once.
	topicsChunk = 500
)

// A lane is a queue with its number.
type lane struct {
	job.Queue
	number string
}

// position returns the position of a job of the lane.
func (l *lane) position(e entry) store.Position {
	return store.Position{Topic: l.Topic, Lane: l.Lane, At: e.at, Tie: e.key}
}

// contains reports whether a position is in the lane.
func (l *lane) contains(p store.Position) bool {
	return !p.Ended && l.Topic == p.Topic && l.Lane == p.Lane
}

// A laneReader reads the lanes that a list goes through, in order.
type laneReader struct {
	*Jobs
	filter  *store.Filter
	topics  []string       // the next topics
	from    string         // the least name of the topics after them
	more    bool           // there may be some
	size    int            // how many lanes to read next
	read    int            // how many were read
	reached store.Position // the position of the last lane or topic that was read
	// first and least are the least member of topic_lanes to read, of the first of the topics and of the others;
	// greatest is the greatest of all. They are as ZRANGEBYLEX takes them.
	first, least, greatest string
}

// newLaneReader returns a reader that begins with the lane of the filter's position.
func newLaneReader(s *Jobs, f *store.Filter) *laneReader {
	l := &laneReader{Jobs: s, filter: f, from: f.After.Topic, more: true, size: f.Limit + 1, least: "[", greatest: "+"}
	if f.Lane != "" {
		l.least, l.greatest = "["+f.Lane+"\x00", "["+f.Lane+"\x01"
	}
	return l
}

// done reports whether there are no more lanes.
func (l *laneReader) done() bool { return len(l.topics) == 0 && !l.more }

// next reads the next lanes, perhaps none although others come after them.
func (l *laneReader) next(ctx context.Context) (lanes []lane, err error) {
	if len(l.topics) == 0 {
		if err := l.findTopics(ctx); err != nil || len(l.topics) == 0 {
			return nil, err
		}
	}
	keys := make([]string, len(l.topics))
	for i, topic := range l.topics {
		keys[i] = l.Keys.TopicLanes(layout.TopicName(l.filter.Namespace, topic))
	}
	reply, err := l.Eval(ctx, scriptLanes, keys, []any{l.size, l.first, l.least, l.greatest})
	if err != nil {
		return nil, err
	}
	found := layout.List(reply)
	if len(found) == 0 || len(found) > len(keys) {
		return nil, scriptLanes.Malformed()
	}
	members := 0
	for i, part := range found {
		l.reached = store.Position{Topic: l.topics[i]}
		for _, member := range layout.Strs(part) {
			members++
			name, number, _ := strings.Cut(member, "\x00")
			if name != l.reached.Lane {
				lanes = append(lanes,
					lane{job.Queue{Namespace: l.filter.Namespace, Topic: l.topics[i], Lane: name}, number})
				l.reached.Lane = name
			} else if last := &lanes[len(lanes)-1]; layout.Int(last.number) < layout.Int(number) {
				last.number = number // a crash of Redis may have left an older one
			}
		}
		l.read++
	}
	l.read += members
	if members < l.size {
		l.topics, l.first = l.topics[len(found):], l.least
	} else {
		l.topics, l.first = l.topics[len(found)-1:], "["+l.reached.Lane+"\x01"
	}
	l.size = min(2*l.size, lanesChunk)
	return lanes, nil
}

// findTopics finds the next topics.
func (l *laneReader) findTopics(ctx context.Context) (err error) {
	if l.topics, l.from, l.more, err = l.topicsFrom(ctx, l.filter, l.from); err != nil {
		return err
	}
	l.first = l.least
	if at := &l.filter.After; at.Lane != "" && len(l.topics) > 0 && l.topics[0] == at.Topic {
		l.first = max(l.least, "["+at.Lane+"\x00")
	}
	return nil
}

// topicsFrom reads up to topicsChunk names of topics from a name on that a filter selects. more: there may be others,
// from next on.
func (s *Jobs) topicsFrom(
	ctx context.Context, f *store.Filter, from string,
) (topics []string, next string, more bool, err error) {
	from, ok := f.NextTopic(from)
	if !ok {
		return nil, "", false, nil
	}
	if f.Topic != "" {
		return []string{f.Topic}, "", false, nil
	}
	least, greatest := "["+layout.TopicName(f.Namespace, from), "("+f.Namespace+"0" // 0 is the byte after the slash
	names, err := s.Client.ZRangeByLex(ctx, s.Keys.Topics,
		&redis.ZRangeBy{Min: least, Max: greatest, Count: topicsChunk}).Result()
	for _, name := range names {
		_, topic, _ := strings.Cut(name, "/")
		if next = topic + "\x00"; f.SelectsTopic(topic) {
			topics = append(topics, topic)
		}
	}
	return topics, next, len(names) == topicsChunk, connect.MapError(ctx, err)
}
