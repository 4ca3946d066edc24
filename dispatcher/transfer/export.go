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

// ErrChanged: jobs were registered, ended or removed, or settings were changed, during an export or before it was
// resumed.
var ErrChanged = errors.New("the stores were changed since the export began: stop all processes of Ringback, and " +
	"export again to another file")

// Unfinished is a file that an interrupted export has left.
type Unfinished struct {
	// Offset is the length of the part to keep, in bytes. An export goes on behind it; 0: from its beginning.
	Offset int64

	read reader
	next *place
}

// ErrComplete: an export has written its last line.
var ErrComplete = errors.New("the file is complete: there is nothing to resume")

// ReadUnfinished reads a file that an interrupted export has left.
func ReadUnfinished(file io.Reader) (*Unfinished, error) {
	r, u := newReader(file), &Unfinished{}
	for {
		p, err := r.read()
		switch _, cutOff := errors.AsType[*CutOffError](err); {
		case errors.Is(err, io.EOF):
			return nil, ErrComplete
		case cutOff:
			return u, nil
		case err != nil:
			return nil, err
		case p.next != nil:
			u.Offset, u.next, u.read = r.offset, p.next, *r
			u.read.ledger = maps.Clone(r.ledger)
			u.read.in = nil
		}
	}
}

// Export writes the jobs and settings of stores that are not in use. resumed is what an interrupted export has left,
// behind which out is; nil: nothing. It returns the ledger of the file.
func Export(ctx context.Context, out io.Writer, o Options, resumed *Unfinished) (Ledger, error) {
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
	err = e.export(ctx, out, resumed)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return e.ledger(), err
}

type exporter struct {
	Options

	w     *writer
	of    map[string][]string // namespaces by store
	total int64
	// ordered has the ordered queues; those without a lane are topics.
	ordered map[job.Queue]bool
	// from is where the export goes on, until it has come there.
	from *place
}

func (e *exporter) ledger() Ledger {
	if e.w == nil {
		return nil
	}
	return e.w.ledger
}

func (e *exporter) export(ctx context.Context, out io.Writer, resumed *Unfinished) error {
	e.w = newWriter(out, func() error { e.progress(e.w.ledger.Jobs(), e.total); return nil })
	var err error
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
	if resumed != nil && resumed.Offset > 0 {
		u := &resumed.read
		if u.header.Snapshot != before {
			return ErrChanged
		}
		e.w.lines, e.w.sections, e.w.documents, e.w.ledger = u.lines, u.sections, u.documents, u.ledger
		maps.Copy(e.w.unreadable, u.unreadable)
		e.from, e.WithoutSecrets = resumed.next, u.header.WithoutSecrets
	} else if err := e.writeHeader(before); err != nil {
		return err
	}
	if err := e.exportDocuments(ctx); err != nil {
		return err
	}
	for _, s := range e.Stores {
		for _, namespace := range e.of[s.Name] {
			for n, shard := range s.Shards() {
				if err := e.exportShard(ctx, shard, place{Store: s.Name, Namespace: namespace, Shard: n}); err != nil {
					return err
				}
			}
		}
	}
	if e.from != nil {
		return fmt.Errorf("the file is from other stores: they have no shard %d of %s with the namespace %s",
			e.from.Shard, e.from.Store, e.from.Namespace)
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
	return e.w.write(&line{Header: h}, nil)
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
func (e *exporter) exportShard(ctx context.Context, shard store.Shard, at place) error {
	f, resumed := store.Filter{Namespace: at.Namespace}, place{}
	if e.from != nil {
		if e.from.Store != at.Store || e.from.Namespace != at.Namespace || e.from.Shard != at.Shard {
			return nil
		}
		resumed, e.from = *e.from, nil
	}
	if resumed.After != nil {
		f.After = *resumed.After
	}
	if resumed.Topic == "" {
		err := eachPage(ctx, shard, f, func(page *store.Page) error { return e.exportPage(ctx, shard, at, page) })
		if err != nil {
			return err
		}
	}
	return e.exportOrdered(ctx, shard, at, resumed)
}

// listed is a job to export, with its row in the ledger and the place after it.
type listed struct {
	ref job.Ref
	row Row
	at  place
}

// exportPage writes the jobs of a page, but those that wait in ordered queues.
func (e *exporter) exportPage(ctx context.Context, shard store.Shard, at place, page *store.Page) error {
	jobs := make([]listed, 0, len(page.Jobs))
	for i := range page.Jobs {
		j := &page.Jobs[i]
		if !j.State.Ended() && e.isOrdered(j.Queue) {
			continue
		}
		position := store.PositionOf(j, page.Ties[i])
		at.After = &position
		jobs = append(jobs, listed{j.Ref(), rowOfJob(j), at})
	}
	return e.exportJobs(ctx, shard, jobs)
}

// exportJobs writes jobs.
func (e *exporter) exportJobs(ctx context.Context, shard store.Records, jobs []listed) error {
	write := func(i int, r *store.Record) error {
		if e.WithoutSecrets {
			if err := removeSecrets(r); err != nil {
				return fmt.Errorf("job %s: %w", r.ID, err)
			}
		}
		if err := e.w.write(&line{Job: lineOf(r, time.Now())}, &jobs[i].at); err != nil {
			return fmt.Errorf("job %s: %w", r.ID, err)
		}
		return nil
	}
	return eachReadable(ctx, shard, jobs, write, func(i int, err error) error {
		if e.w.unreadable.Jobs() >= int64(maxUnreadable) {
			return err
		}
		ref := jobs[i].ref
		e.Logger.Error("job cannot be read, and is not exported", "job", ref.ID, "namespace", ref.Namespace, "err", err)
		e.w.leaveOut(jobs[i].row, &jobs[i].at)
		return nil
	})
}
