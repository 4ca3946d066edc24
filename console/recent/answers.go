// Package recent has what pages show of the recent past: counters and histories that are shared by many visits, so that
// they cost what one does, and their charts.
//
// An answer is used again for 50 times as long as it took, up to 10 seconds: the counters of 100,000 lanes take some 30
// ms on SQLite, and up to a second on Redis.
package recent

import (
	"context"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
)

// StatsTopics is the number of topics in Stats.
const StatsTopics = 50

// MaxKeys bounds the answers of a Cache.
const MaxKeys = 64

// Source is the API as a reader may see it.
type Source interface {
	StatsPage(ctx context.Context, o client.PageOptions) (*client.Stats, error)
	History(ctx context.Context, q client.HistoryQuery) (*client.History, error)
}

// Answers are those that all pages share. The zero value has none. It is safe for concurrent use.
type Answers struct {
	stats   Cache[*client.Stats]
	history Cache[*client.History]
}

// Stats returns the counters of a namespace with its first topics, and when they were requested. The answers are shared
// by all who may read them.
func (a *Answers) Stats(ctx context.Context, namespace string, source Source) (*client.Stats, time.Time, error) {
	return a.stats.Read(ctx, namespace, func(ctx context.Context) (*client.Stats, error) {
		return source.StatsPage(ctx, client.PageOptions{Limit: StatsTopics})
	})
}

// History returns what became of the attempts of a namespace, and of some of its topics. The answers are shared by all
// who may read them.
func (a *Answers) History(
	ctx context.Context, namespace string, source Source, q client.HistoryQuery,
) (*client.History, error) {
	key := namespace + "/" + strings.Join(q.Topics, ",") + "/" + q.By
	h, _, err := a.history.Read(ctx, key, func(ctx context.Context) (*client.History, error) {
		return source.History(ctx, q)
	})
	return h, err
}
