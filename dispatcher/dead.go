package dispatcher

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// pageTimeout bounds the time to fill a page whose filter matches few jobs.
const pageTimeout = 2 * time.Second

// pageBuilder combines pages of the store, which end at shards, at topics, and after a bounded number of skipped jobs.
type pageBuilder struct {
	store *router.Router
	limit int
	until time.Time
	page  store.Page
}

func (d *Dispatcher) newPage(limit int) *pageBuilder {
	return &pageBuilder{store: d.store, limit: limit, until: time.Now().Add(pageTimeout)}
}

// full reports whether the page is full.
func (p *pageBuilder) full() bool { return len(p.page.Jobs) >= p.limit || !time.Now().Before(p.until) }

// fill adds jobs of the filter's topic until the page is full, and returns the cursor of the rest; empty: no more. Jobs read
// before an error are kept, and the cursor is that of the failed read.
func (p *pageBuilder) fill(ctx context.Context, filter store.Filter) (cursor string, err error) {
	for {
		filter.Limit = p.limit - len(p.page.Jobs)
		read, err := p.store.List(ctx, filter)
		if err != nil {
			return filter.Cursor, err
		}
		p.page.Jobs = append(p.page.Jobs, read.Jobs...)
		if read.Cursor == "" || p.full() {
			return read.Cursor, nil
		}
		filter.Cursor = read.Cursor
	}
}

// end returns the page with its cursor, or the error if nothing was read before it.
func (p *pageBuilder) end(cursor string, err error) (store.Page, error) {
	if err != nil && len(p.page.Jobs) == 0 {
		return store.Page{}, err
	}
	p.page.Cursor = cursor
	return p.page, nil
}

// List returns a page of a topic's jobs in one state. It is full unless it is the last, or took longer than pageTimeout.
func (d *Dispatcher) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	p := d.newPage(filter.Limit)
	page, err := p.end(p.fill(ctx, filter))
	d.setCallbackIDs(ctx, page.Jobs)
	return page, err
}

// Dead returns a page of dead letters of a topic, or of all topics (an empty one) in order of name. It is full unless it is
// the last, or took longer than pageTimeout.
func (d *Dispatcher) Dead(ctx context.Context, filter store.Filter) (store.Page, error) {
	filter.State = job.Dead
	if filter.Topic != "" {
		return d.List(ctx, filter)
	}
	page, err := d.deadOfAll(ctx, filter)
	d.setCallbackIDs(ctx, page.Jobs)
	return page, err
}

// deadOfAll returns a page over all topics. Its cursor is a topic's name, a slash, and the cursor within that topic; an empty
// one continues after the topic.
func (d *Dispatcher) deadOfAll(ctx context.Context, filter store.Filter) (store.Page, error) {
	topic, inner := "", ""
	if filter.Cursor != "" {
		var ok bool
		if topic, inner, ok = strings.Cut(filter.Cursor, "/"); !ok || !job.IsTopic(topic) {
			return store.Page{}, store.ErrCursor
		}
	}
	p := d.newPage(filter.Limit)
	if inner != "" {
		filter.Topic, filter.Cursor = topic, inner
		if rest, err := p.fill(ctx, filter); err != nil || rest != "" {
			return p.end(topic+"/"+rest, err)
		}
	}
	for name, err := range d.deadTopics(ctx, filter.Namespace, topic) {
		if err != nil || p.full() {
			return p.end(topic+"/", err)
		}
		filter.Topic, filter.Cursor = name, ""
		rest, err := p.fill(ctx, filter)
		switch {
		case rest != "":
			return p.end(name+"/"+rest, err)
		case err != nil:
			return p.end(topic+"/", err)
		}
		topic = name
	}
	return p.end("", nil)
}

// deadTopics yields the names of topics with deaths after a name, in order. It ends with the first error.
func (d *Dispatcher) deadTopics(ctx context.Context, namespace, after string) iter.Seq2[string, error] {
	return func(yield func(name string, err error) bool) {
		for f := (store.StatsFilter{Namespace: namespace, After: after, Limit: store.MaxBatch}); ; {
			stats, err := d.store.TopicStats(ctx, f)
			if err != nil {
				yield("", err)
				return
			}
			for _, s := range stats {
				if s.Dead > 0 && !yield(s.Topic, nil) {
					return
				}
			}
			if len(stats) < f.Limit {
				return
			}
			f.After = stats[len(stats)-1].Topic
		}
	}
}
