package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// ErrChanged: jobs were registered, ended or removed, or settings were changed, during an export.
var ErrChanged = errors.New("the stores were changed since the export began: stop all processes of Ringback, and " +
	"export again")

// Export writes the jobs and settings of stores that are not in use. It returns the ledger of the file.
func Export(ctx context.Context, out io.Writer, o Options) (Ledger, error) {
	ctx, unlock, err := o.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := CheckImports(ctx, o.Stores[0]); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &exporter{Options: o, ordered: make(map[job.Queue]bool)}
	e.w = newWriter(out, func() { e.progress(e.w.ledger.Jobs(), e.total) })
	err = e.export(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return e.w.ledger, err
}

type exporter struct {
	Options

	w     *writer
	of    map[string][]string // namespaces by store
	total int64
	// ordered has the ordered queues; those without a lane are topics.
	ordered map[job.Queue]bool
}

func (e *exporter) export(ctx context.Context) (err error) {
	if e.of, err = e.namespaces(ctx); err != nil {
		return err
	}
	if err := e.relayOutboxes(ctx); err != nil {
		return err
	}
	before, err := e.snapshot(ctx)
	if err != nil {
		return err
	}
	counted, pending, err := e.count(ctx)
	if err != nil {
		return err
	}
	e.total = counted.Jobs()
	if err := e.writeHeader(before); err != nil {
		return err
	}
	if err := e.exportDocuments(ctx); err != nil {
		return err
	}
	for _, s := range e.Stores {
		for _, namespace := range e.of[s.Name] {
			for _, shard := range s.Shards() {
				if err := e.exportShard(ctx, shard, namespace); err != nil {
					return err
				}
			}
		}
	}
	after, err := e.snapshot(ctx)
	if err != nil {
		return err
	}
	for row, n := range e.w.unreadable {
		if counted[row] -= n; counted[row] == 0 {
			delete(counted, row)
		}
	}
	if after != before || !maps.Equal(counted, e.w.ledger) {
		return ErrChanged
	}
	if err := e.w.end(); err != nil {
		return err
	}
	unlisted := before.Pending - pending
	if jobs := max(unlisted, -unlisted) + e.w.unreadable.Jobs(); jobs > 0 {
		return &UnreadableError{Jobs: jobs}
	}
	return nil
}

func (e *exporter) writeHeader(s snapshot) error {
	h := &header{
		Format: formatVersion, Version: e.Version, ID: string(store.NewToken()), CreatedAt: job.Millis(time.Now()),
		WithoutSecrets: e.WithoutSecrets, Snapshot: s,
	}
	for _, s := range e.Stores {
		h.Stores = append(h.Stores, storeLine{Name: s.Name, URL: s.URL, Shards: len(s.Shards())})
	}
	return e.w.write(&line{Header: h})
}

// relayOutboxes inserts the jobs in outboxes into their queues.
func (e *exporter) relayOutboxes(ctx context.Context) error {
	for _, s := range e.Stores {
		r := router.New(s)
		for _, shard := range s.Shards() {
			options := store.CarryOptions{KeepLeases: true}
			for {
				carried, err := shard.Carry(ctx, store.NewToken(), options)
				if err != nil {
					return fmt.Errorf("read the outbox: %w", err)
				}
				options.Relayed = options.Relayed[:0]
				options.SkipOutbox += carried.OutboxRead - len(carried.Outbox) // those that cannot be decoded
				if carried.OutboxRead == 0 {
					break
				}
				for i, inserted := range r.Insert(ctx, carried.Outbox) {
					if inserted.Err != nil {
						return fmt.Errorf("relay the outbox: %w", inserted.Err)
					}
					options.Relayed = append(options.Relayed, carried.Outbox[i].Ref())
				}
			}
		}
	}
	return nil
}

// exportShard writes the jobs of a namespace on a shard: first those in the order of the list, then those of ordered
// queues.
func (e *exporter) exportShard(ctx context.Context, shard store.Shard, namespace string) error {
	err := eachPage(ctx, shard, store.Filter{Namespace: namespace}, func(page *store.Page) error {
		return e.exportPage(ctx, shard, page)
	})
	if err != nil {
		return err
	}
	return e.exportOrdered(ctx, shard, namespace)
}

// exportPage writes the jobs of a page, but those that wait in ordered queues.
func (e *exporter) exportPage(ctx context.Context, shard store.Shard, page *store.Page) error {
	var jobs []*job.Job
	var refs []job.Ref
	for i := range page.Jobs {
		if j := &page.Jobs[i]; j.State.Ended() || !e.isOrdered(j.Queue) {
			jobs, refs = append(jobs, j), append(refs, j.Ref())
		}
	}
	return e.exportJobs(ctx, shard, refs, func(i int) Row { return rowOfJob(jobs[i]) })
}

// exportJobs writes jobs. rowOf returns the row of the ledger in which one counts that cannot be read.
func (e *exporter) exportJobs(ctx context.Context, shard store.Records, refs []job.Ref, rowOf func(i int) Row) error {
	return eachRecord(ctx, shard, refs, func(_ int, r *store.Record) error {
		if e.WithoutSecrets {
			if err := removeSecrets(r); err != nil {
				return fmt.Errorf("job %s: %w", r.ID, err)
			}
		}
		if err := e.w.write(&line{Job: lineOf(r, time.Now())}); err != nil {
			return fmt.Errorf("job %s: %w", r.ID, err)
		}
		return nil
	}, func(i int, err error) error {
		if e.w.unreadable.Jobs() >= int64(maxUnreadable) {
			return err
		}
		e.Logger.Error("job cannot be read, and is not exported", "job", refs[i].ID, "namespace", refs[i].Namespace,
			"err", err)
		e.w.unreadable[rowOf(i)]++
		return nil
	})
}
