package nowpage

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/web"
)

const (
	// maxTopics bounds the topics that are counted, and whose settings are looked through for pauses: one page of the
	// lists.
	maxTopics = recent.StatsTopics
	// maxOwnTopics bounds the topics that are counted for a token that is restricted to topics.
	maxOwnTopics = 10
)

// state is what the API says now.
type state struct {
	v *web.Visit
	// Hour and Days are what became of attempts; nil: not known. lately is the sum of the last two whole minutes and of
	// the one that has begun.
	Hour, Days *recent.Attempts
	lately     client.HistoryBucket

	// fault says why the server cannot be read; empty: it can.
	fault string
	// Stores are those of the process; none: it is not ready.
	Stores  []client.StoreReadiness
	Process string
	Version string

	counts *client.Counts // nil: not known
	age    time.Duration  // of counts
	topics []client.TopicCounts
	// allCounted reports whether topics has all topics with jobs.
	allCounted bool
	troubled   *client.TroubledLanes
	settings   []*client.Topic // the first ones
	Restricted *restricted     // nil: the token may see all topics
}

// restricted is what a token sees that is restricted to topics.
type restricted struct {
	Topics []string // names, and patterns with *
	Counts []client.TopicCounts
}

// read reads the state.
func (p *pages) read(v *web.Visit) (*state, error) {
	ctx := v.Request.Context()
	s := &state{v: v}
	if len(v.Who.Topics) > 0 {
		s.Restricted = &restricted{Topics: v.Who.Topics}
	}
	version, err := v.API.Version(ctx)
	if err != nil {
		return nil, err
	}
	s.Version, s.Process = version.Version, version.Process
	readCounts := func(ctx context.Context) error { return s.readCounts(ctx, p.answers) }
	readHeld := func(ctx context.Context) (err error) {
		s.troubled, _, err = p.troubled.Read(ctx, v.Audience, func(ctx context.Context) (*client.TroubledLanes, error) {
			return v.API.TroubledLanes(ctx, client.TroubledQuery{})
		})
		return err
	}
	for _, part := range []func(context.Context) error{s.readStores, readCounts, readHeld, s.readTopics} {
		if err := part(ctx); errors.Is(err, client.ErrUnavailable) {
			s.fault = faultOf(err)
			break // the others would wait for the same
		} else if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// faultOf returns why a server is not available, as a clause without a full stop.
func faultOf(err error) string {
	text := err.Error()
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Detail != "" {
		text = p.Detail
	}
	text = strings.TrimPrefix(text, "not ready: ")
	return strings.TrimRight(text, ". ")
}

func (s *state) readStores(ctx context.Context) error {
	ready, err := s.v.API.Ready(ctx)
	if err == nil {
		s.Stores = ready.Stores
	}
	return err
}

// readCounts reads the counters of the namespace, or those of the token's topics.
func (s *state) readCounts(ctx context.Context, from *recent.Answers) error {
	if s.Restricted != nil {
		return s.readOwnCounts(ctx)
	}
	stats, at, err := from.Stats(ctx, s.v.Namespace, s.v.API)
	if err != nil {
		return err
	}
	s.age = max(0, s.v.Now.Sub(at))
	s.counts, s.topics, s.allCounted = &stats.Totals, stats.Items, stats.NextCursor == ""
	history, err := from.History(ctx, s.v.Namespace, s.v.API, client.HistoryQuery{})
	if err == nil {
		s.setHistory(&history.Buckets)
	}
	return err
}

// setHistory sets what became of attempts.
func (s *state) setHistory(b *client.Buckets) {
	s.Hour, s.Days = recent.LastHour(b, s.v.Now), recent.LastDays(b, s.v.Now)
	s.lately = client.SumBuckets(b.Minutes, s.latelySince())
}

// latelySince is when the two last whole minutes began.
func (s *state) latelySince() time.Time { return s.v.Now.Truncate(time.Minute).Add(-2 * time.Minute) }

// readOwnCounts reads the counters of the topics that the token names. A pattern matches topics that nothing lists.
func (s *state) readOwnCounts(ctx context.Context) error {
	var sum client.Counts
	var buckets client.Buckets
	known := true
	for i, topic := range s.Restricted.Topics {
		if strings.Contains(topic, "*") || i >= maxOwnTopics {
			known = false
			continue
		}
		counts, err := s.v.API.TopicStatsPage(ctx, topic, client.PageOptions{Limit: 1}) // its lanes are not shown
		if errors.Is(err, client.ErrNotFound) {
			continue // nobody has used it
		}
		if err != nil {
			return err
		}
		s.topics = append(s.topics, client.TopicCounts{Topic: counts.Topic, Counts: counts.Counts})
		add(&sum, &counts.Counts)
		history, err := s.v.API.TopicHistory(ctx, topic)
		if err != nil {
			return err
		}
		buckets.Minutes = append(buckets.Minutes, history.Minutes...)
		buckets.Hours = append(buckets.Hours, history.Hours...)
	}
	s.Restricted.Counts = s.topics
	if known {
		s.counts = &sum
	}
	if known || len(s.topics) > 0 {
		s.setHistory(&buckets)
	}
	return nil
}

// add adds counts up.
func add(sum, c *client.Counts) {
	sum.Registered += c.Registered
	sum.Scheduled += c.Scheduled
	sum.Ready += c.Ready
	sum.Running += c.Running
	sum.Delivered += c.Delivered
	sum.Dead += c.Dead
	sum.Cancelled += c.Cancelled
	if sum.OldestDueAt.IsZero() || !c.OldestDueAt.IsZero() && c.OldestDueAt.Before(sum.OldestDueAt) {
		sum.OldestDueAt = c.OldestDueAt
	}
}

// readTopics reads the settings of topics, also those without jobs.
func (s *state) readTopics(ctx context.Context) error {
	if s.Restricted != nil {
		return nil // the API has no list for it
	}
	for topic, err := range s.v.API.TopicSettings(ctx) {
		if err != nil {
			return err
		}
		if s.settings = append(s.settings, topic); len(s.settings) >= maxTopics {
			break
		}
	}
	return nil
}

// isFresh reports whether nobody has registered a job.
func (s *state) isFresh() bool { return s.counts != nil && s.counts.Registered == 0 }
