package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// ErrChanged: jobs were registered or changed during an export.
var ErrChanged = errors.New("the stores were changed during the export: stop all processes of Ringback, and export again to another file")

// UnreadableError is the error of an export that is complete but for jobs that cannot be read.
type UnreadableError struct{ Jobs int64 }

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the counters of the stores differ from the jobs that can be read by %d: see the log for jobs that cannot", e.Jobs)
}

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

// Export writes the jobs and settings of stores that are not in use. resumed is what an interrupted export has left, behind
// which out is; nil: nothing. It returns the ledger of the file.
func Export(ctx context.Context, out io.Writer, o Options, resumed *Unfinished) (Ledger, error) {
	ctx, unlock, err := o.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
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
	before, err := e.counters(ctx)
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
		e.w.lines, e.w.sections, e.w.documents, e.w.ledger = u.lines, u.sections, u.documents, u.ledger
		e.from, e.WithoutSecrets = resumed.next, u.header.WithoutSecrets
	} else if err := e.writeHeader(); err != nil {
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
		return fmt.Errorf("the file is from other stores: they have no shard %d of %s with the namespace %s", e.from.Shard, e.from.Store, e.from.Namespace)
	}
	after, err := e.counters(ctx)
	if err != nil {
		return err
	}
	if after != before || !maps.Equal(counted, e.w.ledger) {
		return ErrChanged
	}
	if err := e.w.end(); err != nil {
		return err
	}
	if differ := before.pending - pending; differ != 0 {
		return &UnreadableError{Jobs: max(differ, -differ)}
	}
	return nil
}

func (e *exporter) writeHeader() error {
	h := &header{
		Format: formatVersion, Version: e.Version, ID: string(store.NewToken()), CreatedAt: job.Millis(time.Now()), WithoutSecrets: e.WithoutSecrets,
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

// exportDocuments writes all documents, and finds the ordered queues. An export that goes on does not write them again.
func (e *exporter) exportDocuments(ctx context.Context) error {
	for _, kind := range mainKinds {
		if e.WithoutSecrets && isToken(kind) {
			continue
		}
		if err := eachDocument(ctx, e.Stores[0], kind, e.exportDocument); err != nil {
			return err
		}
	}
	for _, s := range e.Stores {
		own := func(doc store.Document) error {
			if !slices.Contains(e.of[s.Name], doc.Key.Namespace) {
				return nil
			}
			return e.exportDocument(doc)
		}
		for _, kind := range storeKinds {
			if err := eachDocument(ctx, s, kind, own); err != nil {
				return err
			}
		}
		for _, shard := range s.Shards() {
			if err := eachLane(ctx, shard, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachLane calls do for the settings of the lanes of a shard.
func eachLane(ctx context.Context, shard store.Records, do func(store.Document) error) error {
	for cursor := ""; ; {
		docs, next, err := shard.ScanLanes(ctx, cursor)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			if err := do(doc); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

func (e *exporter) exportDocument(doc store.Document) error {
	if limitsOf(doc).Ordered {
		e.ordered[doc.Key.Queue()] = true
	}
	if e.from != nil {
		return nil
	}
	value := doc.Value
	if e.WithoutSecrets {
		var err error
		if value, err = removeFromValue(value); err != nil {
			return fmt.Errorf("%s: %w", describe(doc.Key), err)
		}
	}
	l := &line{Document: &document{Kind: doc.Key.Kind, Namespace: doc.Key.Namespace, Name: doc.Key.Name, Lane: doc.Key.Lane, Value: value}}
	if err := e.w.write(l, nil); err != nil {
		return fmt.Errorf("%s: %w", describe(doc.Key), err)
	}
	return nil
}

// limitsOf returns the limits of a document that engines apply. Those of an unreadable one pause.
func limitsOf(doc store.Document) policy.Limits {
	doc.Revision = max(doc.Revision, 1) // it is stored
	switch doc.Key.Kind {
	case store.KindTopic:
		t, _ := doc.Topic()
		return t.Policy.Limits()
	case store.KindLane:
		l, _ := doc.Lane()
		return l.Settings.Limits()
	}
	return policy.Limits{}
}

func (e *exporter) isOrdered(q job.Queue) bool {
	return e.ordered[q] || e.ordered[job.Queue{Namespace: q.Namespace, Topic: q.Topic}]
}

// exportShard writes the jobs of a namespace on a shard: first those in the order of the list, then those of ordered queues.
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

// exportPage writes the jobs of a page, but those that wait in ordered queues.
func (e *exporter) exportPage(ctx context.Context, shard store.Shard, at place, page *store.Page) error {
	refs, places := make([]job.Ref, 0, len(page.Jobs)), make([]place, 0, len(page.Jobs))
	for i := range page.Jobs {
		j := &page.Jobs[i]
		if !j.State.Ended() && e.isOrdered(j.Queue) {
			continue
		}
		position := store.PositionOf(j, page.Ties[i])
		at.After = &position
		refs, places = append(refs, j.Ref()), append(places, at)
	}
	return e.exportJobs(ctx, shard, refs, places)
}

// exportJobs writes jobs, each with the place after it.
func (e *exporter) exportJobs(ctx context.Context, shard store.Records, refs []job.Ref, places []place) error {
	return eachRecord(ctx, shard, refs, func(i int, r *store.Record) error {
		if e.WithoutSecrets {
			if err := removeSecrets(r); err != nil {
				return fmt.Errorf("job %s: %w", r.ID, err)
			}
		}
		if err := e.w.write(&line{Job: lineOf(r, time.Now())}, &places[i]); err != nil {
			return fmt.Errorf("job %s: %w", r.ID, err)
		}
		return nil
	})
}

// eachRecord calls do for the records of jobs, as far as they exist.
func eachRecord(ctx context.Context, shard store.Records, refs []job.Ref, do func(i int, r *store.Record) error) error {
	for done := 0; done < len(refs); {
		records, err := shard.GetRecords(ctx, refs[done:min(done+store.MaxBatch, len(refs))])
		if err != nil {
			return err
		}
		for i := range records {
			if records[i].ID == "" {
				continue
			}
			if err := do(done+i, &records[i]); err != nil {
				return err
			}
		}
		done += len(records)
	}
	return nil
}
